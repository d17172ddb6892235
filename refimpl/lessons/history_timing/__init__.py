"""What each fence costs the engine: where the host stands still, how long a step takes, when the GPU idles."""
