"""The settings of authentication: access keys, origins of web pages, the operators' token, and TLS of a port."""

import re
import ssl
import tomllib
from collections import Counter
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct, field

from elasticq.server.cluster import is_loopback
from elasticq.server.secret_files import check_mode
from elasticq.wire.sigv4 import Key

KEYS_MAX: Final = 10_000
KEYS_FILE_BYTES_MAX: Final = 4_194_304
TOKEN_BYTES_MAX: Final = 4_096
TOKEN_BYTES_MIN: Final = 16
_ORIGIN: Final = re.compile(r"https?://[^/\s*?#@]+\Z")
_HOST: Final = re.compile(r"[A-Za-z0-9._-]{1,253}\Z|\[[0-9A-Fa-f:.]+\]\Z")


class KeyPair(Struct, frozen=True, forbid_unknown_fields=True):
    """One of ``auth.keys``. Without an account it is for ``node.account``. Its secret is never printed."""

    access_key_id: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_]{1,128}$", description="1 to 128 letters, digits and _")]
    secret_access_key: Annotated[str, Meta(min_length=1, max_length=256)]
    account: Annotated[str, Meta(pattern=r"^([0-9]{12})?$", description="empty or a number of 12 digits")] = ""

    def __repr__(self) -> str:
        return f"KeyPair({self.access_key_id!r}, account={self.account!r})"


class Auth(Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of signatures and browsers."""

    mode: Literal["off", "lax", "strict"] = "off"
    keys: Annotated[list[KeyPair], Meta(max_length=KEYS_MAX)] = field(default_factory=list)
    keys_file: str = ""
    csrf: Literal["on", "strict", "off"] = "on"
    allowed_origins: Annotated[list[str], Meta(max_length=256)] = field(default_factory=list)
    allowed_hosts: Annotated[list[str], Meta(max_length=256)] = field(default_factory=list)


class _KeysFile(Struct, forbid_unknown_fields=True):
    keys: Annotated[list[KeyPair], Meta(max_length=KEYS_MAX)]


def keys_of(auth: Auth, default_account: str) -> list[Key]:
    """Return the keys of the settings and of the file that they name. Raise ValueError if they are unusable."""
    pairs = [*auth.keys, *_read_keys(auth.keys_file)]
    counts = Counter(pair.access_key_id for pair in pairs)
    twice = sorted(one for one, count in counts.items() if count > 1)
    if twice:
        raise ValueError(f"auth.keys: {twice[0]} is there twice")
    if auth.mode == "strict" and not pairs:
        raise ValueError("auth.mode strict admits nobody without keys: set auth.keys_file (--keys-file) or auth.keys")
    return [Key(pair.access_key_id, pair.secret_access_key, pair.account or default_account) for pair in pairs]


def contradictions(auth: Auth, default_account: str) -> list[str]:
    """Return a text for each wrong setting. It reads the file that they name."""
    found = [
        f"auth.allowed_origins: {origin!r} is not an origin, such as https://app.example.com"
        for origin in auth.allowed_origins
        if not _ORIGIN.match(origin)
    ]
    found += [
        f"auth.allowed_hosts: {host!r} is not a host name (without a port)"
        for host in auth.allowed_hosts
        if not _HOST.match(host)
    ]
    try:
        keys_of(auth, default_account)
    except ValueError as error:
        found.append(str(error))
    return found


def doubts(auth: Auth, host: str) -> list[str]:
    """Return a text for each setting that works but is likely a mistake. host: where the SQS port listens."""
    if auth.mode == "strict" or is_loopback(host):
        return []
    return [
        f"THE SQS PORT IS OPEN: it listens on {host} with auth {auth.mode}. Anyone who can reach it can read, send and "
        "delete every message. Use --auth strict with --keys-file, or --host 127.0.0.1"
    ]


def _read_keys(keys_file: str) -> list[KeyPair]:
    """Return the keys of a TOML file with [[keys]] tables. An error never contains text of this file of secrets."""
    if not keys_file:
        return []
    text = _read_closed("auth.keys_file", Path(keys_file), KEYS_FILE_BYTES_MAX)
    try:
        return msgspec.convert(tomllib.loads(text), _KeysFile).keys
    except tomllib.TOMLDecodeError:
        raise ValueError(f"auth.keys_file {keys_file} is not TOML with [[keys]] tables") from None
    except msgspec.ValidationError as error:
        raise ValueError(f"auth.keys_file {keys_file}: {error}") from None


def read_token(token_file: str) -> str:
    """Return the operators' token, empty if no file is set. Raise ValueError if the file cannot be used."""
    if not token_file:
        return ""
    token = _read_closed("admin.token_file", Path(token_file), TOKEN_BYTES_MAX).strip()
    if len(token) < TOKEN_BYTES_MIN or not token.isascii() or not token.isprintable() or " " in token:
        raise ValueError(
            f"admin.token_file {token_file} must contain at least {TOKEN_BYTES_MIN} printable ASCII characters"
        )
    return token


def _read_closed(setting: str, path: Path, bytes_max: int) -> str:
    """Return the text of a file with a secret. Raise ValueError if others may read it (secret_files.py)."""
    try:
        check_mode(setting, path, path.stat())
        with path.open("rb") as file:
            content = file.read(bytes_max + 1)
    except OSError as error:
        raise ValueError(f"{setting} {path} cannot be read: {error.strerror or error}") from error
    if len(content) > bytes_max:
        raise ValueError(f"{setting} {path} is longer than {bytes_max} bytes")
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise ValueError(f"{setting} {path} is not UTF-8") from None


def allowed_hosts(auth: Auth, host: str, *public_urls: str) -> list[str]:
    """Return the host names that requests to the port on ``host`` may have, other than those always allowed."""
    return [*auth.allowed_hosts, host, *(urlsplit(url).hostname or "" for url in public_urls)]


def tls_context(section: str, tls_cert: str, tls_key: str) -> ssl.SSLContext | None:
    """Return a TLS context, None without TLS. Raise ValueError if the files cannot be used."""
    if not tls_cert and not tls_key:
        return None
    if not (tls_cert and tls_key):
        raise ValueError(f"{section}.tls_cert and {section}.tls_key go together")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        # An encrypted key is an error: the server cannot ask for its passphrase.
        context.load_cert_chain(tls_cert, tls_key, password=lambda: b"")
    except OSError as error:
        raise ValueError(f"{section}.tls_cert {tls_cert}, {section}.tls_key {tls_key}: {error}") from error
    return context


def shown(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings as plain values, with the secrets replaced."""
    keys = [pair | {"secret_access_key": "(not shown)"} for pair in settings["auth"]["keys"]]
    return settings | {"auth": settings["auth"] | {"keys": keys}}
