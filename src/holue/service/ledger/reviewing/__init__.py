"""Reviews: what people are asked, what they decided, and the probes that their decisions label."""
