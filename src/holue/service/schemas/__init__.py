"""Schemas: what bodies and answers of the API look like."""
