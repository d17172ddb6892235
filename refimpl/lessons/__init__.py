"""What the chapters share: the runner, the stamp that says where outputs come from, and measured results."""
