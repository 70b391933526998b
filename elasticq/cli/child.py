"""The command line in a child process: ``python -m elasticq.cli.child``. Its parent holds the other end of its stdin.

When the parent dies, the kernel closes stdin, and this process ends at once. No acknowledged message is lost by that.
"""

import sys
from threading import Thread

from elasticq.cli.main import main
from elasticq.server.ports import end_with_parent

if __name__ == "__main__":
    Thread(target=end_with_parent, name="parent", daemon=True).start()
    sys.exit(main())
