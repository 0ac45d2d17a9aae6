"""Evidence from one bit per coordinate: estimated scores of everybody, exact scores of those who matter."""
