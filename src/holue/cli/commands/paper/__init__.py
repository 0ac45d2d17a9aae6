"""The commands of the paper's experiments and figures."""
