"""What shell blocks of the documentation run in place of elasticq, make and python: see snippets.py."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
ELASTICQ = [sys.executable, "-m", "elasticq"]
STOP_S = 30
ASKING = ("--version", "--help", "-h")


def elasticq(arguments: list[str]) -> int:
    if not arguments or (arguments[0].startswith("-") and arguments[0] not in ASKING):
        arguments = ["server", *arguments]
    is_asking = any(asking in arguments for asking in ASKING)
    if arguments[0] == "server" and not is_asking:
        return serve(arguments)
    if arguments[0] == "health" and len(arguments) == 1:
        arguments = [*arguments, os.environ["ELASTICQ_TEST_URL"]]
    asks_member = arguments[0] in ("cluster", "top") or (arguments[0] == "backup" and len(arguments) == 2)
    if asks_member and "--admin" not in arguments and not is_asking and "force-new" not in arguments:
        arguments = [*arguments, "--admin", os.environ["ELASTICQ_TEST_ADMIN"]]
    return subprocess.run([*ELASTICQ, *arguments], check=False).returncode


def serve(arguments: list[str]) -> int:
    """Until it listens; it must end well, too."""
    command = [*ELASTICQ, *arguments, "--port", "0", "--admin-port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        line = server.stdout.readline()
        print(line, end="")
        if not line.startswith("elasticq listening on "):
            return server.wait(STOP_S) or 1
        server.terminate()
        server.communicate(timeout=STOP_S)
        return server.returncode


def main() -> int:
    tool, *arguments = sys.argv[1:]
    if tool == "make":
        beyond = os.environ["PATH"].partition(os.pathsep)[2]
        dry = ["/usr/bin/env", "make", "--dry-run", "-C", str(ROOT), *arguments]
        return subprocess.run(dry, stdout=subprocess.DEVNULL, env=os.environ | {"PATH": beyond}, check=False).returncode
    if tool == "python":
        if arguments[:2] == ["-m", "elasticq"]:
            return elasticq(arguments[2:])
        return subprocess.run([sys.executable, *arguments], check=False).returncode
    return elasticq(arguments)


if __name__ == "__main__":
    sys.exit(main())
