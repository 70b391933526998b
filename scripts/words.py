"""A checker of the English in docstrings, comments and pages. It exits with status 1 if it finds unclear words.

It finds banned words, sentences of more than 30 words, and long lines of pages. The rule for writers is 25 words; the
program counts code and lists as words, too. ruff's rule D401 finds docstrings that do not begin with a verb.

    python scripts/words.py [FILE OR FOLDER ...]
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACES = ("elasticq", "scripts", "docs", "README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
SENTENCE_WORDS_MAX = 30
LINE_CHARS_MAX = 200
BANNED = {
    r"tell|tells|told|telling": "report, log, return, describe",
    r"anew": "again",
    r"beside": "next to, as well as",
    r"besides": "as well as, other than",
    r"whoever|whomever": "name the actor",
    r"whichever|whatever comes": "name the thing",
    r"the one whose|of whom|whose it is": "name the owner",
    r"what is beyond|what is over": "name the thing",
    r"mend|mends|mended": "fix",
    r"judge|judges|judged|judging": "validate, check",
    r"gives? back|gave back|given back|giving back": "release, return, end",
    r"leaves? company": "say what happens",
    r"rooms?(?! for\b)": "package; space",
    r"hidden": "in flight, invisible",
    r"stands?(?! (?:for|in for|by|alone|still)\b)": "is",
    r"that is none|is no such thing": "say what it is",
    r"likes it|as it likes": "say what happens",
    r"forth|hence|thereof|therein|wherein|whereof|thereby": "plain words",
    r"as if by|by and by|at one go": "plain words",
    r"bears?|bore|borne": "has, carries",
}
PATTERNS = [(re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE), instead) for pattern, instead in BANNED.items()]
CODE = re.compile(r"``[^`]*``|`[^`]*`|\S*[/_=(){}\[\]<>|\\]\S*?(?=[.,:;!?)]*(?:\s|$))|https?://\S+")
END = re.compile(r"(?<=[.!?;:])[)\"']?\s+|\n\s*\n|\n\s*(?=[-*|#>]|\d+\. )")


def prose(text: str) -> Iterator[str]:
    """Yield the sentences of a text, without its code."""
    yield from (sentence for sentence in END.split(CODE.sub("x", text)) if sentence and "  " not in sentence.strip())


def texts_of(source: str) -> Iterator[tuple[int, str]]:
    """Yield the docstrings and comments of a module: line and text."""
    for node in ast.walk(ast.parse(source)):
        is_documented = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module)
        if is_documented and (found := ast.get_docstring(node, clean=True)):
            yield node.body[0].lineno, found
    comments = [
        token for token in tokenize.generate_tokens(io.StringIO(source).readline) if token.type == tokenize.COMMENT
    ]
    for token in comments:
        yield token.start[0], token.string.lstrip("# ")


def of_text(text: str) -> Iterator[str]:
    """Yield what is wrong with the words of a text."""
    bare = CODE.sub("x", text)
    for pattern, instead in PATTERNS:
        for match in pattern.finditer(bare):
            yield f"{match[0]!r}: write {instead}"
    for sentence in prose(text):
        words = len(re.findall(r"[A-Za-z][\w'-]*", sentence))
        if words > SENTENCE_WORDS_MAX:
            yield f"a sentence of {words} words: {sentence.strip()[:60]!r}"


def of_module(path: Path) -> Iterator[str]:
    """Yield the findings of a Python file."""
    for line, text in texts_of(path.read_text(encoding="utf-8")):
        yield from (f"{line}: {finding}" for finding in of_text(text))


def of_page(path: Path) -> Iterator[str]:
    """Yield the findings of a page in Markdown, outside of blocks of code."""
    is_code, paragraph, first = False, "", 1
    for number, line in enumerate([*path.read_text(encoding="utf-8").splitlines(), ""], 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        if is_code or line.lstrip().startswith(("```", "|")):
            yield from (f"{number}: {finding}" for finding in of_text(line.replace("|", ". ")) if not is_code)
            continue
        if len(line) > LINE_CHARS_MAX:
            yield f"{number}: a line of {len(line)} characters"
        if line.strip() and not line.lstrip().startswith(("-", "*", "#")):
            paragraph += f"{line}\n"
            continue
        yield from (f"{first}: {finding}" for finding in of_text(paragraph))
        paragraph, first = f"{line}\n", number


def main(places: list[str]) -> int:
    """Print the findings of the files, or of all; return 1 if there are any."""
    roots = [Path(place).resolve() for place in places] or [ROOT / place for place in PLACES]
    files = sorted(file for root in roots for file in ([root] if root.is_file() else root.rglob("*")))
    count = 0
    for file in files:
        if file.suffix not in (".py", ".md") or "adr" in file.parts or file.name == Path(__file__).name:
            continue
        for finding in of_module(file) if file.suffix == ".py" else of_page(file):
            count += 1
            print(f"{file.relative_to(ROOT) if file.is_relative_to(ROOT) else file}:{finding}")
    print(f"{count} findings", file=sys.stderr)
    return bool(count)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
