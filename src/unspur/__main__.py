"""``python -m unspur``."""

from unspur.cli import main

if __name__ == "__main__":
    main()
