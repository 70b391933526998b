"""What a message may hold, at the edges of each bound."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from elasticq.engine.stored.contents import (
    check_attributes,
    check_body,
    check_token,
    message_bytes,
    stored_bytes,
    text_bytes,
    trace_header,
)
from elasticq.engine.stored.mutations import MessageStored
from elasticq.model.commands import MessageAttributeValue
from elasticq.model.errors import InvalidMessageContents, InvalidParameterValue, MissingParameter
from elasticq.model.limits import RELAXED


def text(value: str, kind: str = "String") -> MessageAttributeValue:
    return MessageAttributeValue(kind, string_value=value)


@given(st.characters())
@example("\x1f")
@example("\ud7ff")
@example("\ud800")
@example("\udfff")
@example("\ue000")
@example("\ufffd")
@example("\ufffe")
@example("\U00010000")
def test_a_body_may_hold_what_xml_can(character: str) -> None:
    code = ord(character)
    allowed = code in (9, 10, 13) or 0x20 <= code <= 0xD7FF or 0xE000 <= code <= 0xFFFD or code >= 0x10000
    for body in (character, f"a{character}", f"ä{character}"):
        if allowed:
            assert check_body(body) == body
        else:
            with pytest.raises(InvalidMessageContents):
                check_body(body)


def test_relaxed_limits_refuse_only_half_characters_and_no_body() -> None:
    assert check_body("\0\ufffe", RELAXED) == "\0\ufffe"
    with pytest.raises(InvalidMessageContents):
        check_body("\ud800", RELAXED)
    for body in (None, ""):
        with pytest.raises(MissingParameter):
            check_body(body, RELAXED)


@given(st.text(), st.text())
def test_sizes_are_those_of_utf_8_and_attributes_count(body: str, value: str) -> None:
    assert text_bytes(body) == len(body.encode("utf-8", "surrogatepass"))
    attributes = {"é": text(value), "b": MessageAttributeValue("Binary", binary_value=b"123")}
    assert message_bytes(body, attributes) == text_bytes(body) + 2 + 6 + text_bytes(value) + 1 + 6 + 3
    stored = MessageStored(1, 1, body, 7, "sender", attributes=attributes)
    assert stored_bytes(stored) > message_bytes(body, attributes)


@pytest.mark.parametrize(
    "number",
    ["0", "-1.5", "+.5", "1.", "9" * 38, "1e126", "9.99e126", "1e-128", "0e-9999", "0." + "0" * 127 + "1", "00012"],
)
def test_a_number_has_38_digits_between_its_magnitudes(number: str) -> None:
    check_attributes({"a": text(number, "Number.of.something")})


@pytest.mark.parametrize(
    "number", ["", ".", "1e", "0x1", "1_0", "nan", "9" * 39, "1e127", "1e-129", "1e99999", "1\n", "\u0661", "\uff11"]
)
def test_other_numbers_are_refused(number: str) -> None:
    with pytest.raises(InvalidParameterValue):
        check_attributes({"a": text(number, "Number")})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("", text("x")),
        ("a" * 257, text("x")),
        ("AWS.a", text("x")),
        ("amazon.a", text("x")),
        (".a", text("x")),
        ("a..b", text("x")),
        ("a b", text("x")),
        ("a!", text("x")),
        ("a§", text("x")),
        ("(a)", text("x")),
        ("a²", text("x")),
        ("a\u0301", text("x")),
        ("☃", text("x")),
        ("a\n", text("x")),
        ("a", text("x", "")),
        ("a", text("x", "Text")),
        ("a", text("x", "String.")),
        ("a", text("")),
        ("a", text("\0")),
        ("a", MessageAttributeValue("Binary", string_value="x")),
        ("a", MessageAttributeValue("String", string_value="x", binary_value=b"x")),
    ],
)
def test_a_bad_attribute_is_refused(name: str, value: MessageAttributeValue) -> None:
    with pytest.raises(InvalidParameterValue):
        check_attributes({name: value})
    check_attributes({"a" * 256: text("x", "String.ä"), "a-b_c.1": text("x")})


@pytest.mark.parametrize("name", ["attr.1øßä", "日本", "дата_1", "α-β", "\u0661"])
def test_a_name_has_letters_and_digits_of_any_script(name: str) -> None:
    """Recorded on AWS: ``attr.1øßä`` was accepted; ``!``, ``§`` and ``(`` were refused."""
    check_attributes({name: text("x")})


@pytest.mark.parametrize("token", ["", "a" * 129, "a b", "ä", "a\n"])
def test_a_token_is_ascii_without_spaces(token: str) -> None:
    assert check_token("!~" * 64, "MessageGroupId") == "!~" * 64
    with pytest.raises(InvalidParameterValue, match="MessageGroupId"):
        check_token(token, "MessageGroupId")


def test_the_trace_header_is_the_only_system_attribute() -> None:
    assert trace_header({"AWSTraceHeader": text("Root=1")}) == "Root=1"
    for attributes in ({"Other": text("x")}, {"AWSTraceHeader": text("x" * 10_000)}, {"AWSTraceHeader": text("")}):
        with pytest.raises(InvalidParameterValue):
            trace_header(attributes)
