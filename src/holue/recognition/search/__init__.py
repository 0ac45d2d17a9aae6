"""How recognition reads a gallery."""
