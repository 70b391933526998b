"""The list of compiled modules, read by what compiles them: scripts/native.py."""

import importlib.util
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[3]


def scripts_native() -> ModuleType:
    made = importlib.util.spec_from_file_location("elasticq_scripts_native", ROOT / "scripts" / "native.py")
    assert made is not None
    assert made.loader is not None
    module = importlib.util.module_from_spec(made)
    made.loader.exec_module(module)
    return module


def listed() -> list[str]:
    """The paths of the modules, from the root."""
    paths: list[str] = scripts_native().modules(ROOT)
    return paths
