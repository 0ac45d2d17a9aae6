"""Small models that learn P(correct) from a few features."""
