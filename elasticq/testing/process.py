"""A server in a process of its own, which ends when the test's process ends, even if that is killed."""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import elasticq
from elasticq.native import VARIABLE

STOP_S: Final = 10.0
_LISTENING: Final = re.compile(rb"elasticq listening on (https?://\S+)\s")


class ServerProcess:
    """A server process. Its settings are sections of the configuration file. url: of its SQS port."""

    def __init__(self, sections: Mapping[str, Mapping[str, Any]]) -> None:
        """Start the process. Raise RuntimeError with the output of the process if it does not start."""
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 (it lives as long as the process)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "elasticq.cli.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env=_environment(sections),
        )
        assert self._process.stdout is not None
        found = _LISTENING.match(self._process.stdout.readline())
        if found is None:
            self.stop()
            self._stderr.seek(0)
            output = self._stderr.read().decode(errors="replace")
            self._stderr.close()
            raise RuntimeError(f"elasticq did not start: {output.strip()}")
        self.url = found[1].decode()

    def stop(self) -> None:
        """Stop the process. Close its stdin only when it has ended, because the end of stdin kills it at once."""
        self._process.terminate()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._process.communicate()
        if self._process.returncode == 0:
            self._stderr.close()


def _environment(sections: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return this process's environment with the settings of ``sections`` and with elasticq on the path.

    Settings of other servers in it are dropped. The server runs compiled if this process does.
    """
    found = {name: value for name, value in os.environ.items() if name == VARIABLE or not name.startswith("ELASTICQ_")}
    home = str(Path(elasticq.__file__).resolve().parents[1])
    found["PYTHONPATH"] = os.pathsep.join(filter(None, (home, found.get("PYTHONPATH"))))
    for section, values in sections.items():
        for name, value in values.items():
            text = str(value).lower() if isinstance(value, bool) else str(value)
            found[f"ELASTICQ_{section}__{name}".upper()] = text
    return found
