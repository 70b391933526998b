"""Real faults under load: python scripts/chaos [ROW] [OPTIONS]; --help lists the rows. Status 1 for any finding."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import rows  # noqa: E402

ROWS = ("kills", "damage", "cluster", "unnoticed", "topics", "groups", "spark", "siege", "soak")

sys.exit(rows.run(HERE, ROWS, default=ROWS[:-1]))
