"""What a start does not import: it would cost every start, and most need none of it."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys
import elasticq.cli
import elasticq.server.life
print(*sorted(sys.modules))
"""
LATE = {
    "aiohttp",  # by its first page, after the port listens: more than half of a start
    "prometheus_client",
    "rich",
    "zeroconf",
    "pyhocon",
    "opentelemetry",
    "boto3",
    "pyspark",
    "pandas",
    "http.client",
    "email.message",
    "difflib",
    "elasticq.sim",
    "elasticq.testing",
    "elasticq.spark",
}


@pytest.fixture(scope="module")
def imported() -> set[str]:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("module", sorted(LATE))
def test_server_starts_without(module: str, imported: set[str]) -> None:
    assert "elasticq.server.life" in imported
    assert module not in imported
