"""The command ``elasticq backup FILE``: a backup of a running member, over its admin port, while clients go on.

The file holds everything that was acknowledged before the command began. Any member of a cluster has the whole state.
"""

import time
from pathlib import Path
from typing import Final

from elasticq.cli.admin_client import AdminClient, Failure
from elasticq.cli.ask import ANSWER_BYTES_MAX, Unreachable
from elasticq.cli.show import Interrupt, bar
from elasticq.storage.offline.backup import finish, new_partial

RETRY_S: Final = 10.0
PAUSE_S: Final = 0.5


def fetch(client: AdminClient, file: Path) -> str:
    """Write a verified backup to the new file ``file``; return a report for the operator.

    Raise Failure, BadUrl, Unreachable, DataError or OSError if that fails. Then ``file`` does not exist.
    """
    partial = new_partial(file)
    try:
        made = _made(client)
        size_bytes = int(made["size_bytes"])
        with partial.open("wb") as out, bar("fetching", size_bytes) as show, Interrupt() as interrupt:
            while (done := out.tell()) < size_bytes:
                if interrupt.asked:
                    raise Failure(f"interrupted: nothing was written to {file}")
                part = _part(client, str(made["id"]), done)
                if not part or len(part) > min(ANSWER_BYTES_MAX, size_bytes - done):
                    raise Failure(
                        f"{client.url} sent another file than it had announced: nothing was written to {file}"
                    )
                out.write(part)
                show(out.tell())
        return finish(partial, file, str(made["member"]), int(made["term"]))
    finally:
        partial.unlink(missing_ok=True)


def _made(client: AdminClient) -> dict[str, str | int]:
    """Return the member's description of the backup, when it is made."""
    answer = client.begin_backup()
    while answer.status == 202:
        answer = client.begin_backup(int(answer.document["index"]))
    if answer.status != 200 or "id" not in answer.document:
        raise Failure(client.refusal(answer))
    return answer.document


def _part(client: AdminClient, name: str, offset: int) -> bytes:
    """Return a part. Ask again for RETRY_S if the member cannot be reached, then raise Unreachable."""
    deadline_s = time.monotonic() + RETRY_S
    while True:
        try:
            return client.backup_part(name, offset)
        except Unreachable:
            if time.monotonic() > deadline_s:
                raise
            time.sleep(PAUSE_S)
