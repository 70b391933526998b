"""Reads the header X-Elasticq-Fence, by which a client that sends no unknown members gives the fence of a call.

Its value is ``GROUP;TOKEN`` or ``GROUP;TOKEN;PARTITION``: the members ElasticqGroup, ElasticqToken and
ElasticqPartition. On calls that have no such members it means nothing, as a client may add it to all of its calls.
"""

import re
from typing import Final

from elasticq.model.commands import Command, FencedCommand
from elasticq.model.errors import InvalidParameterValue, quoted
from elasticq.model.limits import LONG_RANGE

HEADER: Final = b"x-elasticq-fence"
NO_FENCE: Final = ";"
"""Stands for an empty header, which is refused like any other of a wrong form: a call must not lose its fence."""
_FORM: Final = re.compile(r"([A-Za-z0-9_.-]{1,80});([0-9]{1,19})(?:;([0-9]{1,5}))?")


def add_fence(command: Command, text: str) -> None:
    """Put what the header says into the command. Raises InvalidParameterValue for a header of another form.

    So it does where the command has a fence of its own: nobody could tell which of the two is meant.
    """
    if not isinstance(command, FencedCommand):
        return
    found = _FORM.fullmatch(text)
    if found is None or int(found[2]) > LONG_RANGE[1]:
        raise InvalidParameterValue(
            f"Value {quoted(text)} for the header X-Elasticq-Fence is invalid. Reason: Must be GROUP;TOKEN[;PARTITION]."
        )
    if command.elasticq_group is not None:
        raise InvalidParameterValue("A call may have a header X-Elasticq-Fence or a member ElasticqGroup, not both.")
    command.elasticq_group, command.elasticq_token = found[1], int(found[2])
    if found[3] is not None:
        command.elasticq_partition = int(found[3])
