"""The errors that clients can get: a class per AWS code.

SqsError
├── SenderError             the caller's fault: HTTP 400 unless the class has another status
│   └── TopicError          an error of SNS
└── ReceiverError           the server's fault: HTTP 5xx, which SDKs retry

``code`` is the code of the Query protocol. ``json_type`` is the end of
``__type`` in JSON 1.0. Sources: the error tables of the SQS API reference, and
recordings of the service (PurgeQueueInProgress and OverLimit answer 403, a
missing resource of a move task 404).
"""

from typing import ClassVar, Self

from elasticq.model.limits import ERROR_CHARS_MAX, QUOTED_CHARS_MAX


def quoted(text: str) -> str:
    """Return a client's text, cut to the length that an error may repeat."""
    return text if len(text) <= QUOTED_CHARS_MAX else f"{text[:QUOTED_CHARS_MAX]}..."


class SqsError(Exception):
    """An error answer: ``code``, ``json_type``, HTTP ``status`` and message. text: the message if none is given."""

    code: ClassVar[str] = "InternalFailure"
    json_type: ClassVar[str] = "InternalFailure"
    status: ClassVar[int] = 500
    sender_fault: ClassVar[bool] = True
    text: ClassVar[str] = ""

    def __init__(self, message: str = "") -> None:
        self.message = (message or self.text)[:ERROR_CHARS_MAX]
        super().__init__(self.message)

    def without_frames(self) -> Self:
        """Return this error without its traceback. Call this for an error that is kept until it is answered.

        The traceback refers to frames, and so to the request. A frame may also refer to the answer, which refers to
        this error. The garbage collector cannot free such a cycle, because it does not track answers (``gc=False``).
        """
        self.__traceback__ = self.__context__ = self.__cause__ = None
        return self


class SenderError(SqsError):
    status = 400


class ReceiverError(SqsError):
    status = 500
    sender_fault = False


def _simple(name: str) -> tuple[str, str]:
    return f"AWS.SimpleQueueService.{name}", name


class QueueDoesNotExist(SenderError):
    code, json_type = "AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"
    text = "The specified queue does not exist."


class QueueNameExists(SenderError):
    code, json_type = "QueueAlreadyExists", "QueueNameExists"


class QueueDeletedRecently(SenderError):
    code, json_type = _simple("QueueDeletedRecently")


class PurgeQueueInProgress(SenderError):
    code, json_type = _simple("PurgeQueueInProgress")
    status = 403


class TooManyEntriesInBatchRequest(SenderError):
    code, json_type = _simple("TooManyEntriesInBatchRequest")


class BatchEntryIdsNotDistinct(SenderError):
    code, json_type = _simple("BatchEntryIdsNotDistinct")


class InvalidBatchEntryId(SenderError):
    code, json_type = _simple("InvalidBatchEntryId")
    text = (
        "A batch entry id can only contain alphanumeric characters, hyphens and underscores. "
        "It can be at most 80 letters long."
    )


class BatchRequestTooLong(SenderError):
    code, json_type = _simple("BatchRequestTooLong")


class EmptyBatchRequest(SenderError):
    code, json_type = _simple("EmptyBatchRequest")


class UnsupportedOperation(SenderError):
    code, json_type = _simple("UnsupportedOperation")


class InvalidParameterValue(SenderError):
    code, json_type = "InvalidParameterValue", "InvalidParameterValueException"


class MissingParameter(SenderError):
    code, json_type = "MissingParameter", "MissingRequiredParameterException"


class InvalidAttributeName(SenderError):
    code, json_type = "InvalidAttributeName", "InvalidAttributeName"


class InvalidAttributeValue(SenderError):
    code, json_type = "InvalidAttributeValue", "InvalidAttributeValue"


class ReceiptHandleIsInvalid(SenderError):
    code, json_type = "ReceiptHandleIsInvalid", "ReceiptHandleIsInvalid"


class LeaseExpired(SenderError):
    """Not an error of AWS: the lease has ended. Its time is over, it was committed, or its consumer ended it."""

    code, json_type = "LeaseExpired", "LeaseExpired"


class ElasticqGroupDoesNotExist(SenderError):
    """Not an error of AWS: there is no consumer group of this name."""

    code, json_type = "ElasticqGroupDoesNotExist", "ElasticqGroupDoesNotExist"
    text = "The specified consumer group does not exist."


class ElasticqUnknownConsumer(SenderError):
    """Not an error of AWS: the group has no such consumer. Its session ended, it left, or it never joined."""

    code, json_type = "ElasticqUnknownConsumer", "ElasticqUnknownConsumer"
    text = "The group has no such consumer: its session is over, it left, or it never joined."


class ElasticqNotHolder(SenderError):
    """Not an error of AWS: the call's ElasticqToken is not that of the resource's current assignment."""

    code, json_type = "ElasticqNotHolder", "ElasticqNotHolder"
    text = "The token is not that of a consumer which holds this queue in the group now."


class ResourceNotFound(SenderError):
    """The queue or move task that an action on move tasks names does not exist."""

    code, json_type = "ResourceNotFoundException", "ResourceNotFoundException"
    status = 404


class InvalidMessageContents(SenderError):
    code, json_type = "InvalidMessageContents", "InvalidMessageContents"


class OverLimit(SenderError):
    code, json_type = "OverLimit", "OverLimit"
    status = 403


class MessageNotInflight(SenderError):
    """An error of the service model. For SQS, AWS and elasticq answer InvalidParameterValue instead."""

    code, json_type = _simple("MessageNotInflight")


class AccessDenied(SenderError):
    """The queue's policy does not allow the call, or a web page may have sent it."""

    code, json_type = "AccessDenied", "AccessDeniedException"
    status = 403


class MissingAuthenticationToken(SenderError):
    """The request is not signed, but must be."""

    code, json_type = "MissingAuthenticationToken", "MissingAuthenticationTokenException"
    status = 403


class IncompleteSignature(SenderError):
    """The signature does not have AWS's form. The status is 403, as for all refused callers (AWS's pages list 400)."""

    code, json_type = "IncompleteSignature", "IncompleteSignatureException"
    status = 403


class InvalidClientTokenId(SenderError):
    """The access key is unknown."""

    code, json_type = "InvalidClientTokenId", "UnrecognizedClientException"
    status = 403


class SignatureDoesNotMatch(SenderError):
    """The signature belongs to another request, or to another time."""

    code, json_type = "SignatureDoesNotMatch", "InvalidSignatureException"
    status = 403


class RequestThrottled(SenderError):
    """The memory of recent calls is full. Senders must wait, because the server must recognise every retry."""

    code, json_type = "RequestThrottled", "RequestThrottled"
    status = 403


class InvalidRequest(SenderError):
    """An error of LocalStack: a request to its path of messages names another action."""

    code, json_type = "InvalidRequest", "InvalidRequest"


class InvalidAction(SenderError):
    """Query: the Action is unknown, or not valid for a queue's URL."""

    code, json_type = "InvalidAction", "InvalidAction"


class MissingAction(SenderError):
    """Query: the form has no Action."""

    code, json_type = "MissingAction", "MissingAction"


class UnknownOperation(SenderError):
    """JSON 1.0: the X-Amz-Target is unknown."""

    code, json_type = "UnknownOperationException", "UnknownOperationException"


class SerializationError(SenderError):
    """JSON 1.0: the body is not JSON or a member has the wrong type."""

    code, json_type = "SerializationException", "SerializationException"


class RequestTooLarge(SenderError):
    """The request is larger than any legal one, so it is refused before it is read."""

    code, json_type = "RequestEntityTooLarge", "RequestEntityTooLarge"
    status = 413


class TopicError(SenderError):
    """Base of the errors of SNS, which has no JSON 1.0. Sources: botocore's model, and recordings of the service."""


class InvalidParameter(TopicError):
    """A parameter is not valid. The text begins with "Invalid parameter: " (see ``invalid_parameter``)."""

    code, json_type = "InvalidParameter", "InvalidParameterException"


def invalid_parameter(text: str) -> InvalidParameter:
    """Return the error. ``text``: AWS's text about the parameter, without "Invalid parameter: "."""
    return InvalidParameter(f"Invalid parameter: {text}")


class InvalidToken(TopicError):
    """The confirmation token is malformed."""

    code, json_type = "InvalidParameter", "InvalidToken"


class ParameterValueInvalid(TopicError):
    code, json_type = "ParameterValueInvalid", "ParameterValueInvalid"


class TopicValidationError(TopicError):
    code, json_type = "ValidationError", "ValidationException"


class TopicNotFound(TopicError):
    """The topic or subscription does not exist."""

    code, json_type = "NotFound", "NotFoundException"
    status = 404


class TaggedResourceNotFound(TopicError):
    code, json_type = "ResourceNotFound", "TaggedResourceNotFound"
    status = 404
    text = "Resource does not exist"


class AuthorizationError(TopicError):
    code, json_type = "AuthorizationError", "AuthorizationErrorException"
    status = 403


class TopicLimitExceeded(TopicError):
    code, json_type = "TopicLimitExceeded", "TopicLimitExceededException"
    status = 403


class SubscriptionLimitExceeded(TopicError):
    code, json_type = "SubscriptionLimitExceeded", "SubscriptionLimitExceededException"
    status = 403


class TagLimitExceeded(TopicError):
    code, json_type = "TagLimitExceeded", "TagLimitExceededException"


class TopicThrottled(TopicError):
    """Too many messages wait for their delivery. SDKs retry."""

    code, json_type = "Throttled", "ThrottledException"
    status = 429


class EmptyPublishBatch(TopicError):
    code, json_type = "EmptyBatchRequest", "EmptyBatchRequestException"


class TooManyEntriesInPublishBatch(TopicError):
    code, json_type = "TooManyEntriesInBatchRequest", "TooManyEntriesInBatchRequestException"


class PublishBatchIdsNotDistinct(TopicError):
    code, json_type = "BatchEntryIdsNotDistinct", "BatchEntryIdsNotDistinctException"


class InvalidPublishBatchId(TopicError):
    code, json_type = "InvalidBatchEntryId", "InvalidBatchEntryIdException"


class PublishBatchTooLong(TopicError):
    code, json_type = "BatchRequestTooLong", "BatchRequestTooLongException"


class ServiceUnavailable(ReceiverError):
    """There is no master or no quorum, or a bound is reached. A retry is safe."""

    code, json_type = "ServiceUnavailable", "ServiceUnavailable"
    status = 503


class InternalFailure(ReceiverError):
    """A fault of the server. Its log has the details; the answer has none."""

    code, json_type = "InternalFailure", "InternalFailure"
    text = "We encountered an internal error. Please try again."
