"""The store: samples and subjects kept for years; it knows nothing of recognition."""
