"""Every regular expression of the package takes time linear in what it reads, whatever that is.

Patterns are found in the sources. Each is fed lines that get it as far as one of its repetitions, go round there,
and end in a way that does not match, so that it tries whatever else the start could have been.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from re import _constants as ops  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from time import perf_counter
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[1]
ANYWHERE: Final = "search"
WAYS: Final = {"match": "match", "fullmatch": "fullmatch"}
"""How a pattern is used. All other ways look at each place of the text."""
METHODS: Final = {"match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer"}

SIZES: Final = (16, 128, 4_096)
"""Small ones first: exponential and cubic patterns would not come back from the last."""
START_S: Final = 0.000_3
CHARACTER_S: Final = 0.000_001
"""Fifty times what a character costs a linear pattern; a quadratic one takes ten times as much for the last size."""
TRIES: Final = 4

POOL: Final = " \t\n\ra1A_-.,;:=/+%@\"'`(){}[]<>#*\x01é"
ENDS: Final = ("", "\x01", "!", "\n!")


class Use:
    """One pattern in one way of use."""

    def __init__(self, place: str, pattern: str | bytes, flags: int, way: str) -> None:
        self.place, self.way = place, way
        self.compiled = re.compile(pattern, flags)
        self.tree = parser.parse(pattern, flags)
        self.is_bytes = isinstance(pattern, bytes)

    def read(self, text: str) -> float:
        """Seconds that it takes."""
        given: Any = text.encode("latin-1") if self.is_bytes else text
        began_s = perf_counter()
        if self.way == ANYWHERE:
            for _ in self.compiled.finditer(given):
                pass
        else:
            getattr(self.compiled, self.way)(given)
        return perf_counter() - began_s

    def is_linear(self, start: str, pump: str, end: str) -> bool:
        for size in SIZES:
            text = start + pump * (size // len(pump)) + end
            if all(self.read(text) > START_S + CHARACTER_S * len(text) for _ in range(TRIES)):
                return False
        return True

    def worst_lines(self) -> Iterator[tuple[str, str, str]]:
        found = dict.fromkeys([("", ""), *repetitions(self.tree, "")])
        pumps = dict.fromkeys([*POOL, *(body for _, body in found if body)])
        for start in dict.fromkeys(start for start, _ in found):
            for pump in pumps:
                for end in ENDS:
                    yield start, pump, end


def repetitions(tokens: Iterable[Any], before: str) -> Iterator[tuple[str, str]]:
    """(a text that leads to a repetition, a text that it takes)."""
    for op, argument in tokens:
        if op in (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT):
            least, most, body = argument
            if most > 1:
                yield before, example(body)
            yield from repetitions(body, before)
            before += example(body) * least
            continue
        for branch in branches(op, argument):
            yield from repetitions(branch, before)
        before += example([(op, argument)])


def branches(op: Any, argument: Any) -> list[Any]:
    if op is ops.SUBPATTERN:
        return [argument[-1]]
    if op is ops.ATOMIC_GROUP:
        return [argument]
    return list(argument[1]) if op is ops.BRANCH else []


def example(tokens: Iterable[Any]) -> str:
    """A short text that they match."""
    text = ""
    for op, argument in tokens:
        if op is ops.LITERAL:
            text += chr(argument)
        elif op in (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT):
            text += example(argument[2]) * argument[0]
        elif op is ops.ANY:
            text += "a"
        elif op in (ops.IN, ops.NOT_LITERAL):
            text += member(argument if op is ops.IN else [(ops.NEGATE, None), (ops.LITERAL, argument)])
        else:
            inside = branches(op, argument)
            text += example(inside[0]) if inside else ""
    return text


def member(items: list[Any]) -> str:
    """A character of a set."""
    is_negated = items[0][0] is ops.NEGATE
    own = [
        chr(item[1] if item[0] is ops.LITERAL else item[1][0]) for item in items if item[0] in (ops.LITERAL, ops.RANGE)
    ]
    choice = POOL if is_negated else [*own, *POOL]
    return next((one for one in choice if is_member(one, items) is not is_negated), "")


def is_member(one: str, items: list[Any]) -> bool:
    kinds = {
        ops.CATEGORY_DIGIT: str.isdigit,
        ops.CATEGORY_SPACE: str.isspace,
        ops.CATEGORY_WORD: lambda letter: letter.isalnum() or letter == "_",
    }
    for op, argument in items:
        if op is ops.LITERAL and ord(one) == argument:
            return True
        if op is ops.RANGE and argument[0] <= ord(one) <= argument[1]:
            return True
        if op is ops.CATEGORY and argument in kinds and kinds[argument](one):
            return True
    return False


# --- what the sources hold -----------------------------------------------------------


def uses() -> list[Use]:
    trees = {path: ast.parse(path.read_text()) for path in sorted((ROOT / "elasticq").rglob("*.py"))}
    named: dict[str, set[str]] = {}
    for node in (node for tree in trees.values() for node in ast.walk(tree)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr in METHODS:
            named.setdefault(node.value.id, set()).add(node.attr)
    return [use for path, tree in trees.items() for use in uses_in(path, tree, named)]


def uses_in(path: Path, tree: ast.AST, named: dict[str, set[str]]) -> Iterator[Use]:
    names, methods = {}, {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Call):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            names[node.value] = target.id if isinstance(target, ast.Name) else ""
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Call):
            methods[node.value] = {node.attr}
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for node in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        place = f"{path.relative_to(ROOT)}:{node.lineno}"
        called = ast.unparse(node.func)
        if called == "re.compile":
            ways = methods.get(node) or named.get(names.get(node, ""), {ANYWHERE})  # handed on: to be read in any way
        elif called.startswith("re.") and called[3:] in METHODS:
            ways = {called[3:]}
        elif called == "Meta" and (given := [each.value for each in node.keywords if each.arg == "pattern"]):
            yield Use(place, ast.literal_eval(given[0]), 0, ANYWHERE)
            continue
        else:
            continue
        if isinstance(node.args[0], ast.Constant):
            pattern, flags = node.args[0].value, sum(flag_of(flag) for flag in flags_of(node, called))
        else:  # made of parts
            compiled = getattr(import_module(module), names[node])
            pattern, flags = compiled.pattern, compiled.flags
        for way in sorted({WAYS.get(way, ANYWHERE) for way in ways}):
            yield Use(f"{place} by {way}", pattern, flags, way)


def flags_of(node: ast.Call, called: str) -> list[ast.expr]:
    given = [each.value for each in node.keywords if each.arg == "flags"]
    return given or (node.args[1:2] if called == "re.compile" else [])


def flag_of(expression: ast.expr) -> int:
    """re.ASCII, or several of them by |."""
    if isinstance(expression, ast.BinOp):
        return flag_of(expression.left) | flag_of(expression.right)
    assert isinstance(expression, ast.Attribute)
    return int(getattr(re, expression.attr))


USES: Final = uses()


def test_the_sources_patterns_are_found() -> None:
    places = {use.place.partition(":")[0] for use in USES}
    assert {"elasticq/http/connection/head.py", "elasticq/wire/sigv4.py", "elasticq/server/settings.py"} <= places
    assert len(USES) > 60


@pytest.mark.parametrize("use", USES, ids=[use.place for use in USES])
def test_a_pattern_takes_linear_time(use: Use) -> None:
    bad = [line for line in use.worst_lines() if not use.is_linear(*line)]
    assert not bad, use.compiled.pattern


@pytest.mark.parametrize(
    ("pattern", "way"),
    [
        (rb"[a-z]+:[ \t]*([\t\x20-\x7e]*)", "fullmatch"),
        (r"(\d+\.?\d*|\.\d+)\Z", "match"),
        (r"\s*(\d+)\s*([a-z]*)\s*", "fullmatch"),
        (r"^\s*include\s+(a\s*\()?\s*\"", "match"),
        (r"(a+)+b", "match"),
        (r"[a-z]*x", "search"),
    ],
)
def test_a_pattern_that_is_not_linear_is_caught(pattern: str | bytes, way: str) -> None:
    use = Use("", pattern, 0, way)
    assert not all(use.is_linear(*line) for line in use.worst_lines())
