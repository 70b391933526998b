"""What the attributes of a standard queue say of how its groups share its receives, and which values they may have."""

from string import punctuation
from typing import Final

from elasticq.model import documents, limits
from elasticq.model.errors import InvalidAttributeValue

FAIRNESS: Final = "ElasticqFairness"
SEPARATOR: Final = "ElasticqGroupSeparator"
WEIGHTS: Final = "ElasticqGroupWeights"
IN_FLIGHT_MAX: Final = "ElasticqMaxInFlightPerGroup"
"""Attributes of a queue."""

SQS, ROUND_ROBIN, WEIGHTED, ADAPTIVE = "sqs", "round_robin", "weighted", "adaptive"
STRATEGIES: Final = (SQS, ROUND_ROBIN, WEIGHTED, ADAPTIVE)
ADAPTIVE_MAX: Final = 10  # the weight of a group that has nothing in flight


class Sharing:
    """The checked attributes of one queue. in_flight_max: of each group; 0: as many as there are.

    weights: of groups and of the beginnings of their names; all others have 1.
    """

    __slots__ = ("in_flight_max", "is_adaptive", "separator", "strategy", "weights")

    def __init__(self, attributes: dict[str, str]) -> None:
        self.strategy = attributes.get(FAIRNESS, SQS)
        self.separator = attributes.get(SEPARATOR, "")
        self.in_flight_max = int(attributes.get(IN_FLIGHT_MAX, 0))
        self.is_adaptive = self.strategy == ADAPTIVE
        is_weighted = self.strategy == WEIGHTED and WEIGHTS in attributes
        self.weights: dict[str, int] = read_weights(attributes[WEIGHTS]) if is_weighted else {}


def sharing_of(attributes: dict[str, str]) -> Sharing | None:
    """Returns how the groups of a queue share; None where they do as in SQS."""
    return Sharing(attributes) if attributes.get(FAIRNESS, SQS) != SQS else None


def check_together(attributes: dict[str, str]) -> None:
    """Raises InvalidAttributeValue where attributes, each right by itself, make no sense together."""
    if int(attributes.get(IN_FLIGHT_MAX) or 0) and attributes.get(FAIRNESS, SQS) == SQS:
        others = ", ".join(STRATEGIES[1:-1])
        raise InvalidAttributeValue(
            f"Invalid value for the parameter {IN_FLIGHT_MAX}. "
            f"Reason: It needs {FAIRNESS} to be {others} or {STRATEGIES[-1]}."
        )


def check_separator(name: str, value: str) -> str:
    """Raises InvalidAttributeValue."""
    if value and (len(value) > 1 or value not in punctuation):
        raise InvalidAttributeValue(f"Invalid value for the parameter {name}. Reason: Must be a punctuation character.")
    return value


def check_weights(name: str, value: str) -> str:
    """Raises InvalidAttributeValue. Groups that the queue does not have may have a weight: they may come."""
    if value:
        try:
            read_weights(value)
        except ValueError as error:
            raise InvalidAttributeValue(f"Invalid value for the parameter {name}. Reason: {error}") from None
    return value


def read_weights(value: str) -> dict[str, int]:
    """Returns the weights by name. Raises ValueError, whose text says what is wrong."""
    try:
        weights = documents.read(value)
    except documents.Unreadable:
        weights = None
    if not isinstance(weights, dict):
        raise ValueError("Must be a JSON map of groups and their weights.")
    if len(weights) > limits.GROUP_WEIGHTS_MAX:
        raise ValueError(f"Must have at most {limits.GROUP_WEIGHTS_MAX} weights.")
    for weight in weights.values():
        if type(weight) is not int or not 1 <= weight <= limits.GROUP_WEIGHT_MAX:
            raise ValueError(f"A weight must be an integer between 1 and {limits.GROUP_WEIGHT_MAX}.")
    return weights
