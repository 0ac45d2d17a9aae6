"""Embedding: from images and speech to vectors, and from vectors to how much they can be trusted."""
