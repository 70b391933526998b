"""Makes the members of requests from the classes that the server decodes them into, new members too.

``msgspec.inspect`` gives each class's fields with their types and bounds. For each field there is a sound value, and
extreme ones, each under a label: at the bound, next to it, empty, null, of another type, nested and so on.
"""

import base64
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from msgspec import Struct, inspect

from tests.system.siege.values import (
    HUGE_CHARS,
    HUGE_SHARE,
    INTEGERS,
    ODD_NUMBERS,
    Raw,
    extreme,
    long_text,
    nested,
    text,
    wide,
    write,
)
from tests.system.siege.world import DOCUMENTS, QUEUES, SOUND, TOPICS, World

NEEDED: Final = frozenset((
    "QueueUrl", "QueueName", "TopicArn", "ResourceArn", "SubscriptionArn", "SourceArn", "TaskHandle",
    "ReceiptHandle", "MessageBody", "Message", "Id", "Name", "Protocol", "Endpoint", "GroupName", "ConsumerId",
    "MessageIds", "Label", "Actions", "AWSAccountIds", "ActionName", "AWSAccountId", "Token", "AttributeName",
    "AttributeValue", "VisibilityTimeout", "Priority", "DeliverAt", "TagKeys", "Tags", "Sequence", "Resource",
    "QueueNames", "Key", "Value", "Attributes",
))  # fmt: skip
"""Members that most calls have; others come in one call of three."""
NEEDED_SHARE, OTHER_SHARE, SELDOM_SHARE = 0.97, 0.33, 0.05
OF_FIFO: Final = frozenset(("MessageGroupId", "MessageDeduplicationId", "group", "deduplication_id"))
SELDOM: Final = OF_FIFO | {"ElasticqPageSize", "DelaySeconds", "delay_s", "receipt"}
"""Members that most calls must not have on other queues."""
FENCE: Final = ("ElasticqGroup", "ElasticqToken", "ElasticqPartition")
LARGE_INSTEAD: Final = 262_144
ADDRESSES: Final = ("Arn", "Url", "Endpoint", "QueueName", "QueueNames", "Resource", "PartitionsOf", "to", "queue")

Edge = Callable[[], Any]


@cache
def shape(kind: type[Struct]) -> inspect.StructType:
    found = inspect.type_info(kind)
    assert isinstance(found, inspect.StructType)
    return found


def bare(kind: inspect.Type) -> inspect.Type:
    """Return the type without None as an alternative."""
    if isinstance(kind, inspect.UnionType):
        (kind,) = (each for each in kind.types if not isinstance(each, inspect.NoneType))
    return kind


class Maker:
    """Makes members for the calls of one world. noted: (class, field, label) of all values that were made."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.random = world.random
        self.noted: set[tuple[str, str, str]] = set()

    def members(self, kind: inspect.StructType, spoil: str = "") -> dict[str, Any]:
        """Return members of a request. spoil: the name of the field that is extreme; "*": every third one."""
        found: dict[str, Any] = {}
        is_fenced = self.random.random() < 2 * SELDOM_SHARE
        for field in kind.fields:
            name = field.encode_name
            if name in FENCE and not is_fenced and name != spoil:
                continue
            if name == spoil or (spoil == "*" and self.random.random() < OTHER_SHARE):
                found[name] = self.edge(kind, field)
            elif self.random.random() < self._share(field, kind.cls.__name__):
                self.noted.add((kind.cls.__name__, name, "sound"))
                found[name] = self.sound(field.type, name, kind.cls.__name__)
        if "AttributeName" in found and spoil not in ("AttributeName", "AttributeValue"):
            pairs = self.world.subscription_attribute, self.world.topic_attribute
            found["AttributeName"], found["AttributeValue"] = pairs["Topic" in kind.cls.__name__]()
        return found

    def _share(self, field: inspect.Field, owner: str) -> float:
        name = field.encode_name
        if field.required:
            return 1.0
        if name in SELDOM:
            place = self.world.topic if "Publish" in owner else self.world.queue
            return NEEDED_SHARE if name in OF_FIFO and place.endswith(".fifo") else SELDOM_SHARE
        return NEEDED_SHARE if name in NEEDED or name.endswith("Entries") else OTHER_SHARE

    # Sound values.

    def sound(self, kind: inspect.Type, name: str, owner: str = "") -> Any:
        """Return a value that is probably right. owner: the class that has the member."""
        world, kind = self.world, bare(kind)
        if name in ("Attributes", "attributes"):
            return self._attributes(owner)
        if name == "name" and "Topic" in owner:
            return world.topic
        if name == "QueueUrl" and owner == "Peek" and self.random.random() < 0.2:
            return world.subscription()
        if name in ("Endpoint", "endpoint"):
            return world.endpoint()
        if name in ("Protocol", "protocol"):
            return self.random.choice(("sqs", "sqs", "http", "email", "lambda"))
        if name in SOUND and not (name in ("Tags", "tags") and isinstance(kind, inspect.ListType)):
            return SOUND[name](world)
        if isinstance(kind, inspect.StructType):
            return self.members(kind)
        if isinstance(kind, inspect.ListType):
            items = [self.sound(kind.item_type, name) for _ in range(self.random.choice((1, 2, 3)))]
            return [item | {"Id": str(at)} if isinstance(item, dict) and "Id" in item else item
                    for at, item in enumerate(items)]  # fmt: skip
        if isinstance(kind, inspect.DictType):
            return {"k": self.sound(kind.value_type, name)}
        if isinstance(kind, inspect.LiteralType):
            return self.random.choice(kind.values)
        if isinstance(kind, inspect.BoolType):
            return self.random.random() < 0.5
        if isinstance(kind, (inspect.IntType, inspect.FloatType)):
            return max(self.world.small(), kind.ge or 0, 1 if kind.gt is not None else 0)
        if isinstance(kind, inspect.BytesType):
            return base64.b64encode(b"\0\xff").decode()
        return "a"

    def _attributes(self, owner: str) -> dict[str, str]:
        world = self.world
        if owner in ("CreateQueue", "NewQueue", "QueueDefinition"):
            own = {"FifoQueue": "true"} if world.queue.endswith(".fifo") else {}
            return QUEUES.get(world.queue, own) if self.random.random() < 0.7 else dict([world.queue_attribute()])
        if owner in ("CreateTopic", "TopicDefinition"):
            own = {"FifoTopic": "true"} if world.topic.endswith(".fifo") else {}
            return TOPICS.get(world.topic, own) if self.random.random() < 0.7 else dict([world.topic_attribute()])
        if owner in ("Subscribe", "SubscriptionDefinition"):
            scope = ("FilterPolicyScope", self.random.choice(("MessageBody", "MessageBody", "MessageAttributes")))
            return dict([scope, world.subscription_attribute()])
        return dict([world.queue_attribute() for _ in range(self.random.choice((1, 1, 2)))])

    # Extreme values.

    def edge(self, owner: inspect.StructType, field: inspect.Field, label: str = "") -> Any:
        """Return an extreme value of a field: the one with this label, any without."""
        edges = self.edges(field.type, field.encode_name, owner.cls.__name__)
        if not label:
            found = [each for each in edges if each in ("address", "document")]
            label = self.random.choice(found if found and self.random.random() < 0.4 else list(edges))
        self.noted.add((owner.cls.__name__, field.encode_name, label))
        return edges[label]()

    def edges(self, kind: inspect.Type, name: str, owner: str) -> dict[str, Edge]:
        """Return the extreme values of a type, by label."""
        kind, random = bare(kind), self.random
        found: dict[str, Edge] = {
            "null": lambda: None,
            "another type": lambda: self._another(kind),
            "nested": lambda: nested(random),
            "wide": lambda: wide(random),
        }
        if isinstance(kind, (inspect.StrType, inspect.BytesType)):
            found |= self._texts(kind, name)
        elif isinstance(kind, (inspect.IntType, inspect.FloatType)):
            found |= self._numbers(kind)
        elif isinstance(kind, inspect.StructType):
            found["inside"] = lambda: self.members(kind, random.choice(kind.fields).encode_name)
        elif isinstance(kind, inspect.ListType):
            found |= self._lists(kind, name, owner)
        elif isinstance(kind, inspect.DictType):
            found |= self._maps(kind, name, owner)
        else:
            found["any"] = lambda: extreme(random)
        return found

    def _another(self, kind: inspect.Type) -> Any:
        values: tuple[Any, ...] = ("1", 1, 1.5, True, [], {}, ["1"], {"a": "1"})
        ours = {inspect.StrType: str, inspect.BytesType: str, inspect.IntType: int, inspect.BoolType: bool,
                inspect.ListType: list, inspect.DictType: dict, inspect.StructType: dict}.get(type(kind))  # fmt: skip
        return self.random.choice([value for value in values if type(value) is not ours])

    def _texts(self, kind: inspect.StrType | inspect.BytesType, name: str) -> dict[str, Edge]:
        random = self.random
        found: dict[str, Edge] = {
            "empty": lambda: "",
            "odd": lambda: text(random),
            "long": lambda: long_text(random),
            "number": lambda: str(random.choice(INTEGERS)),
        }
        if kind.max_length is not None:
            bound = kind.max_length
            found |= {
                "below": lambda: self._filled(bound - 1),
                "at": lambda: self._filled(bound),
                "beyond": lambda: self._filled(bound + 1),
            }
        if name.endswith(ADDRESSES):
            found["address"] = self.world.address
        if name in DOCUMENTS or name in ("AttributeValue", "Message", "MessageBody"):
            found["document"] = lambda: self.world.attribute_value(name if name in DOCUMENTS else "FilterPolicy")
        return found

    def _filled(self, length: int) -> str:
        if length > HUGE_CHARS and self.random.random() > HUGE_SHARE:
            length = LARGE_INSTEAD + self.random.choice((-1, 0, 1))
        return self.random.choice("x9é") * length

    def _numbers(self, kind: inspect.IntType | inspect.FloatType) -> dict[str, Edge]:
        random = self.random
        low = kind.ge if kind.ge is not None else kind.gt
        found: dict[str, Edge] = {
            "negative": lambda: -random.choice((1, 2, 10**9)),
            "any": lambda: random.choice(INTEGERS),
            "no integer": lambda: Raw(random.choice(ODD_NUMBERS)),
            "text": lambda: str(random.choice(INTEGERS)),
        }
        for bound, sign in ((low, -1), (kind.le, 1)):
            if bound is not None:
                found |= {
                    f"below {bound}": lambda bound=bound, sign=sign: bound - sign,  # type: ignore[misc]
                    f"at {bound}": lambda bound=bound: bound,  # type: ignore[misc]
                    f"beyond {bound}": lambda bound=bound, sign=sign: bound + sign,  # type: ignore[misc]
                }
        return found

    def _lists(self, kind: inspect.ListType, name: str, owner: str) -> dict[str, Edge]:
        def one() -> Any:
            return self.sound(kind, name, owner)[0]

        def repeated(count: int) -> list[Any]:
            item = one()
            return [item | {"Id": str(at)} if isinstance(item, dict) else item for at in range(count)]

        def one_odd() -> list[Any]:
            edges = self.edges(kind.item_type, name, owner)
            return [one(), edges[self.random.choice(list(edges))]()]

        bound = kind.max_length or 1_000
        return {
            "empty": list, "item": one_odd, "same twice": lambda: [one()] * 2,
            "below": lambda: repeated(bound - 1), "at": lambda: repeated(bound), "beyond": lambda: repeated(bound + 1),
            "eleven": lambda: repeated(11),
        }  # fmt: skip

    def _maps(self, kind: inspect.DictType, name: str, owner: str) -> dict[str, Edge]:
        def filled(count: int) -> dict[str, Any]:
            return {f"k{at}": self.sound(kind.value_type, "") for at in range(count)}

        def one_odd(part: inspect.Type) -> Any:
            edges = self.edges(part, name, owner)
            return edges[self.random.choice(list(edges))]()

        def odd_key() -> dict[str, Any]:
            key = one_odd(kind.key_type)
            return {key if isinstance(key, str) else write(key)[:2_000]: self.sound(kind.value_type, "")}

        def odd_value() -> dict[str, Any]:
            known = self.sound(kind, name, owner) or {"k": None}
            return known | {self.random.choice(list(known)): one_odd(kind.value_type)}

        bound = kind.max_length or 1_000
        return {
            "empty": dict, "key": odd_key, "value": odd_value, "below": lambda: filled(bound - 1),
            "at": lambda: filled(bound), "beyond": lambda: filled(bound + 1), "eleven": lambda: filled(11),
        }  # fmt: skip
