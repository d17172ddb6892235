"""The names of `torch.cuda` that are no streams, events or graphs."""
