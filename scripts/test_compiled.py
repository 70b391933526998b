"""Test run of the hot path with the compiled modules. It prints a line and succeeds if they cannot be compiled here.

``make test`` has run all tests in pure Python before. This program repeats those that exercise the compiled modules:
their own folders in tests/, real servers with real clients, and the simulator, whose runs must be equal to the byte.
It leaves out tests marked ``pure``, which patch what compilation fixes. It also leaves out the floods: they take 90 s,
and the bounds that they test come from the same source lines. Arguments are pytest's.
"""

import os
import subprocess
import sys

import native

PATHS = (
    "tests/engine", "tests/node", "tests/replication", "tests/wire", "tests/http", "tests/runtime", "tests/storage",
    "tests/sim/test_planted_faults.py", "tests/system/acceptance", "tests/system/native",
)  # fmt: skip
LEFT_OUT = ("tests/system/acceptance/test_flood.py",)
NOTHING_SELECTED = 5


def main() -> int:
    if lack := native.missing():
        print(f"THE TESTS OF THE COMPILED MODULES WERE LEFT OUT: {lack}.")
        return 0
    native.install(native.build())
    environment = {name: value for name, value in os.environ.items() if name != "ELASTICQ_PURE"}
    command = [sys.executable, "-m", "pytest", *sys.argv[1:], *PATHS, *(f"--ignore={path}" for path in LEFT_OUT)]
    status = subprocess.run(command, cwd=native.ROOT, env=environment, check=False).returncode
    # Arguments that choose tests, as -k does, may choose none of these.
    return 0 if status == NOTHING_SELECTED and len(sys.argv) > 1 else status


if __name__ == "__main__":
    sys.exit(main())
