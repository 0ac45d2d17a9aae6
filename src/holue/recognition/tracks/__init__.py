"""Tracks: probes of several samples that arrive over time."""
