"""Exit status of the commands, and how a refusal is told.

0 stopped by a signal or all is well, 1 failure, 2 usage or settings, 3 port taken,
4 data directory in use or of a newer format.
"""

import sys
from typing import Final

EXIT_FAILURE: Final = 1
EXIT_USAGE: Final = 2
EXIT_DATA_IN_USE: Final = 4


def fail(reason: str) -> int:
    """Tell on stderr why it did not work."""
    print(f"elasticq: {reason}", file=sys.stderr)
    return EXIT_FAILURE


def refuse(reason: str) -> int:
    """Tell on stderr what is wrong with the question."""
    print(f"elasticq: {reason}", file=sys.stderr)
    return EXIT_USAGE
