"""What a model reads: images and speech."""
