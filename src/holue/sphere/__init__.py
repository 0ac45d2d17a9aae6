"""Mathematics on the unit hypersphere; knows no gallery."""
