"""Every action, attribute and error by both protocols against a real process; docs/coverage.md says what was seen.

With ELASTICQ_WRITE_DOCS set the document is written, else it must say the same.
"""

import os
import textwrap
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from botocore import xform_name

from elasticq.model import errors
from elasticq.model.actions import EXTENSIONS, NOT_HERE, TOPIC_ACTIONS
from elasticq.model.errors import SqsError
from elasticq.wire.operations import OPERATIONS
from tests.system.acceptance.coverage import (
    ACTIONS,
    ATTRIBUTES,
    DIFFERENCES,
    ELSEWHERE,
    ERRORS,
    FIFO_ATTRIBUTES,
    NEVER,
    TOGETHER,
    World,
)
from tests.system.acceptance.coverage_topics import ANSWERED, BY_TOKEN, TopicWorld
from tests.system.acceptance.coverage_topics import DIFFERENCES as TOPIC_DIFFERENCES
from tests.system.acceptance.raw import Answer, Endpoint
from tests.system.acceptance.test_topics import topics_client

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "coverage.md"
SERVICE = botocore.session.get_session().get_service_model("sqs")
TOPICS = botocore.session.get_session().get_service_model("sns")
PROTOCOLS = ("json", "query")


def shown(answer: Answer, action: str) -> dict[str, str]:
    """The attributes in an answer of GetQueueAttributes."""
    if "json" in answer.headers["content-type"]:
        return dict(answer.document.get("Attributes", {}))
    listed = (answer.xml[f"{action}Result"] or {}).get("Attribute", [])
    return {each["Name"]: each["Value"] for each in (listed if isinstance(listed, list) else [listed])}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("action", ACTIONS)
def test_action_is_answered(endpoint: Endpoint, action: str, protocol: str) -> None:
    world = World(endpoint, protocol)
    answer = world.call(action, ACTIONS[action](world))
    assert answer.status == 200, answer.body
    if protocol == "query":
        assert answer.xml["ResponseMetadata"]["RequestId"]
    else:
        assert answer.headers["x-amzn-requestid"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", ATTRIBUTES)
def test_attribute_reads_back_as_it_was_set(endpoint: Endpoint, name: str, protocol: str) -> None:
    world = World(endpoint, protocol)
    make = ATTRIBUTES[name]
    url = world.fifo if name in FIFO_ATTRIBUTES else world.url
    if make is None:
        refused = world.call("SetQueueAttributes", {"QueueUrl": url, "Attributes": {name: "1"}})
        assert refused.error[1] == "InvalidAttributeName"
    else:
        attributes = {name: make(world)} | TOGETHER.get(name, {})
        answer = world.call("SetQueueAttributes", {"QueueUrl": url, "Attributes": attributes})
        assert answer.status == 200, answer.body
    for names in ([name], ["All"]):
        found = shown(
            world.call("GetQueueAttributes", {"QueueUrl": url, "AttributeNames": names}), "GetQueueAttributes"
        )
        assert found[name] == make(world) if make is not None else found[name]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("code", ERRORS)
def test_error_has_its_code_type_and_status(endpoint: Endpoint, code: str, protocol: str) -> None:
    world = World(endpoint, protocol)
    action, make = ERRORS[code]
    answer = world.call(action, make(world))
    kind = _class_of(code)
    assert answer.error[:2] == (kind.status, code)
    if protocol == "json":
        assert answer.document["__type"] == f"com.amazonaws.sqs#{kind.json_type}"
        assert answer.headers["x-amzn-query-error"] == f"{code};Sender"
    else:
        assert answer.xml["Error"]["Type"] == "Sender"


@pytest.mark.parametrize("action", ANSWERED)
def test_action_of_topics_is_answered(server: str, action: str) -> None:
    sns = topics_client(server)
    answer = getattr(sns, xform_name(action))(**ANSWERED[action](TopicWorld(sns)))
    shape = TOPICS.operation_model(action).output_shape
    optional = {"NextToken", "nextToken", "SequenceNumber"}
    assert set(answer) - {"ResponseMetadata"} | optional == set(shape.members if shape is not None else ()) | optional


def test_nothing_of_the_service_model_of_topics_is_left_out() -> None:
    assert sorted([*ANSWERED, BY_TOKEN, *NOT_HERE]) == sorted(TOPICS.operation_names)
    assert sorted([*ANSWERED, BY_TOKEN]) == sorted(row.name for row in TOPIC_ACTIONS)


def _classes() -> list[type[SqsError]]:
    return [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, SqsError)]


def _class_of(code: str) -> type[SqsError]:
    return next(kind for kind in _classes() if kind.code == code)


def test_nothing_of_the_service_model_is_left_out() -> None:
    assert sorted(ACTIONS) == sorted(SERVICE.operation_names)
    assert sorted(OPERATIONS) == sorted([*ACTIONS, *(row.name for row in EXTENSIONS)])
    assert {*ATTRIBUTES, "All"} == set(SERVICE.shape_for("QueueAttributeName").enum)
    told = {*ERRORS, *ELSEWHERE, *NEVER}
    exceptions = [name for name in SERVICE.shape_names if SERVICE.shape_for(name).metadata.get("exception")]
    codes = {kind.json_type: kind.code for kind in _classes()}
    for name in exceptions:
        assert codes.get(name, name) in told or (name not in codes and name.startswith("Kms")), name


def test_document_says_what_is_covered() -> None:
    text = document()
    if os.environ.get("ELASTICQ_WRITE_DOCS"):
        DOCUMENT.write_text(text)
    assert DOCUMENT.read_text() == text, "ELASTICQ_WRITE_DOCS=1 pytest tests/system/acceptance/test_coverage.py"


def document() -> str:
    return "\n".join(
        [
            "# What of SQS is covered",
            "",
            "Look up actions, attributes, errors, and the differences from AWS. "
            "`tests/system/acceptance/test_coverage.py` runs every line",
            "against a server process by both protocols (JSON 1.0 and Query), and writes this page with "
            "`ELASTICQ_WRITE_DOCS=1`.",
            "",
            "## Actions",
            "",
            *_table(("action", "members"), [_action(name) for name in sorted(ACTIONS)]),
            "",
            "## Queue attributes",
            "",
            "Each can be set, unless it is read only, and read back exactly, by name and by `All`.",
            "",
            *_table(("kind", "attributes"), _attributes()),
            "",
            "## Errors",
            "",
            *_table(("code", "JSON type", "status", "caused by"), [_error(code) for code in sorted(ERRORS)]),
            *[f"| {code} | {_type(code)} | {_status(code)} | {why} |" for code, why in sorted(ELSEWHERE.items())],
            "",
            "In the service model, but never answered:",
            "",
            *[f"- {code}: {why}." for code, why in sorted(NEVER.items())],
            "",
            "## Differences from AWS",
            "",
            *map(_item, DIFFERENCES),
            "",
            "## What of SNS is covered",
            "",
            "SNS has only the Query protocol. boto3 makes each call; requests and answers are compared with botocore's",
            "model (`tests/model/test_topic_commands.py`, `tests/wire/test_topic_xml.py`).",
            "",
            "### Actions of topics",
            "",
            *_table(
                ("action", "members"), [_topic_action(name) for name in sorted({*TOPICS.operation_names} - NOT_HERE)]
            ),
            "",
            "InvalidAction, as in regions of AWS without them:",
            "",
            *[f"- {name}" for name in sorted(NOT_HERE)],
            "",
            "### Differences from AWS's SNS",
            "",
            *map(_item, TOPIC_DIFFERENCES),
            "",
        ]
    )


def _item(text: str) -> str:
    return textwrap.fill(f"- {text}", 120, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _table(heads: tuple[str, ...], rows: list[tuple[Any, ...]]) -> list[str]:
    lines = [heads, ("---",) * len(heads), *rows]
    return ["| " + " | ".join(map(str, line)) + " |" for line in lines]


def _action(name: str) -> tuple[str, ...]:
    members = SERVICE.operation_model(name).input_shape.members
    return name, ", ".join(members)


def _topic_action(name: str) -> tuple[str, ...]:
    shape = TOPICS.operation_model(name).input_shape
    return name, ", ".join(shape.members if shape is not None else ())


def _attributes() -> list[tuple[str, str]]:
    kinds: dict[str, list[str]] = {"all queues": [], "FIFO queues": [], "read only": []}
    for name in sorted(ATTRIBUTES):
        kind = "read only" if ATTRIBUTES[name] is None else "FIFO queues" if name in FIFO_ATTRIBUTES else "all queues"
        kinds[kind].append(name)
    return [(kind, ", ".join(names)) for kind, names in kinds.items()]


def _error(code: str) -> tuple[str, ...]:
    return code, _type(code), _status(code), ERRORS[code][0]


def _type(code: str) -> str:
    return _class_of(code).json_type


def _status(code: str) -> str:
    return str(_class_of(code).status)
