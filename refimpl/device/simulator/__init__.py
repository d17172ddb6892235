"""The simulated device: a PyTorch device on which stream code runs asynchronously, on real CPU tensors, without a GPU."""
