"""When each op runs: in virtual time, in an order drawn by a seed, or in one that a text names."""
