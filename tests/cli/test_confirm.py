"""An operator types a word before what cannot be taken back; without a terminal nothing is done."""

import io

import pytest

from elasticq.cli.confirm import NotConfirmed, confirm


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_word_confirms(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", Terminal("jobs\n"))
    confirm("a purge", "Delete? Type the queue's name:", "jobs", "nothing was purged")
    assert capsys.readouterr() == ("", "Delete? Type the queue's name: ")


@pytest.mark.parametrize("typed", ["", "\n", "yes\n", "Jobs\n"])
def test_another_word_and_none_do_not(typed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(typed))
    with pytest.raises(NotConfirmed, match=r"^nothing was purged$"):
        confirm("a purge", "Delete?", "jobs", "nothing was purged")


def test_without_a_terminal_nobody_is_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("jobs\n"))
    with pytest.raises(NotConfirmed, match="a purge cannot be undone, and there is no terminal to ask on: use --ye"):
        confirm("a purge", "Delete?", "jobs", "nothing was purged")
    assert capsys.readouterr() == ("", "")
