"""The engine's speed: beside its peers on the same weights, and beside the bounds of the device that it runs on."""
