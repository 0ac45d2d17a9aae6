"""Loaders: published protocols and files of embeddings → identification protocols."""
