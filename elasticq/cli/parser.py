"""A parser of the command line whose errors suggest the most similar option or command."""

import argparse
import re
from typing import Any, Final, NoReturn

_NO_CHOICE: Final = re.compile(r"invalid choice: '(?P<given>[^']*)' \(choose from (?P<choices>.*)\)")
_LIKE: Final = 0.5


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
    """Return the end of an error text that suggests the most similar known name, empty if none is similar."""
    from difflib import get_close_matches  # needed only after an error

    near = get_close_matches(given, known, 1, _LIKE)
    return f", did you mean {near[0]}?" if near else ""
