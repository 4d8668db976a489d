"""Keeping a conversation inside the model's window: estimate, prune, summarise."""
