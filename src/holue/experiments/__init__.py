"""Experiments: the paper's tables on real faces, voices and animals, each one command."""
