"""The recogniser on disk: which part goes into which file."""
