"""File formats that samples and protocols are read from."""
