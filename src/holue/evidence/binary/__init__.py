"""Evidence from one or two bits per coordinate: estimated scores of everybody, exact scores of those who matter."""
