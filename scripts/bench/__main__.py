"""Measurements on this machine: python scripts/bench [ROW] [OPTIONS]; --help lists the rows."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import rows  # noqa: E402

ROWS = (
    "servers", "auth", "client", "deep", "instructions", "metrics", "orders", "pages", "scheduled", "spark",
    "spark_speed", "stalls", "start", "states", "topics",
)  # fmt: skip

sys.exit(rows.run(HERE, ROWS, default=("servers", "orders", "topics")))
