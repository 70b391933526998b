"""What the pages for operators quote is what the server says: each quoted line is a text of the sources.

A quote is a line such as ``> `The disk is full: …` ``, where … stands for what is filled in.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGES = ("troubleshooting.md", "upgrade.md")
QUOTE = re.compile(r"^> `(.+)`$", re.MULTILINE)
FILLED_IN = re.compile(r"%(?:[-+0-9.]*[sdr])|…")
QUOTES = [(page, quote) for page in PAGES for quote in QUOTE.findall((ROOT / "docs" / page).read_text("utf-8"))]


@cache
def texts() -> tuple[str, ...]:
    """All texts of the package, with … for what is filled in."""
    return tuple(text for path in sorted((ROOT / "elasticq").rglob("*.py")) for text in _texts(path.read_text("utf-8")))


def _texts(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            parts = (str(each.value) if isinstance(each, ast.Constant) else "…" for each in node.values)
            yield FILLED_IN.sub("…", "".join(parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield FILLED_IN.sub("…", node.value)


def is_said(quote: str) -> bool:
    """Whether a text of the sources has the quote's words, in their order and with nothing between but what … is."""
    words = [re.escape(part) for part in quote.split("…")]
    pattern = re.compile("…".join(words).removesuffix("…").removeprefix("…"))
    return any(pattern.search(text) for text in texts())


@pytest.mark.parametrize(("page", "quote"), QUOTES)
def test_what_is_quoted_is_said(page: str, quote: str) -> None:
    assert is_said(quote), f"{page}: nothing says {quote!r}"


def test_reasons_of_refused_links_are_those_that_are_logged() -> None:
    table = (ROOT / "docs" / "troubleshooting.md").read_text("utf-8").partition("| reason | cure |")[2]
    reasons = re.findall(r"^\| `(\w+)` \|", table.partition("\n\n")[0], re.MULTILINE)
    assert len(reasons) > 3
    assert [reason for reason in reasons if reason not in texts()] == []


def test_pages_quote_much_of_what_is_said() -> None:
    assert len(QUOTES) > 25


@pytest.mark.parametrize("quote", ["The disk is fuller: …", "… is damaged at bite …", "read-only: … of members"])
def test_what_nobody_says_is_found(quote: str) -> None:
    assert not is_said(quote)
