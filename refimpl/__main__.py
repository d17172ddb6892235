"""`python -m refimpl`."""


def _run() -> int:
    try:
        from refimpl.cli import main

        return main()
    except KeyboardInterrupt:  # before the command line has begun, which knows the code by its name
        return 130


if __name__ == "__main__":
    raise SystemExit(_run())
