"""kombu's own tests while members die: they give up after a second, so its marks that let some fail are heeded."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from its_tests import run_tests
from worker import WORK

(WORK / "begun").touch()
counted = [run_tests()]
while not (WORK / "over").exists():
    counted.append(run_tests())
print(f"kombu: its own tests, {len(counted)} times: {counted[-1]}")
