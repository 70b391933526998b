"""The header X-Elasticq-Fence: the fence of a call, for clients that cannot send unknown members.

Its value is ``GROUP;TOKEN`` or ``GROUP;TOKEN;PARTITION``, for the members ElasticqGroup, ElasticqToken and
ElasticqPartition. A client may add the header to all of its calls: calls without these members ignore it.
"""

import re
from typing import Final

from elasticq.model.commands import Command, FencedCommand
from elasticq.model.errors import InvalidParameterValue, quoted
from elasticq.model.limits import LONG_RANGE

HEADER: Final = b"x-elasticq-fence"
NO_FENCE: Final = ";"
"""The value for an empty header. It is refused as malformed, because a call must not lose its fence."""
_FORM: Final = re.compile(r"([A-Za-z0-9_.-]{1,80});([0-9]{1,19})(?:;([0-9]{1,5}))?")


def add_fence(command: Command, text: str) -> None:
    """Set the members of the fence in the command, from the text of the header.

    Raise InvalidParameterValue if the header is malformed, or if the command already has a fence.
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
