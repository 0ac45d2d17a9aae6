"""The galleries of a service: open by name, asked in batches."""
