"""Approximate evidence: an inverted-file index, and an estimate of what it does not read."""
