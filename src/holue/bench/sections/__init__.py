"""What is measured, one file per section."""
