"""Measuring: how fast, and in how much memory, holue and its alternatives answer the same probes."""
