"""A server of another version that understands the same frames, as in the middle of an upgrade."""

import elasticq

elasticq.__version__ = "99.0.0"

if __name__ == "__main__":
    from elasticq.cli.main import main

    raise SystemExit(main())
