"""A recorded run from a file: torch's profiler, other tools that write Chrome's format, and our own columns."""
