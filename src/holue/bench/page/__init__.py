"""The measured numbers as text, tables and charts."""
