"""The accounts of a recorded run whose program nobody knows: what held the host, why the GPU idled, what took long."""
