"""What the chapters share: the stamp that says where a chapter's outputs come from, the runner that writes it, and results."""
