"""The questions that chapters ask before anything runs, one module a chapter: a notebook that shows them tells no
answer."""
