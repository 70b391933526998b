"""Form bytes in, parameters out, with urllib as the yardstick."""

from base64 import b64encode
from urllib.parse import quote_plus, unquote_plus, unquote_to_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elasticq.model.errors import InvalidParameterValue, RequestTooLarge
from elasticq.model.limits import BODY_BYTES_MAX, FORM_BYTES_MAX, MALFORMED_CHARS_MAX
from elasticq.wire import form


@pytest.mark.parametrize(
    ("body", "parameters"),
    [
        (b"a=1&b=2", {"a": "1", "b": "2"}),
        (b"a=1&a=2", {"a": "2"}),
        (b"a", {"a": ""}),
        (b"a=b=c", {"a": "b=c"}),
        (b"a=x+y%20z%2B", {"a": "x y z+"}),
        (b"a%2E1+b=1", {"a.1 b": "1"}),
        (b"a=%3D%26%3d%253D", {"a": "=&=%3D"}),
        (b"a=\xc3\xa4%C3%A4", {"a": "\u00e4\u00e4"}),
        (b"a=%", {"a": "%"}),
        (b"a=%4&b=%zz%41", {"a": "%4", "b": "%zzA"}),
        (b"a=%%41=", {"a": "%A="}),
        (b"a=%\nb%\r\nc", {"a": "%\nb%\r\nc"}),
        (b"a=%0D%0A%00", {"a": "\r\n\x00"}),
        (b"a=+_=3D_+%20", {"a": " _=3D_  "}),
        (b"", {"": ""}),
    ],
)
def test_form_is_unquoted(body: bytes, parameters: dict[str, str]) -> None:
    assert form.parse(body) == parameters


@pytest.mark.parametrize("body", [b"a=%FF", b"a=\xff", b"%ff=1", b"a=%ED%A0%80", b"a=%ff%zz"])
def test_form_that_is_no_utf_8_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidParameterValue):
        form.parse(body)


def test_more_short_values_than_are_remembered_are_read_all_the_same() -> None:
    for _ in range(2):
        for number in range(form.UNQUOTED_MAX + 10):
            assert form.parse(b"a=%%2F%d+&b=%%zz" % number) == {"a": f"/{number} ", "b": "%zz"}


def test_number_of_parameters_is_bounded() -> None:
    assert len(form.parse(b"&".join(b"%d=" % number for number in range(form.PARAMETERS_MAX)))) == form.PARAMETERS_MAX
    with pytest.raises(InvalidParameterValue):
        form.parse(b"&" * form.PARAMETERS_MAX)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_what_urllib_quotes_is_read_back(text: str) -> None:
    assert form.parse(f"a={quote_plus(text)}".encode()) == {"a": text}


@given(st.text(st.sampled_from("%=+4aAfF\n\r x")))
def test_malformed_values_are_read_as_urllib_reads_them(text: str) -> None:
    try:
        expected = unquote_plus(text, errors="strict")
    except UnicodeDecodeError:
        expected = None
    if expected is None:
        with pytest.raises(InvalidParameterValue):
            form.parse(f"a={text}".encode())
    else:
        assert form.parse(f"a={text}".encode()) == {"a": expected}


def test_all_of_a_large_form_is_decoded_in_c(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted by who decodes, not by the clock: urllib takes half a second for 1 MiB of percent signs."""
    malformed: list[int] = []

    def plain(text: str) -> bytes:
        malformed.append(len(text))
        return unquote_to_bytes(text)

    monkeypatch.setattr(form, "unquote_to_bytes", plain)
    for unit, decoded in (
        (b"%41", "A"),
        (b"+", " "),
        (b"=", "="),
        (b"%0a\n", "\n\n"),
        (b"%3D=%0D\r", "==\r\r"),
        (b"a%C3%A4", "aä"),
    ):
        assert form.parse(b"%41=+" + unit * 100_000) == {"A": " " + decoded * 100_000}
    assert not malformed
    for unit in (b"%", b"%4", b"%\n", b"%41%", b"%zz"):
        for body in (b"a=" + unit * 1_000_000, unit * 1_000_000, b"&".join([b"a=" + unit * 1_000] * 1_000)):
            with pytest.raises(InvalidParameterValue, match="percent-encoding"):
                form.parse(body)
            assert sum(malformed) <= MALFORMED_CHARS_MAX
            malformed.clear()


@given(
    st.lists(st.sampled_from(["%41", "%3D", "%0a", "%0D", "%C3%A4", "=", "\n", "\r", "+", "ä", "%FF", "%fe", "%Fd"]))
)
def test_signs_of_quoted_printable_mean_nothing(parts: list[str]) -> None:
    text = "".join(parts)
    is_utf_8 = not any(part in text for part in ("%FF", "%fe", "%Fd"))
    if is_utf_8:
        assert form.parse(f"a={text}".encode()) == {"a": unquote_plus(text)}
    else:
        with pytest.raises(InvalidParameterValue):
            form.parse(f"a={text}".encode())


def test_a_form_is_as_long_as_the_largest_batch_can_be() -> None:
    each_escaped = b"MessageBody=" + b"%2F" * len(b64encode(bytes(BODY_BYTES_MAX)))
    assert len(each_escaped) < FORM_BYTES_MAX
    assert form.parse(each_escaped)["MessageBody"] == "/" * len(b64encode(bytes(BODY_BYTES_MAX)))
    with pytest.raises(RequestTooLarge):
        form.parse(b"a=" + b"x" * FORM_BYTES_MAX)
