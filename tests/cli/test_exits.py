"""The status of commands that fail or are refused, as scripts and systemd know them, and where the reason goes."""

import pytest

from elasticq.cli.exits import EXIT_DATA_IN_USE, fail, refuse


def test_a_reason_is_told_on_stderr_and_the_status_tells_whose_fault_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert (fail("it broke"), refuse("it is wrong"), EXIT_DATA_IN_USE) == (1, 2, 4)
    out, err = capsys.readouterr()
    assert (out, err) == ("", "elasticq: it broke\nelasticq: it is wrong\n")
