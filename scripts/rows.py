"""The command line of programs with rows: ``python scripts/bench ROW`` runs the module scripts/bench/ROW.py.

A row has a docstring, ``add_options(parser)`` and ``main(options)``, which returns the exit status or None.
"""

import argparse
import ast
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType


def run(folder: Path, rows: tuple[str, ...], default: tuple[str, ...]) -> int:
    """Run the row that the command line names, or the default rows; return 1 if any of them failed.

    A default row uses the options that it knows. Exit with status 1 if no row has the name or knows an option.
    """
    sys.path[:0] = map(str, (folder, folder.parent / "bench", folder.parents[1]))
    given = sys.argv[1:]
    if given[:1] in (["-h"], ["--help"]):
        print(f"python scripts/{folder.name} [ROW] [OPTIONS]; without a row: {', '.join(default)}\n")
        for row in rows:
            print(f"{row:14}{(ast.get_docstring(ast.parse((folder / f'{row}.py').read_text())) or '').splitlines()[0]}")
        return 0
    names = default
    if given and not given[0].startswith("-"):
        if given[0] not in rows:
            sys.exit(f"there is no row {given[0]}; --help lists the rows")
        names, given = (given[0],), given[1:]
    modules = [import_module(name) for name in names]
    parsed = [_parser(f"{folder.name} {module.__name__}", module).parse_known_args(given) for module in modules]
    unknown = set.intersection(*({each for each in rest if each.startswith("-")} for _, rest in parsed))
    if unknown or (len(parsed) == 1 and parsed[0][1]):
        sys.exit(f"no row takes {' '.join(sorted(unknown) or parsed[0][1])}")
    status = 0
    for module, (options, _) in zip(modules, parsed, strict=True):
        print(f"--- {module.__name__}", file=sys.stderr, flush=True)
        status |= bool(module.main(options))
    return status


def _parser(program: str, module: ModuleType) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        program,
        description=module.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,  # else an option of one row would mean a longer one of another row
    )
    module.add_options(parser)
    return parser
