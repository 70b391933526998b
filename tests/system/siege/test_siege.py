"""A short siege of real clusters, open and with signatures: it finds nothing."""

import re
import subprocess
import sys

from tests.system.cluster.cluster import ROOT
from tests.system.siege.verdict import RULES

MINUTES = 0.2
SLOW_MS = 2_000
"""Of the bystander's calls: other tests may use the same cores."""


def test_a_short_siege_finds_nothing() -> None:
    options = ["--minutes", str(MINUTES), "--seed", "1", "--slow-ms", str(SLOW_MS)]
    command = [sys.executable, "scripts/chaos", "siege", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for rule in RULES:
        assert re.search(rf"^{re.escape(rule)} +0  ok$", done.stdout, re.MULTILINE), done.stdout
