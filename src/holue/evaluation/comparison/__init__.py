"""Every method at every operating point of one protocol."""
