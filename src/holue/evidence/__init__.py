"""The narrow waist: what a gallery says about probes."""
