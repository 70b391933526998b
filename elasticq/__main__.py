"""The command ``python -m elasticq``."""

import sys

from elasticq.cli import main

if __name__ == "__main__":
    sys.exit(main())
