"""A test of the REST API and the admin port's API against their own OpenAPI documents, by schemathesis (not ours).

``--schemathesis`` names its command. If it is missing, the program prints that and ends with status 1, or with 0 under
--allow-missing. Two of its checks are left out. The engine may refuse a request that fits the document, because it
checks more than types. And the server refuses methods that HTTP/1.1 does not have before it reads the path
(docs/adr/0015). All other checks must hold, and no answer may be a 5xx. Streams are left out because they never end.
The admin port's actions are tested by their names.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from copy import deepcopy
from itertools import islice
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from elasticq.admin import openapi
from elasticq.admin.calls import ACTIONS
from elasticq.rest.routes import BASE

LEFT_OUT = "positive_data_acceptance,unsupported_method"
LONG_POLL_S = 60
ADDRESSES = re.compile(r"^(elasticq|admin) listening on (http://\S+)")
ROOT = Path(__file__).resolve().parent.parent


def admin_document() -> dict[str, Any]:
    """Return the admin port's document, with the list of actions in place of "any name"."""
    document = deepcopy(openapi.document())
    for parameter in document["paths"]["/api/actions/{action}"]["post"]["parameters"]:
        if parameter["name"] == "action":
            parameter["schema"] = {"type": "string", "enum": sorted(ACTIONS)}
    return document


def run(options: argparse.Namespace, command: str, document: str, *more: str) -> int:
    tried = [command, "run", document, *more]
    tried += ["--checks", "all", "--exclude-checks", LEFT_OUT, "--seed", str(options.seed)]
    tried += ["--max-examples", str(options.examples)]
    tried += ["--request-timeout", str(LONG_POLL_S), "--max-response-time", str(LONG_POLL_S)]
    return subprocess.run(tried, check=False).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schemathesis", default="st", metavar="COMMAND", help="command of schemathesis (st)")
    parser.add_argument("--examples", type=int, default=50, metavar="N", help="requests for each operation (50)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the requests (1)")
    parser.add_argument("--only", choices=("rest", "admin"), help="test only this API")
    parser.add_argument("--allow-missing", action="store_true", help="status 0 if schemathesis is missing")
    options = parser.parse_args()
    command = shutil.which(options.schemathesis)
    if command is None:
        print(f"there is no {options.schemathesis}: pip install schemathesis, in an environment of its own")
        return 0 if options.allow_missing else 1
    serve = [sys.executable, "-m", "elasticq", "server", "--memory", "--port", "0", "--admin-port", "0"]
    server = subprocess.Popen(serve, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        found = dict(match.groups() for match in islice(filter(None, map(ADDRESSES.match, server.stdout)), 2))
        rest = f"{found['elasticq']}{BASE}"
        for name in ("jobs", "0"):
            request = urllib.request.Request(f"{rest}/queues", f'{{"name": "{name}"}}'.encode())
            urllib.request.urlopen(request, timeout=10).close()
        status = 0
        if options.only != "admin":
            status |= run(options, command, f"{rest}/openapi.json", "--exclude-operation-id", "stream")
        if options.only != "rest":
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder) / "openapi.json"
                file.write_text(json.dumps(admin_document()))
                status |= run(options, command, str(file), "--url", found["admin"], "--exclude-path", "/api/live")
        return status
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    sys.exit(main())
