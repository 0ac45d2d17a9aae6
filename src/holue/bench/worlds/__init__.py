"""Galleries and probes to measure on."""
