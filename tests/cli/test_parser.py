"""What is not known is told with what was likely meant."""

import pytest

from elasticq.cli import main


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--prot", "1"], "elasticq server: error: unknown option --prot, did you mean --port?"),
        (["--prot=1"], "unknown option --prot, did you mean --port?"),
        (["server", "--admin-prot", "1"], "unknown option --admin-prot, did you mean --admin-port?"),
        (["--xyzzy"], "unknown option --xyzzy: elasticq server --help lists all"),
        (["--memory", "stray"], "elasticq server: error: unrecognized arguments: stray"),
        (["queues", "peek", "q", "--sate", "visible"], "elasticq queues peek: error: unknown option --sate, did you"),
        (["cluster", "status", "--amdin", "x"], "unknown option --amdin, did you mean --admin?"),
        (["queus", "ls"], "invalid choice: 'queus'"),
        (["queus", "ls"], "did you mean queues?"),
        (["queues", "pek"], "did you mean peek?"),
        (["--auth", "strct"], "argument --auth: invalid choice: 'strct'"),
        (["--auth", "strct"], "did you mean strict?"),
    ],
)
def test_what_is_not_known_is_told_with_what_was_meant(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert told in capsys.readouterr().err


def test_what_is_like_nothing_has_no_hint(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["--auth", "0"])
    assert "did you mean" not in capsys.readouterr().err
