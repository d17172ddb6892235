"""Where tensors lie: buffers, and allocators that hand memory on as PyTorch's do."""
