"""What a recogniser has learned, as one value, and who holds it."""
