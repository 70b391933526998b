"""Digests against AWS's published examples and a second implementation."""

from hashlib import md5

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elasticq.model.commands import MessageAttributes, MessageAttributeValue
from elasticq.wire.digests import attributes_md5, body_md5, sent_md5
from tests.wire.reference import attribute_values, md5_of_attributes, texts


def text_attribute(value: str, data_type: str = "String") -> MessageAttributeValue:
    return MessageAttributeValue(data_type=data_type, string_value=value)


# The first two: example of the SendMessage API page; the third: a recording of LocalStack's authors.
def test_body_digest_is_the_one_of_the_api_page() -> None:
    assert body_md5("This is a test message") == "fafb00f5732ab283681e124bf8747ed1"


@pytest.mark.parametrize(
    ("attributes", "digest"),
    [
        (
            {
                "my_attribute_name_1": text_attribute("my_attribute_value_1"),
                "my_attribute_name_2": text_attribute("my_attribute_value_2"),
            },
            "c48838208d2b4e14e3ca0093a8443f09",
        ),
        ({"timestamp": text_attribute("1493147359900", "Number")}, "235c5c510d26fb653d073faed50ae77c"),
    ],
)
def test_attribute_digest_is_the_published_one(attributes: MessageAttributes, digest: str) -> None:
    assert attributes_md5(attributes) == digest
    assert md5_of_attributes(attributes) == digest


def test_body_digest_is_over_utf_8() -> None:
    assert body_md5("\u00e4\U0001f600") == "042b028b3438fc753fac64c8da373715"  # printf | md5sum


@pytest.mark.parametrize("size", [0, 1, 55, 56, 64, 1_023, 1_024, 1_025, 100_000])
def test_short_and_long_bodies_have_the_same_kind_of_digest(size: int) -> None:
    assert body_md5("a" * size) == md5(b"a" * size).hexdigest()
    attributes = {"a": text_attribute("b" * size)}
    assert attributes_md5(attributes) == md5_of_attributes(attributes)


def test_digest_that_is_remembered_is_the_bodys_own() -> None:
    bodies = [f"{number} " * (number % 400) for number in range(5_000)]  # more than are remembered, short and long ones
    digests = [md5(body.encode()).hexdigest() for body in bodies]
    assert [sent_md5(body) for body in bodies] == digests
    assert [body_md5(body) for body in bodies] == digests
    assert [body_md5(body + "!") for body in bodies] != digests
    assert [body_md5(f"{body}") for body in bodies[-100:]] == digests[-100:]


def test_digest_of_a_text_at_the_address_of_a_remembered_one_is_its_own() -> None:
    for number in range(5_000):  # each text takes the memory of one before it
        sent_md5(f"sent {number}")
        received = f"received {number}"
        assert body_md5(received) == md5(received.encode()).hexdigest()


def test_no_attributes_have_no_digest() -> None:
    assert attributes_md5({}) is None
    assert attributes_md5(None) is None


def test_order_of_attributes_does_not_count() -> None:
    first, second = ("a", text_attribute("1")), ("b", text_attribute("2"))
    assert attributes_md5(dict([first, second])) == attributes_md5(dict([second, first]))


def test_data_type_with_its_label_counts() -> None:
    assert attributes_md5({"a": text_attribute("1", "Number")}) != attributes_md5(
        {"a": text_attribute("1", "Number.x")}
    )


@given(st.dictionaries(texts, attribute_values, min_size=1, max_size=4))
def test_attribute_digest_agrees_with_a_second_implementation(attributes: MessageAttributes) -> None:
    for attribute in attributes.values():
        attribute.data_type = "Binary.x" if attribute.binary_value is not None else "String.x"
    assert attributes_md5(attributes) == md5_of_attributes(attributes)
