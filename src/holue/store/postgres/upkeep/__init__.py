"""Upkeep of the whole gallery: erasure, snapshots, verification, moving between homes."""
