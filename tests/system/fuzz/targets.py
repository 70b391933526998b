"""All targets of the fuzz by their names: what arrives at a member, from strangers, clients, members, disks and files.

Each is a function of bytes that returns where the input is handled rightly and raises where it is not: a failure that
is not the parser's own, but also an answer that a second reading of the same input does not give. Nothing here needs
the fuzzer: ``scripts/fuzz.py`` makes new inputs, and ``test_replay.py`` judges the kept ones.
"""

from typing import Final

from tests.system.fuzz import (
    engine_targets,
    http_targets,
    peer_targets,
    policy_targets,
    push_targets,
    settings_targets,
    storage_targets,
    wire_targets,
)
from tests.system.fuzz.target import Target

TARGETS: Final[dict[str, Target]] = {
    **http_targets.TARGETS,
    **wire_targets.TARGETS,
    **engine_targets.TARGETS,
    **policy_targets.TARGETS,
    **peer_targets.TARGETS,
    **storage_targets.TARGETS,
    **push_targets.TARGETS,
    **settings_targets.TARGETS,
}
