"""The demo: recognition in the glyph world, told in the terminal and on one page of pictures."""
