"""Tests with real faults under load: python scripts/chaos [ROW] [OPTIONS]. --help lists the rows.

The status is 1 after any finding.
"""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import rows  # noqa: E402

ROWS = (
    "kills",
    "damage",
    "cluster",
    "unnoticed",
    "incidents",
    "topics",
    "groups",
    "spark",
    "pipeline",
    "siege",
    "soak",
)

sys.exit(rows.run(HERE, ROWS, default=ROWS[:-1]))
