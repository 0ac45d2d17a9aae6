"""Embedding models in ONNX files, and the files of embeddings they make."""
