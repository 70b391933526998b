"""The access key and the region, from the same places as in boto3: the environment, then profiles."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple


class Credentials(NamedTuple):
    """An access key. All parts are empty if calls are not signed."""

    access_key_id: str
    secret_access_key: str
    session_token: str = ""

    def __repr__(self) -> str:
        return f"Credentials({self.access_key_id!r})"


UNSIGNED: Final = Credentials("", "")
NOBODY: Final = Credentials("anonymous", "anonymous")
"""The placeholder key of a caller without credentials."""

REGION_DEFAULT: Final = "us-east-1"


def find_credentials(profile: str = "", environment: Mapping[str, str] | None = None) -> Credentials:
    """Return the credentials of ``profile`` if given, else of the environment, else of AWS_PROFILE or ``default``.

    Return UNSIGNED if there are none. Raise LookupError if a named profile does not exist or has no key.
    """
    variables = os.environ if environment is None else environment
    if not profile:
        key_id, secret = variables.get("AWS_ACCESS_KEY_ID", ""), variables.get("AWS_SECRET_ACCESS_KEY", "")
        if key_id and secret:
            return Credentials(key_id, secret, variables.get("AWS_SESSION_TOKEN", ""))
    named = profile or variables.get("AWS_PROFILE", "")
    found = _of_profile(named or "default", variables)
    if found is None and named:
        raise LookupError(f"no credentials for the profile {named!r}")
    return found or UNSIGNED


def find_region(profile: str = "", environment: Mapping[str, str] | None = None) -> str:
    """Return the first of: AWS_REGION, AWS_DEFAULT_REGION, the profile's region, us-east-1."""
    variables = os.environ if environment is None else environment
    given = variables.get("AWS_REGION") or variables.get("AWS_DEFAULT_REGION")
    if given and not profile:
        return given
    name = profile or variables.get("AWS_PROFILE") or "default"
    for section in (f"profile {name}", name):
        region = _section(variables, "AWS_CONFIG_FILE", "config", section).get("region")
        if region:
            return region
    return given or REGION_DEFAULT


def _of_profile(name: str, variables: Mapping[str, str]) -> Credentials | None:
    for variable, file, section in (
        ("AWS_SHARED_CREDENTIALS_FILE", "credentials", name),
        ("AWS_CONFIG_FILE", "config", f"profile {name}"),
        ("AWS_CONFIG_FILE", "config", name),
    ):
        values = _section(variables, variable, file, section)
        key_id, secret = values.get("aws_access_key_id", ""), values.get("aws_secret_access_key", "")
        if key_id and secret:
            return Credentials(key_id, secret, values.get("aws_session_token", ""))
    return None


def _section(variables: Mapping[str, str], variable: str, file: str, section: str) -> Mapping[str, str]:
    import configparser  # here, as most programs find their key in the environment

    home = variables.get("HOME")
    default = Path(home) if home else Path("~").expanduser()
    path = Path(variables.get(variable) or default / ".aws" / file).expanduser()
    parser = configparser.RawConfigParser()
    try:
        parser.read(path, encoding="utf-8")
    except (OSError, configparser.Error, UnicodeDecodeError):
        return {}
    return parser[section] if parser.has_section(section) else {}
