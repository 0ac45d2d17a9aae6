"""Rates, curves and calibration errors: numbers from outcomes."""
