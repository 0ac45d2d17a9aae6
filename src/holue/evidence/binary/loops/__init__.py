"""Compiled loops of the binary scan: lookups, listing and weighing, exact scores, what the sums say in the end."""
