"""A parser of the command line whose errors suggest the most similar option or command."""

import argparse
import re
from typing import Any, Final, NoReturn

_NO_CHOICE: Final = re.compile(r"invalid choice: '(?P<given>[^']*)' \(choose from (?P<choices>.*)\)")
_LIKE: Final = 0.5
_VERY_LIKE: Final = 0.8
DESTRUCTIVE: Final = frozenset(
    (
        "cancel",
        "delete",
        "drain",
        "force-new",
        "purge",
        "redrive",
        "remove",
        "repair",
        "replace",
        "restore",
        "transfer",
        "unsubscribe",
        "--cancel",
        "--delete",
        "--drain",
        "--yes",
    )
)
"""Commands and options that end or move something. They are suggested only for a name that is almost theirs."""


class Parser(argparse.ArgumentParser):
    """An ArgumentParser, also for each of its commands, whose errors suggest the most similar option or choice."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse the arguments. End the program if one is unknown.

        argparse would pass unknown arguments on to the parser of the whole program. Only the parser of the command
        knows the options that it can suggest.
        """
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"{self._what(unknown)}")
        return found, unknown

    def error(self, message: str) -> NoReturn:
        no_choice = _NO_CHOICE.search(message)
        if no_choice is not None:
            message += did_you_mean(no_choice["given"], re.findall(r"[\w-]+", no_choice["choices"]))
        super().error(message)

    def _what(self, unknown: list[str]) -> str:
        option = next((each.partition("=")[0] for each in unknown if each.startswith("-")), "")
        if not option:
            return f"unrecognized arguments: {' '.join(unknown)}"
        known = [name for name in self._option_string_actions if name.startswith("--")]
        return f"unknown option {option}{did_you_mean(option, known) or f': {self.prog} --help lists all'}"


def did_you_mean(given: str, known: list[str]) -> str:
    """Return the end of an error text that suggests the most similar known name, empty if none is similar.

    An operator may run the suggestion without a second look. So a destructive name is suggested only if the given one
    clearly is a misspelling of it, and of no harmless name.
    """
    from difflib import get_close_matches  # needed only after an error

    near = get_close_matches(given, known, max(1, len(known)), _LIKE)
    clear = [name for name in near if _is_misspelling(given, name)]
    harmless = [name for name in clear or near if name not in DESTRUCTIVE]
    found = harmless or clear
    return f", did you mean {found[0]}?" if found else ""


def _is_misspelling(given: str, name: str) -> bool:
    from difflib import SequenceMatcher

    is_same_start = given.lstrip("-")[:1] == name.lstrip("-")[:1] or name not in DESTRUCTIVE
    return is_same_start and SequenceMatcher(None, given, name).ratio() >= _VERY_LIKE
