"""The errors of SNS for members of requests that exceed their bounds.

The bounds are in ``limits.TOPIC_MEMBERS``, and are larger than those of AWS. The engine refuses a value between the
two.
"""

import re
from typing import Final

import msgspec

from elasticq.model.errors import TooManyEntriesInPublishBatch, TopicError, invalid_parameter

_PLACE: Final = re.compile(r"at (?:`key` in )?`\$\.(\w+)(\[[^`]*?\.(\w+))?")
ENTRIES: Final = "PublishBatchRequestEntries"
TOO_MANY_ENTRIES: Final = "The batch request contains more entries than permissible."


def topic_beyond_bounds(error: msgspec.ValidationError) -> TopicError:
    """Return the error to answer after decoding a command of SNS raised ``error``."""
    place = _PLACE.search(str(error))
    if place is None:
        return invalid_parameter("The request has a member of another type than it should have")
    outer, _, inner = place.groups()
    if outer == ENTRIES and inner is None:
        return TooManyEntriesInPublishBatch(TOO_MANY_ENTRIES)
    return invalid_parameter(f"{inner or outer} Reason: it is longer than it may be")
