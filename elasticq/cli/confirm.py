"""Asks an operator on the terminal before what cannot be taken back; where there is no terminal, it is refused."""

import sys


class NotConfirmed(Exception):
    """The operator did not confirm, or could not be asked; the text is for the operator."""


def confirm(what: str, question: str, word: str, refused: str) -> None:
    """Return if the operator types ``word``. Raises NotConfirmed.

    what: names the act where nobody can be asked; refused: what is told to an operator who typed something else.
    """
    if not sys.stdin.isatty():
        raise NotConfirmed(f"{what} cannot be taken back, and there is no terminal to ask on: say --yes")
    print(question, end=" ", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip() != word:
        raise NotConfirmed(refused)
