"""Parses the command line, and says what was likely meant where an option or a command is not known."""

import argparse
import re
from typing import Any, Final, NoReturn

_NO_CHOICE: Final = re.compile(r"invalid choice: '(?P<given>[^']*)' \(choose from (?P<choices>.*)\)")
_LIKE: Final = 0.5


class Parser(argparse.ArgumentParser):
    """An ArgumentParser, also of each of its commands, whose errors name the nearest option or choice there is."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse, and end the program where something is not known, as only the parser of the command knows its options.

        argparse would hand what is not known to the parser of the whole program, and have that end it.
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
    """Return the end of an error, which names the nearest of the known names; empty if none is near."""
    from difflib import get_close_matches  # wanted only where there is an error

    near = get_close_matches(given, known, 1, _LIKE)
    return f", did you mean {near[0]}?" if near else ""
