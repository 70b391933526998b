"""Reads application/x-www-form-urlencoded bytes into parameters.

urllib's ``unquote_plus`` costs 5 us for one QueueUrl; here a value without
``%`` and ``+`` is taken as it is, and the others go through
``binascii.a2b_qp``: quoted-printable is percent-encoding with another sign,
and the standard library decodes it in C (1 us for the same QueueUrl, 3 ms
for 1 MiB of escapes). What is malformed is left as it stands by urllib, which
takes 0.4 us for each ``%``, so only a little of it is taken.
"""

from binascii import a2b_qp
from typing import Final
from urllib.parse import unquote_to_bytes

from elasticq.model.errors import InvalidParameterValue, RequestTooLarge
from elasticq.model.limits import FORM_BYTES_MAX, MALFORMED_CHARS_MAX

PARAMETERS_MAX: Final = 2_000  # the largest legal request, a batch of 10 with 10 attributes each, has about 400
URL_CHARS_MAX: Final = 192
UNQUOTED_MAX: Final = 1_024
_unquoted: Final[dict[str, str]] = {}  # a third of the price of lru_cache where it is compiled
_PERCENT: Final = ord("%")
_OWN_SIGNS: Final = b"=\n\r"  # they mean something in quoted-printable, and nothing in a form
_STAND_INS: Final = b"\xff\xfe\xfd"  # these take their places meanwhile: no byte of UTF-8 has such a value
_TO_QUOTED_PRINTABLE: Final = bytes.maketrans(b"+%" + _OWN_SIGNS, b" =" + _STAND_INS)
_FROM_STAND_INS: Final = bytes.maketrans(_STAND_INS, _OWN_SIGNS)


def parse(body: bytes) -> dict[str, str]:
    """The parameters, unquoted; of two with one name the last wins.

    InvalidParameterValue: not UTF-8, more than PARAMETERS_MAX, or too much that is malformed. RequestTooLarge.
    """
    if len(body) > FORM_BYTES_MAX:
        raise RequestTooLarge(f"A form can have at most {FORM_BYTES_MAX} bytes.")
    parameters: dict[str, str] = {}
    malformed_chars = 0
    try:
        pairs = body.decode().split("&", PARAMETERS_MAX)
        if len(pairs) > PARAMETERS_MAX:
            raise InvalidParameterValue(f"A request can have at most {PARAMETERS_MAX} parameters.")
        for pair in pairs:
            name, _, value = pair.partition("=")
            if not ("%" in pair or "+" in pair):
                parameters[name] = value
                continue
            if "%" in value or "+" in value:
                found = _unquote_url(value) if len(value) <= URL_CHARS_MAX else _unquote(value)
                if found is None:
                    malformed_chars += len(value)
                    found = _as_it_stands(value, malformed_chars)
                value = found
            if "%" in name or "+" in name:
                found = _unquote(name)
                if found is None:
                    malformed_chars += len(name)
                    found = _as_it_stands(name, malformed_chars)
                name = found
            parameters[name] = value
    except UnicodeDecodeError as error:
        raise InvalidParameterValue("The request is not valid UTF-8.") from error
    return parameters


def _unquote_url(text: str) -> str | None:
    """As ``_unquote``, remembered: short values that need unquoting are mostly the same few QueueUrls."""
    known = _unquoted.get(text)
    if known is None:
        known = _unquote(text)
        if known is not None:
            if len(_unquoted) >= UNQUOTED_MAX:
                _unquoted.clear()
            _unquoted[text] = known
    return known


def _unquote(text: str) -> str | None:
    """The text without its percent-encoding; None if some % is not followed by two hexadecimal digits."""
    raw = text.encode()
    decoded = a2b_qp(raw.translate(_TO_QUOTED_PRINTABLE))
    if len(decoded) != len(raw) - 2 * raw.count(_PERCENT):
        return None
    # A stand-in that was sent itself is not UTF-8, and is left for "decode" to find.
    if any(sign in raw for sign in _OWN_SIGNS) and all(
        decoded.count(stand_in) == raw.count(sign) for sign, stand_in in zip(_OWN_SIGNS, _STAND_INS, strict=True)
    ):
        decoded = decoded.translate(_FROM_STAND_INS)
    return decoded.decode()


def _as_it_stands(text: str, malformed_chars: int) -> str:
    """A malformed text, as urllib reads it. ``malformed_chars``: in the request so far; too many are refused."""
    if malformed_chars > MALFORMED_CHARS_MAX:
        raise InvalidParameterValue("The request's percent-encoding is malformed.")
    return unquote_to_bytes(text.replace("+", " ")).decode()
