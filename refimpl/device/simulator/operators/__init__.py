"""PyTorch's operators: what comes out, what they touch, and what they do when the device gets to them."""
