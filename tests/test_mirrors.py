"""Each module of the package has its tests beside it: tests/<room>/test_<module>.py, or a place in the list below."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE, TESTS = ROOT / "elasticq", ROOT / "tests"
NO_ROOMS = frozenset(["system", "__pycache__"])
