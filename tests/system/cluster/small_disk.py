"""A server whose disk has little space left: the free space that the operating system reports is a twentieth."""

import shutil
from typing import Any

SHARE = 0.05
_real = shutil.disk_usage


def disk_usage(path: Any) -> Any:
    usage = _real(path)
    return usage._replace(free=min(usage.free, int(SHARE * usage.total)))


if __name__ == "__main__":
    shutil.disk_usage = disk_usage
    from elasticq.cli.main import main

    raise SystemExit(main())
