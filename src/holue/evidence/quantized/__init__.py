"""Evidence from float16 and int8 codes, with certified error bounds."""
