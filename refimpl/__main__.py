"""`python -m refimpl`."""

from refimpl.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
