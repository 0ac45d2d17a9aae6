"""Filtering with a guarantee: risk controllers, certificates, conformal sets."""
