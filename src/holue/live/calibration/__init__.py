"""Calibrations of a live gallery: what they learn from, how they are kept, certified and compared."""
