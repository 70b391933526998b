"""The suite of the API, as SDKs and curl speak it, through a proxy, on whose way no answer may change."""

import os
import subprocess
import sys

import pytest

from tests.system.acceptance.conftest import BEHIND_PROXY
from tests.system.cluster.cluster import ROOT

FOLDER = "tests/system/acceptance"
FEW = [f"{FOLDER}/test_{name}.py" for name in ("boto3", "idempotency")]


@pytest.mark.parametrize("files", [FEW, pytest.param([FOLDER], marks=pytest.mark.chaos)], ids=["few", "all"])
def test_the_suite_of_the_api_passes_through_a_proxy(files: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n0", *files],
        cwd=ROOT,
        env=os.environ | {BEHIND_PROXY: "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4_000:]
    assert "passed" in done.stdout
