"""Long recordings: speech found, cut into windows and embedded."""
