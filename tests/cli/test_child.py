"""A server that a parent started, and that ends with it."""

import subprocess
import sys


def test_a_child_ends_with_its_parents_end_of_standard_input() -> None:
    command = [sys.executable, "-m", "elasticq.cli.child", "server", "--memory", "--port", "0"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
        try:
            assert child.stdin is not None
            assert child.stdout is not None
            assert child.stdout.readline(), "it tells where it listens"
            child.stdin.write(b"anything")
            child.stdin.close()
            assert child.wait(20) == 1
        finally:
            child.kill()
