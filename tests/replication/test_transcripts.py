"""What members do, step by step, is what stands in transcripts/*.txt; REWRITE=1 writes it anew, to be read."""

import os
from pathlib import Path

import pytest

from tests.replication.transcript import play

FILES = sorted((Path(__file__).parent / "transcripts").glob("*.txt"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_transcript_tells_what_happens(file: Path) -> None:
    written = file.read_text()
    played = play(written)
    if os.environ.get("REWRITE"):
        file.write_text(played)
    else:
        assert played == written


def test_there_are_transcripts() -> None:
    assert len(FILES) >= 10
