"""The exit statuses of the commands, and the output of errors.

0: success, or stopped by a signal; 1: failure; 2: usage or settings; 3: port taken; 4: data directory in use or of a
newer format; 130: interrupted by Ctrl-C.
"""

import sys
from typing import Final

EXIT_FAILURE: Final = 1
EXIT_USAGE: Final = 2
EXIT_DATA_IN_USE: Final = 4
EXIT_INTERRUPTED: Final = 130
"""The exit status that shells expect of a program that Ctrl-C ended."""


def fail(reason: str) -> int:
    """Print on stderr why the command failed. Return EXIT_FAILURE."""
    print(f"elasticq: {reason}", file=sys.stderr)
    return EXIT_FAILURE


def refuse(reason: str) -> int:
    """Print on stderr what is wrong with the command's arguments. Return EXIT_USAGE."""
    print(f"elasticq: {reason}", file=sys.stderr)
    return EXIT_USAGE
