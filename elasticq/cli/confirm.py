"""The question to an operator before an act that cannot be undone. Without a terminal, the act is refused."""

import sys


class NotConfirmed(Exception):
    """An act that the operator did not confirm, or could not be asked about. The text is for the operator."""


def confirm(what: str, question: str, word: str, refused: str) -> None:
    """Return if the operator types ``word``, else raise NotConfirmed.

    what: the act, for the error without a terminal; refused: the error if the operator types another word.
    """
    if not sys.stdin.isatty():
        raise NotConfirmed(f"{what} cannot be undone, and there is no terminal to ask on: use --yes")
    print(question, end=" ", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip() != word:
        raise NotConfirmed(refused)
