"""The AWS command line, unmodified."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

AWS = Path(sys.executable).parent / "aws"


def run_aws(home: Path, endpoint: str, service: str, *arguments: str, tries_again: bool = False) -> Any:
    """Runs ``aws SERVICE …`` with ``home`` as its home; gives its JSON answer, or {} when it prints nothing.

    tries_again: a call is tried as often as by default, else once, so that an error is seen.
    """
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "AWS_ACCESS_KEY_ID": "000000000000",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_PAGER": "",
    }
    if not tries_again:
        environment["AWS_MAX_ATTEMPTS"] = "1"
    command = [sys.executable, str(AWS), "--endpoint-url", endpoint, "--output", "json", service, *arguments]
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout) if answer.stdout.strip() else {}
