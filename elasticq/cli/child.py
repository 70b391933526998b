"""``python -m elasticq.cli.child``: the command line for a parent that holds the other end of standard input.

When standard input ends, which the kernel sees to however the parent died, this process ends at once: nothing
that was acknowledged is lost by it, and nobody is left to ask for a slower end.
"""

import sys
from threading import Thread

from elasticq.cli.main import main
from elasticq.server.ports import end_with_parent

if __name__ == "__main__":
    Thread(target=end_with_parent, name="parent", daemon=True).start()
    sys.exit(main())
