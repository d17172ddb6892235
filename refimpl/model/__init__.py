"""The models: a Qwen3-style target, the drafts that guess for it, their weights and their tokenizer.

Nothing here knows of streams: a model is a function of tensors, whoever queues it and wherever.
"""
