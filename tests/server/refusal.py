"""What is told of a file of settings that cannot be meant."""

from pathlib import Path

import pytest

from elasticq.server.settings import SettingsError, load


def refusal(file: Path, text: str) -> str:
    """What a start with this text as its file says."""
    file.write_text(text)
    with pytest.raises(SettingsError) as caught:
        load(file, {}, {})
    return str(caught.value)
