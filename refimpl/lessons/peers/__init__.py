"""Other people's engines on the same weights: transformers' loops, for parity and for speed side by side."""
