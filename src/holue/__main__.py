"""``python -m holue`` is the ``holue`` command."""

from holue.cli import main

if __name__ == "__main__":
    main()
