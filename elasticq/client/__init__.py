"""The light client of a server, and consumers of groups, made with the standard library alone.

``Sqs`` has the methods, keywords and answers of boto3's SQS client at an eighth of its CPU time. It also has those of
elasticq's extensions. ``Sns`` has those of boto3's SNS client. ``Group`` and ``AsyncGroup`` are consumers of groups.
No other package is needed, so the client runs where none can be installed, such as on the executors of Spark.

A name is imported when it is first used. So a program that needs only ``Sqs`` does not load groups and asyncio.
"""

from typing import TYPE_CHECKING, Final

from elasticq import lazily

if TYPE_CHECKING:
    from elasticq.client.credentials import UNSIGNED, Credentials, find_credentials
    from elasticq.client.detection import is_elasticq
    from elasticq.client.errors import ClientError, DigestMismatch, SqsError, Unreachable
    from elasticq.client.group import Group
    from elasticq.client.group_async import AsyncGroup
    from elasticq.client.group_held import AsyncMessage, Held, Message
    from elasticq.client.patient import wrap
    from elasticq.client.patient_async import wrap_async
    from elasticq.client.sns import Sns
    from elasticq.client.sqs import Sqs

__all__ = [
    "UNSIGNED",
    "AsyncGroup",
    "AsyncMessage",
    "ClientError",
    "Credentials",
    "DigestMismatch",
    "Group",
    "Held",
    "Message",
    "Sns",
    "Sqs",
    "SqsError",
    "Unreachable",
    "find_credentials",
    "is_elasticq",
    "wrap",
    "wrap_async",
]

_PLACES: Final = {
    "UNSIGNED": "credentials",
    "AsyncGroup": "group_async",
    "AsyncMessage": "group_held",
    "ClientError": "errors",
    "Credentials": "credentials",
    "DigestMismatch": "errors",
    "Group": "group",
    "Held": "group_held",
    "Message": "group_held",
    "Sns": "sns",
    "Sqs": "sqs",
    "SqsError": "errors",
    "Unreachable": "errors",
    "find_credentials": "credentials",
    "is_elasticq": "detection",
    "wrap": "patient",
    "wrap_async": "patient_async",
}
"""The module of this package that defines each name."""

__getattr__, __dir__ = lazily.names(globals(), _PLACES)
