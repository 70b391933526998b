"""The errors of a client.

ClientError
+- SqsError         the server answered with an error
+- DigestMismatch   a body was damaged on the network
+- Unreachable      no answer: refused, cut, timed out; also an OSError
"""

from typing import Any


class ClientError(Exception):
    """The base of all errors of the light client."""


class SqsError(ClientError):
    """An error answer. ``response`` has the shape of botocore's ClientError.response.

    code: the code of the Query protocol, as in boto3 (AWS.SimpleQueueService.NonExistentQueue), else the type. type:
    the last part of the JSON type (QueueDoesNotExist). status: that of HTTP. sender_fault: a retry cannot help.
    """

    def __init__(self, action: str, code: str, kind: str, message: str, status: int, sender_fault: bool) -> None:
        super().__init__(f"An error occurred ({code}) when calling the {action} operation: {message}")
        self.code = code
        self.type = kind
        self.message = message
        self.status = status
        self.sender_fault = sender_fault
        self.response: dict[str, Any] = {
            "Error": {"Code": code, "Message": message, "Type": "Sender" if sender_fault else "Receiver"},
            "ResponseMetadata": {"HTTPStatusCode": status},
        }
        self._made_of = (action, code, kind, message, status, sender_fault)

    def __reduce__(self) -> tuple[Any, ...]:
        """Support pickling, as Spark sends exceptions from its workers to the driver."""
        return SqsError, self._made_of


class DigestMismatch(ClientError):
    """A body was damaged on the network: its MD5 is not the one in the answer."""


class Unreachable(ClientError, OSError):
    """The server did not answer. It is unknown whether it executed the call."""
