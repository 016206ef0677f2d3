"""``python -m memrt``."""

from memrt.commands import main

if __name__ == "__main__":
    main()
