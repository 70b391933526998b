"""The command line of programs with rows: ``python scripts/bench ROW`` runs the module scripts/bench/ROW.py.

A row has a docstring, ``add_options(parser)`` and ``main(options)``, which returns the exit status or None.
"""

import argparse
import ast
import sys
from importlib import import_module
from pathlib import Path


def run(folder: Path, rows: tuple[str, ...], default: tuple[str, ...]) -> int:
    """Run the row that the command line names, or the default rows; return 1 if any of them failed.

    A default row uses those options of the command line that it knows, and ignores the others.
    """
    sys.path[:0] = map(str, (folder, folder.parent / "bench", folder.parents[1]))
    names = sys.argv[1:2] if sys.argv[1:2] and sys.argv[1] in rows else list(default)
    if "-h" in sys.argv[1:2] or "--help" in sys.argv[1:2]:
        print(f"python scripts/{folder.name} [ROW] [OPTIONS]; without a row: {', '.join(default)}\n")
        for row in rows:
            print(f"{row:14}{(ast.get_docstring(ast.parse((folder / f'{row}.py').read_text())) or '').splitlines()[0]}")
        return 0
    status = 0
    for name in names:
        module = import_module(name)
        parser = argparse.ArgumentParser(
            f"{folder.name} {name}", description=module.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        module.add_options(parser)
        if sys.argv[1:2] == [name]:
            options = parser.parse_args(sys.argv[2:])
        else:
            print(f"--- {name}", flush=True)
            options = parser.parse_known_args(sys.argv[1:])[0]
        status |= bool(module.main(options))
    return status
