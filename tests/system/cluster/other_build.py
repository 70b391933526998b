"""A server of another build: one that understands other frames than this source."""

from elasticq.peers import messages

messages.SCHEMA = "0123456789abcdef"

if __name__ == "__main__":
    from elasticq.cli.main import main

    raise SystemExit(main())
