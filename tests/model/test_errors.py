"""The error tree: a class per AWS code, with status and whose fault it is."""

import botocore.session
import pytest

from elasticq.model import errors
from elasticq.model.errors import ReceiverError, SenderError, SqsError

PREFIX = "AWS.SimpleQueueService."


def leaves(kind: type[SqsError]) -> list[type[SqsError]]:
    below = kind.__subclasses__()
    return [leaf for sub in below for leaf in leaves(sub)] if below else [kind]


LEAVES = [kind for kind in leaves(SqsError) if kind.__module__ == errors.__name__]
"""Whatever other rooms derive from them is theirs to test, and is not always imported here."""


@pytest.mark.parametrize("kind", LEAVES, ids=lambda kind: kind.__name__)
def test_every_error_is_the_senders_or_ours(kind: type[SqsError]) -> None:
    error = kind("words")
    assert (error.message, str(error)) == ("words", "words")
    assert error.sender_fault == issubclass(kind, SenderError)
    assert (400 <= error.status < 500) if error.sender_fault else (error.status >= 500)
    assert issubclass(kind, SenderError) != issubclass(kind, ReceiverError)


@pytest.mark.parametrize(
    ("kind", "code", "json_type", "status"),
    [
        (errors.QueueDoesNotExist, PREFIX + "NonExistentQueue", "QueueDoesNotExist", 400),
        (errors.QueueNameExists, "QueueAlreadyExists", "QueueNameExists", 400),
        (errors.QueueDeletedRecently, PREFIX + "QueueDeletedRecently", "QueueDeletedRecently", 400),
        (errors.PurgeQueueInProgress, PREFIX + "PurgeQueueInProgress", "PurgeQueueInProgress", 403),
        (errors.OverLimit, "OverLimit", "OverLimit", 403),
        (errors.InvalidParameterValue, "InvalidParameterValue", "InvalidParameterValueException", 400),
        (errors.MissingParameter, "MissingParameter", "MissingRequiredParameterException", 400),
        (errors.ReceiptHandleIsInvalid, "ReceiptHandleIsInvalid", "ReceiptHandleIsInvalid", 400),
        (errors.ResourceNotFound, "ResourceNotFoundException", "ResourceNotFoundException", 404),
        (errors.InvalidMessageContents, "InvalidMessageContents", "InvalidMessageContents", 400),
    ],
)
def test_codes_and_statuses_are_awss(kind: type[SqsError], code: str, json_type: str, status: int) -> None:
    assert (kind.code, kind.json_type, kind.status) == (code, json_type, status)


def test_json_types_are_known_to_botocore_where_it_knows_the_code() -> None:
    model = botocore.session.Session().get_service_model("sqs")
    query_codes = {}
    for name in model.shape_names:
        shape = model.shape_for(name)
        if shape.metadata.get("exception"):
            query_codes[name] = shape.metadata.get("error", {}).get("code", name)
    own = [kind for kind in LEAVES if not issubclass(kind, errors.TopicError)]
    known = {kind.json_type: kind for kind in own if kind.json_type in query_codes}
    assert len(known) > 10  # tests/system/acceptance/coverage.py lists the others, which are never answered
    for kind in known.values():
        assert query_codes[kind.json_type] in (kind.code, kind.json_type)


TOPIC_LEAVES = [kind for kind in LEAVES if issubclass(kind, errors.TopicError)]


def test_codes_of_topics_are_those_of_the_service_model() -> None:
    model = botocore.session.Session().get_service_model("sns")
    codes = {name: model.shape_for(name).metadata.get("error", {}) for name in model.shape_names}
    for kind in TOPIC_LEAVES:
        if kind in (errors.InvalidToken, errors.ParameterValueInvalid, errors.TaggedResourceNotFound):
            continue  # the model has no exception of its own for them
        error = codes[kind.json_type]
        assert kind.code in (error.get("code", kind.json_type), "ValidationError"), kind  # seen; the model differs
        assert error.get("httpStatusCode", kind.status) == kind.status, kind
