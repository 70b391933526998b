"""Where the light client finds its key and region."""

from pathlib import Path

import pytest

from elasticq.client.credentials import UNSIGNED, Credentials, find_credentials, find_region


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    folder = tmp_path / ".aws"
    folder.mkdir()
    (folder / "credentials").write_text(
        "[default]\naws_access_key_id = D\naws_secret_access_key = d\n"
        "[work]\naws_access_key_id = W\naws_secret_access_key = w%w\naws_session_token = t\n"
    )
    (folder / "config").write_text("[profile work]\nregion = eu-west-1\n[default]\nregion = us-west-2\n")
    return {"HOME": str(tmp_path)}


def test_environment_beats_the_default_profile(home: dict[str, str]) -> None:
    assert find_credentials(environment=home) == Credentials("D", "d")
    given = home | {"AWS_ACCESS_KEY_ID": "E", "AWS_SECRET_ACCESS_KEY": "e", "AWS_SESSION_TOKEN": "s"}
    assert find_credentials(environment=given) == Credentials("E", "e", "s")
    assert find_credentials("work", given) == Credentials("W", "w%w", "t")


def test_profile_of_the_environment_is_taken(home: dict[str, str]) -> None:
    assert find_credentials(environment=home | {"AWS_PROFILE": "work"}).access_key_id == "W"


def test_nothing_found_is_unsigned_and_a_missing_profile_an_error(tmp_path: Path) -> None:
    nowhere = {"HOME": str(tmp_path)}
    assert find_credentials(environment=nowhere) == UNSIGNED
    with pytest.raises(LookupError, match="no credentials for the profile 'work'"):
        find_credentials("work", nowhere)


def test_region_comes_from_environment_or_profile(home: dict[str, str], tmp_path: Path) -> None:
    assert find_region(environment=home) == "us-west-2"
    assert find_region("work", home | {"AWS_REGION": "x"}) == "eu-west-1"
    assert find_region(environment=home | {"AWS_DEFAULT_REGION": "x"}) == "x"
    assert find_region(environment={"HOME": str(tmp_path / "none")}) == "us-east-1"


def test_secret_is_not_shown() -> None:
    assert "secret" not in repr(Credentials("AKID", "secret"))
