"""``python -m unspur``."""

from unspur.cli.main import main

if __name__ == "__main__":
    main()
