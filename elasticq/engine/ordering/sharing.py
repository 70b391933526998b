"""The attributes of a standard queue that configure how its groups share receives, and their checks."""

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
    """The checked attributes of one queue.

    - in_flight_max: How many messages of each group may be in flight. 0: no limit.
    - weights: The weights of groups, or of prefixes of their names. All others have weight 1.
    """

    __slots__ = ("in_flight_max", "is_adaptive", "separator", "strategy", "weights")

    def __init__(self, attributes: dict[str, str]) -> None:
        self.strategy = attributes.get(FAIRNESS, SQS)
        self.separator = attributes.get(SEPARATOR, "")
        self.in_flight_max = int(attributes.get(IN_FLIGHT_MAX, 0))
        self.is_adaptive = self.strategy == ADAPTIVE
        is_weighted = self.strategy == WEIGHTED and WEIGHTS in attributes
        self.weights: dict[str, int] = read_weights(attributes[WEIGHTS]) if is_weighted else {}

    def is_same(self, other: "Sharing") -> bool:
        """Return whether groups share equally by both."""
        own = (self.strategy, self.separator, self.in_flight_max, self.weights)
        return own == (other.strategy, other.separator, other.in_flight_max, other.weights)


def sharing_of(attributes: dict[str, str]) -> Sharing | None:
    """Return how the groups of a queue share receives; None if they share as on SQS."""
    return Sharing(attributes) if attributes.get(FAIRNESS, SQS) != SQS else None


def check_together(attributes: dict[str, str]) -> None:
    """Raise InvalidAttributeValue if the attributes, each valid by itself, contradict each other."""
    if int(attributes.get(IN_FLIGHT_MAX) or 0) and attributes.get(FAIRNESS, SQS) == SQS:
        others = ", ".join(STRATEGIES[1:-1])
        raise InvalidAttributeValue(
            f"Invalid value for the parameter {IN_FLIGHT_MAX}. "
            f"Reason: It needs {FAIRNESS} to be {others} or {STRATEGIES[-1]}."
        )


def check_separator(name: str, value: str) -> str:
    """Return the value. Raise InvalidAttributeValue if it is neither empty nor one punctuation character."""
    if value and (len(value) > 1 or value not in punctuation):
        raise InvalidAttributeValue(f"Invalid value for the parameter {name}. Reason: Must be a punctuation character.")
    return value


def check_weights(name: str, value: str) -> str:
    """Return the value. Raise InvalidAttributeValue if it is not a map of valid weights.

    Weights of groups that the queue does not have are valid, because such groups may come later.
    """
    if value:
        try:
            read_weights(value)
        except ValueError as error:
            raise InvalidAttributeValue(f"Invalid value for the parameter {name}. Reason: {error}") from None
    return value


def read_weights(value: str) -> dict[str, int]:
    """Return the weights by name. Raise ValueError with a text that describes what is wrong."""
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
