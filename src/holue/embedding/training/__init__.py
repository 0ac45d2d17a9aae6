"""Training of networks and heads, with torch."""
