"""One module a command: `add_arguments(parser)` declares it, `run(args)` does it and returns the exit code.
`chosen` is what they share.

A command module imports torch, nbclient and the like inside `run`, so that `--help` stays fast.
"""
