"""From evidence to an answer: posterior, operating point, quality, recogniser."""
