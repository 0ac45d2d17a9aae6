"""Other stores of embeddings that a user would choose, and holue, each behind the same few calls."""
