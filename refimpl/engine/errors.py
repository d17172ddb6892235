"""What an engine says of input that it cannot serve."""


class EngineError(ValueError):
    """One sentence: what is wrong, where, and what to do. The engine is usable afterwards."""
