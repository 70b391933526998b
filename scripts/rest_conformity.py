"""Tries the REST API against its own OpenAPI document by schemathesis, which this repository does not bring.

``--schemathesis`` names its command, ``st`` by default. Where there is none that is said, and the status is 1 unless
--allow-missing. What a request holds beyond the document's types is the engine's to judge, so that requests that fit
the document may be refused; and methods that HTTP/1.1 does not have are refused before anybody sees the path
(docs/adr/0015). Everything else that schemathesis checks must hold, and nothing may be a 5xx.
"""

import argparse
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from elasticq.rest.routes import BASE
from elasticq.testing import ElasticQ

LEFT_OUT = "positive_data_acceptance,unsupported_method"
LONG_POLL_S = 60


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schemathesis", default="st", metavar="COMMAND")
    parser.add_argument("--examples", type=int, default=50, metavar="N", help="of each operation")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    parser.add_argument("--allow-missing", action="store_true")
    options = parser.parse_args()
    command = shutil.which(options.schemathesis)
    if command is None:
        print(f"there is no {options.schemathesis}: pip install schemathesis, in an environment of its own")
        return 0 if options.allow_missing else 1
    with ElasticQ() as server:
        for name in ("jobs", "0"):
            request = urllib.request.Request(f"{server.endpoint_url}{BASE}/queues", f'{{"name": "{name}"}}'.encode())
            urllib.request.urlopen(request, timeout=10).close()
        tried = [command, "run", f"{server.endpoint_url}{BASE}/openapi.json", "--exclude-operation-id", "stream"]
        tried += ["--checks", "all", "--exclude-checks", LEFT_OUT, "--seed", str(options.seed)]
        tried += ["--max-examples", str(options.examples)]
        tried += ["--request-timeout", str(LONG_POLL_S), "--max-response-time", str(LONG_POLL_S)]
        return subprocess.run(tried, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
