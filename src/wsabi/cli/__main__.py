"""``python -m wsabi.cli``."""

from wsabi.cli import main

if __name__ == "__main__":
    main()
