"""Filter policies: what recordings of AWS say, limits, and a second matcher's answers on generated ones."""

import json
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from elasticq.engine.filters.policy import MESSAGE_ATTRIBUTES, MESSAGE_BODY, InvalidFilterPolicy, compile_policy
from elasticq.model.commands import MessageAttributes, MessageAttributeValue
from tests.engine import naive_filters


def attributes_of(values: dict[str, Any]) -> MessageAttributes:
    """As a publisher would write them: a list is a String.Array, a number a Number."""
    return {name: attribute_of(value) for name, value in values.items()}


def attribute_of(value: Any) -> MessageAttributeValue:
    if isinstance(value, bytes):
        return MessageAttributeValue("Binary", binary_value=value)
    if isinstance(value, list):
        return MessageAttributeValue("String.Array", json.dumps(value))
    if isinstance(value, str):
        return MessageAttributeValue("String", value)
    return MessageAttributeValue("Number", repr(value))


def by_attributes(policy: Any, **values: Any) -> bool:
    return compile_policy(json.dumps(policy), MESSAGE_ATTRIBUTES).matches(attributes_of(values), "a body")


def by_body(policy: Any, body: Any) -> bool:
    text = body if isinstance(body, str) else json.dumps(body)
    return compile_policy(json.dumps(policy), MESSAGE_BODY).matches(None, text)


def refusal(policy: Any, scope: str = MESSAGE_BODY) -> str:
    text = policy if isinstance(policy, str) else json.dumps(policy)
    with pytest.raises(InvalidFilterPolicy) as raised:
        compile_policy(text, scope)
    return str(raised.value)


IN_ATTRIBUTES = [
    # Equality, by type.
    ({"color": ["red"]}, {"color": "red"}, True),
    ({"color": ["red", "blue"]}, {"color": "blue"}, True),
    ({"color": ["red"]}, {"color": "Red"}, False),
    ({"color": ["red"]}, {}, False),
    ({"color": ["red"]}, {"shape": "red"}, False),
    ({"price": [100]}, {"price": 100}, True),
    ({"price": [100]}, {"price": "100"}, False),
    ({"price": ["100"]}, {"price": 100}, False),
    ({"price": [301.5]}, {"price": 3.015e2}, True),
    ({"price": [3e2]}, {"price": 300}, True),
    ({"id": [9007199254740993]}, {"id": 9007199254740992}, False),
    ({"flag": [1]}, {"flag": [True]}, False),
    ({"flag": [True]}, {"flag": [1]}, False),
    ({"flag": [True]}, {"flag": [True]}, True),
    ({"flag": ["true"]}, {"flag": [True]}, False),
    ({"flag": [None]}, {"flag": [None]}, True),
    # All keys.
    ({"a": ["1"], "b": ["2"]}, {"a": "1", "b": "2"}, True),
    ({"a": ["1"], "b": ["2"]}, {"a": "1"}, False),
    # Texts.
    ({"a": [{"prefix": "ab"}]}, {"a": "abc"}, True),
    ({"a": [{"prefix": "ab"}]}, {"a": "Abc"}, False),
    ({"a": [{"prefix": "1"}]}, {"a": 100}, False),
    ({"a": [{"suffix": "bc"}]}, {"a": "abc"}, True),
    ({"a": [{"suffix": "ab"}]}, {"a": "abc"}, False),
    ({"a": [{"equals-ignore-case": "tEnnis"}]}, {"a": "TENNIS"}, True),
    ({"a": [{"equals-ignore-case": "tEnnis"}]}, {"a": "tennis court"}, False),
    ({"a": [{"wildcard": "a*c"}]}, {"a": "abc"}, True),
    ({"a": [{"wildcard": "a*c"}]}, {"a": "ac"}, True),
    ({"a": [{"wildcard": "ab*bc"}]}, {"a": "abc"}, False),
    ({"a": [{"wildcard": "*b*"}]}, {"a": "abc"}, True),
    ({"a": [{"wildcard": "*x*"}]}, {"a": "abc"}, False),
    ({"a": [{"wildcard": r"a\*b"}]}, {"a": "a*b"}, True),
    ({"a": [{"wildcard": r"a\*b"}]}, {"a": "axb"}, False),
    ({"a": [{"wildcard": r"a\\*"}]}, {"a": "a\\b"}, True),
    # anything-but.
    ({"a": [{"anything-but": "x"}]}, {"a": "y"}, True),
    ({"a": [{"anything-but": "x"}]}, {"a": "x"}, False),
    ({"a": [{"anything-but": "x"}]}, {"b": "y"}, False),
    ({"a": [{"anything-but": ["x", "y"]}]}, {"a": "y"}, False),
    ({"a": [{"anything-but": 100}]}, {"a": 100}, False),
    ({"a": [{"anything-but": 100}]}, {"a": 101}, True),
    ({"a": [{"anything-but": [100, 500]}]}, {"a": 500}, False),
    ({"a": [{"anything-but": {"prefix": "ab"}}]}, {"a": "abc"}, False),
    ({"a": [{"anything-but": {"prefix": "ab"}}]}, {"a": "bc"}, True),
    ({"a": [{"anything-but": {"wildcard": "*b*"}}]}, {"a": "abc"}, False),
    ({"a": [{"anything-but": {"wildcard": "*b*"}}]}, {"a": "ac"}, True),
    ({"a": [None, {"anything-but": "x"}]}, {"b": "y"}, False),
    ({"a": [{"anything-but": ["x"]}]}, {"a": ["x", "y"]}, True),
    ({"a": [{"anything-but": ["x", "y"]}]}, {"a": ["x", "y"]}, False),
    # Numbers.
    ({"a": [{"numeric": ["=", 5]}]}, {"a": 5.0}, True),
    ({"a": [{"numeric": ["=", 5]}]}, {"a": "5"}, False),
    ({"a": [{"numeric": ["=", 100.123456]}]}, {"a": 100.1234567}, True),  # five digits after the point count
    ({"a": [{"numeric": ["=", 100.123456]}]}, {"a": 100.12344}, False),
    ({"a": [100.12345]}, {"a": [1, 100.123459]}, True),
    ({"a": [{"numeric": ["=", 0.00029]}]}, {"a": 0.000291}, True),
    ({"a": [{"numeric": ["=", -0.00029]}]}, {"a": -0.00029}, True),
    ({"a": [{"numeric": ["<", 1.000019]}]}, {"a": 1.000011}, False),
    ({"a": [{"numeric": ["<=", 1.000011]}]}, {"a": 1.000019}, True),
    ({"a": [{"numeric": [">", 1.000001, "<", 1.000002]}]}, {"a": 1.0000015}, False),
    ({"a": [{"anything-but": [1.000001]}]}, {"a": 1.000002}, False),
    ({"a": [{"numeric": [">", 0]}]}, {"a": 1e300}, True),
    ({"a": [{"numeric": [">", 0, "<=", 9]}]}, {"a": 9}, True),
    ({"a": [{"numeric": [">", 0, "<=", 9]}]}, {"a": 0}, False),
    ({"a": [{"numeric": [">=", 0, "<", 9]}]}, {"a": 0}, True),
    ({"a": [{"numeric": [">=", 0, "<", 9]}]}, {"a": 9}, False),
    ({"a": [{"numeric": ["<", 10]}]}, {"a": -3}, True),
    ({"a": [{"numeric": [">", -10]}]}, {"a": [-20, -5]}, True),
    # exists.
    ({"a": [{"exists": True}]}, {"a": "x"}, True),
    ({"a": [{"exists": True}]}, {"b": "x"}, False),
    ({"a": [{"exists": False}]}, {"b": "x"}, True),
    ({"a": [{"exists": False}]}, {"a": "x"}, False),
    ({"a": [{"exists": False}]}, {}, False),
    ({"a": [{"exists": False}, "x"]}, {"a": "x"}, True),
    ({"a": [{"exists": False}, "x"]}, {"b": "x"}, True),
    ({"a": [{"exists": False}, "x"]}, {"a": "y"}, False),
    # Addresses.
    ({"ip": [{"cidr": "10.0.0.0/24"}]}, {"ip": "10.0.0.255"}, True),
    ({"ip": [{"cidr": "10.0.0.0/24"}]}, {"ip": "10.0.1.0"}, False),
    ({"ip": [{"cidr": "10.0.0.0/24"}]}, {"ip": "::1"}, False),
    ({"ip": [{"cidr": "2001:db8::/32"}]}, {"ip": "2001:db8:1::7"}, True),
    ({"ip": [{"cidr": "10.0.0.0/24"}]}, {"ip": "ten"}, False),
    # Arrays, and what is no value.
    ({"sports": ["rugby"]}, {"sports": ["tennis", "rugby"]}, True),
    ({"sports": ["rugby"]}, {"sports": ["tennis"]}, False),
    ({"sports": ["rugby"]}, {"sports": []}, False),
    ({"key": ["x"]}, {"key": b"x"}, False),
    ({"key": [{"exists": False}]}, {"key": b"x", "other": "y"}, True),
    # $or.
    ({"$or": [{"a": ["1"]}, {"b": ["2"]}]}, {"b": "2"}, True),
    ({"$or": [{"a": ["1"]}, {"b": ["2"]}]}, {"b": "1"}, False),
    ({"c": ["3"], "$or": [{"a": ["1"]}, {"b": ["2"]}]}, {"b": "2"}, False),
    ({"c": ["3"], "$or": [{"a": ["1"]}, {"b": ["2"]}]}, {"b": "2", "c": "3"}, True),
    ({"$or": [{"a": ["1"]}, {"$or": [{"b": ["2"]}, {"c": ["3"]}]}]}, {"c": "3"}, True),
    ({"$or": ["x"]}, {"$or": "x"}, True),
    # A key with dots, and no filter at all.
    ({"store.city": ["Oslo"]}, {"store.city": "Oslo"}, True),
    ({}, {}, True),
]  # fmt: skip


@pytest.mark.parametrize(("policy", "values", "expected"), IN_ATTRIBUTES)
def test_a_policy_on_attributes_matches_as_recorded(policy: Any, values: dict[str, Any], expected: bool) -> None:
    assert by_attributes(policy, **values) is expected


IN_BODIES = [
    ({"a": ["x"]}, {"a": "x"}, True),
    ({"a": ["x"]}, {"a": ["y", "x"]}, True),
    ({"a": ["x"]}, {"a": [["y"], [["x"]]]}, True),
    ({"a": [""]}, {"a": ""}, True),
    ({"a": [None]}, {"a": None}, True),
    ({"a": [None]}, {"b": 1}, False),
    ({"a": [True]}, {"a": True}, True),
    ({"a": [1]}, {"a": True}, False),
    ({"a": [{"exists": True}]}, {"a": None}, False),
    ({"a": [{"exists": True}]}, {"a": ""}, False),
    ({"a": [{"exists": True}]}, {"a": []}, False),
    ({"a": [{"exists": True}]}, {"a": 0}, True),
    ({"a": [{"exists": False}]}, {"a": None}, False),
    ({"a": [{"exists": False}]}, {}, False),
    ({"a": [{"exists": False}]}, {"b": [], "c": [[1]]}, True),
    ({"a": [{"anything-but": "x"}]}, {"a": None}, True),
    ({"a": [{"prefix": "1"}]}, {"a": 100}, False),
    # Objects in objects, and keys with dots.
    ({"a": {"b": {"c": ["x"]}}}, {"a": {"b": {"c": "x"}}}, True),
    ({"a": {"b": {"c": ["x"]}}}, {"a": {"b": "x"}}, False),
    ({"a.b.c": ["x"]}, {"a": {"b": {"c": "x"}}}, True),
    ({"a.b.c": ["x"]}, {"a.b.c": "x"}, True),
    ({"a.b.c": ["x"]}, {"a.b": {"c": "x"}}, True),
    ({"a": {"b.c": ["x"]}}, {"a.b": [{"c": "x"}]}, True),
    ({"a": {"b": ["x"]}}, {"a": {"b": "y"}, "a.b": "x"}, True),
    ({"a": {"b": ["x"], "c": ["y"]}}, {"a": {"b": "x"}, "a.c": "y"}, True),
    # Objects in arrays: one element for all keys.
    ({"a": {"b": ["x"]}}, {"a": [{"b": "y"}, {"b": "x"}]}, True),
    ({"a": {"b": ["x"], "c": ["y"]}}, {"a": [{"b": "x"}, {"c": "y"}]}, False),
    ({"a": {"b": ["x"], "c": ["y"]}}, {"a": [{"b": "x", "c": "y"}, {}]}, True),
    ({"a": {"b": ["x"], "c": ["y"]}}, {"a": [[{"b": "x", "c": ["z", "y"]}], [{"b": 1}]]}, True),
    ({"a": {"b": ["x"]}, "d": ["y"]}, {"a": [{"b": "x"}, {"b": "z"}], "d": ["w", "y"]}, True),
    ({"a": {"b": ["x"], "c": [{"exists": False}]}}, {"a": [{"b": "x"}, {"c": "y"}]}, False),
    ({"a": {"b": ["x"], "c": [{"exists": False}]}}, {"a": [{"b": "x"}, {"d": "y"}]}, True),
    ({"a": ["x"], "a.b": ["y"]}, {"a": ["x", {"b": "y"}]}, False),
    # No object, no match.
    ({"a": ["x"]}, ["x"], False),
    ({"a": ["x"]}, "not JSON", False),
    ({"a": [{"anything-but": "x"}]}, "12", False),
    ({}, "not JSON", True),
]  # fmt: skip


@pytest.mark.parametrize(("policy", "body", "expected"), IN_BODIES)
def test_a_policy_on_the_body_matches_as_recorded(policy: Any, body: Any, expected: bool) -> None:
    assert by_body(policy, body) is expected


@pytest.mark.parametrize(
    ("data_type", "text", "expected"),
    [
        ("Number", "100", True),
        ("Number.int", "1e2", True),
        ("Number", "+100.", True),
        ("String.Array", "100", True),
        ("String.Array", '["x", {"y": 100}]', False),
        ("String.Array", "[100", False),
        ("String", "100", False),
        ("String.number", "100", False),
        ("Number", "1_00", False),
        ("Number", "nan", False),
        ("Number", "", False),
        ("Number", "9" * 100_000, False),
    ],
)
def test_the_type_of_an_attribute_says_what_its_text_is(data_type: str, text: str, expected: bool) -> None:
    policy = compile_policy('{"a": [100]}', MESSAGE_ATTRIBUTES)
    assert policy.matches({"a": MessageAttributeValue(data_type, text)}, "") is expected


REFUSED = [
    ('["a"]', "FilterPolicy: Filter is not an object"),
    ({"a": "x"}, 'FilterPolicy: "a" must be an object or an array'),
    ({"a": {}}, "FilterPolicy: Empty objects are not allowed"),
    ({"a": []}, "FilterPolicy: Empty arrays are not allowed"),
    ({"a": [["x"]]}, "FilterPolicy: Match value must be String, number, true, false, or null"),
    ({"a": [{}]}, "FilterPolicy: Match expression name not found"),
    ({"a": [{"like": "x"}]}, "FilterPolicy: Unrecognized match type like"),
    ({"a": [{"prefix": "x", "suffix": "y"}]}, "FilterPolicy: Only one key allowed in match expression"),
    ({"a": [{"prefix": 1}]}, "FilterPolicy: prefix match pattern must be a string"),
    ({"a": [{"suffix": None}]}, "FilterPolicy: suffix match pattern must be a string"),
    ({"a": [{"equals-ignore-case": []}]}, "FilterPolicy: equals-ignore-case match pattern must be a string"),
    ({"a": [{"wildcard": 1}]}, "FilterPolicy: wildcard match pattern must be a string"),
    ({"a": [{"cidr": 1}]}, "FilterPolicy: prefix match pattern must be a string"),
    ({"a": [{"exists": "no"}]}, "FilterPolicy: exists match pattern must be either true or false."),
    ({"a": [{"anything-but": {"exists": True}}]}, "FilterPolicy: Unsupported anything-but pattern: exists"),
    ({"a": [{"anything-but": {"suffix": "x"}}]}, "FilterPolicy: Unsupported anything-but pattern: suffix"),
    ({"a": [{"anything-but": {}}]}, "FilterPolicy: Match expression name not found"),
    (
        {"a": [{"anything-but": {"prefix": "x", "wildcard": "y"}}]},
        "FilterPolicy: Only one key allowed in match expression",
    ),
    (
        {"a": [{"anything-but": ["x", 1]}]},
        "FilterPolicy: Inside anything but list, either all values are number or string, mixed type is not supported",
    ),
    (
        {"a": [{"anything-but": [True]}]},
        "FilterPolicy: Inside anything but list, start|null|boolean is not supported.",
    ),
    (
        {"a": [{"anything-but": None}]},
        "FilterPolicy: Value of anything-but must be an array or single string/number value.",
    ),
    ({"a": [{"cidr": "10.0.0.0"}]}, "FilterPolicy: Malformed CIDR, one '/' required"),
    ({"a": [{"cidr": "10.0.0.0/x"}]}, "FilterPolicy: Malformed CIDR, mask bits must be an integer"),
    ({"a": [{"cidr": "10.0.0/24"}]}, "FilterPolicy: Nonstandard IP address: 10.0.0"),
    ({"a": [{"cidr": "10.0.0.0/32"}]}, "FilterPolicy: IPv4 mask bits must be < 32"),
    ({"a": [{"cidr": "fe80::1%lo/64"}]}, "FilterPolicy: Nonstandard IP address: fe80::1%lo"),
    ({"a": [{"numeric": 1}]}, "FilterPolicy: Value of numeric must be an array."),
    ({"a": [{"numeric": []}]}, "FilterPolicy: Invalid member in numeric match: ]"),
    ({"a": [{"numeric": [1]}]}, "FilterPolicy: Invalid member in numeric match: 1"),
    ({"a": [{"numeric": [True]}]}, "FilterPolicy: Invalid member in numeric match: true"),
    ({"a": [{"numeric": ["~", 1]}]}, "FilterPolicy: Unrecognized numeric range operator: ~"),
    ({"a": [{"numeric": ["=", "1"]}]}, "FilterPolicy: Value of equals must be numeric"),
    ({"a": [{"numeric": ["="]}]}, "FilterPolicy: Value of equals must be numeric"),
    ({"a": [{"numeric": ["=", 1, "<", 2]}]}, "FilterPolicy: Too many elements in numeric expression"),
    ({"a": [{"numeric": ["<", True]}]}, "FilterPolicy: Value of < must be numeric"),
    ({"a": [{"numeric": [">="]}]}, "FilterPolicy: Value of >= must be numeric"),
    ({"a": [{"numeric": ["<", 1, ">", 0]}]}, "FilterPolicy: Too many elements in numeric expression"),
    ({"a": [{"numeric": [">", 1, ">", 2]}]}, "FilterPolicy: Bad numeric range operator: >"),
    ({"a": [{"numeric": [">", 1, 30]}]}, "FilterPolicy: Bad value in numeric range: 30"),
    ({"a": [{"numeric": [">", 1, "<"]}]}, "FilterPolicy: Value of < must be numeric"),
    ({"a": [{"numeric": [">", 1, "<", 1]}]}, "FilterPolicy: Bottom must be less than top"),
    ({"a": [{"numeric": [">", 1, "<", 2, "<"]}]}, "FilterPolicy: Too many terms in numeric range expression"),
    (
        {"a": [{"numeric": ["<", 1_000_000_000.5]}]},
        "FilterPolicy: Value must be between -1000000000 and 1000000000, inclusive",
    ),
    ({"a": [{"wildcard": "a**b"}]}, "FilterPolicy: Consecutive wildcard characters at pos 1"),
    ({"a": [{"wildcard": "a\\b"}]}, "FilterPolicy: Invalid escape character at pos 1"),
    ({"a": [{"wildcard": "a\\"}]}, "FilterPolicy: Invalid escape character at pos 1"),
    ({"$or": [{"a": ["x"]}]}, "FilterPolicy: Unrecognized match type a"),
    ({"$or": [{"a": ["x"]}, {"prefix": ["y"]}]}, "FilterPolicy: Unrecognized match type a"),
]  # fmt: skip


@pytest.mark.parametrize(("policy", "text"), REFUSED)
def test_a_policy_is_refused_in_the_words_of_aws(policy: Any, text: str) -> None:
    assert refusal(policy) == text


def test_what_is_no_json_is_refused() -> None:
    for text in ("{", '{"a": [NaN]}', '{"a": ["x"]} y', "", '{"a": [' * 10_000, '{"a": [1e999]}', '{"\ud800": [1]}'):
        assert refusal(text).startswith("FilterPolicy: failed to parse JSON. ")


def test_attributes_have_no_keys_in_keys() -> None:
    expected = "Filter policy scope MessageAttributes does not support nested filter policy"
    assert refusal({"a": {"b": ["x"]}}, MESSAGE_ATTRIBUTES) == expected
    assert refusal({"$or": [{"a": ["x"]}, {"a": {"b": ["x"]}}]}, MESSAGE_ATTRIBUTES) == expected


def test_the_members_of_a_nested_object_are_refused_first() -> None:
    """Recorded on AWS with the scope MessageAttributes."""
    expected = 'FilterPolicy: "suffix" must be an object or an array'
    for scope in (MESSAGE_ATTRIBUTES, MESSAGE_BODY):
        assert refusal({"key": {"suffix": "value"}}, scope) == expected


TOO_COMPLEX = "FilterPolicy: Filter policy is too complex"


def test_a_policy_has_five_keys_at_the_top() -> None:
    names = "abcdef"
    compile_policy(json.dumps({name: ["x"] for name in names[:5]}), MESSAGE_BODY)
    assert refusal({name: ["x"] for name in names}) == "FilterPolicy: Filter policy can not have more than 5 keys"
    compile_policy(json.dumps({"a": {name: ["x"] for name in names}}), MESSAGE_BODY)


def test_complexity_is_the_product_of_values_and_depths() -> None:
    of_150 = {"a": {"b": {"c": ["v"] * 5}}, "d": ["v"] * 10}
    compile_policy(json.dumps(of_150), MESSAGE_BODY)
    assert refusal({**of_150, "e": ["v"] * 2}) == TOO_COMPLEX
    compile_policy(json.dumps({"a": ["v"] * 150}), MESSAGE_BODY)
    assert refusal({"a": ["v"] * 151}) == TOO_COMPLEX


def test_the_branches_of_an_or_are_added() -> None:
    of_150 = {"$or": [{"a": ["v"] * 20}, {"b": ["v"] * 3, "c": ["v"] * 10}], "d": ["v"] * 3}
    compile_policy(json.dumps(of_150), MESSAGE_BODY)
    of_150["$or"].append({"e": ["v"]})  # type: ignore[arg-type]
    assert refusal(of_150) == TOO_COMPLEX


def test_wildcards_cost_points() -> None:
    compile_policy(json.dumps({"a": [{"wildcard": f"{n}*"} for n in range(10)]}), MESSAGE_ATTRIBUTES)
    assert refusal({"a": [{"wildcard": f"{n}*"} for n in range(11)]}) == TOO_COMPLEX
    compile_policy(json.dumps({"a": [{"wildcard": "*a*b*"}] * 3}), MESSAGE_ATTRIBUTES)
    assert refusal({"a": [{"wildcard": "*a*b*"}, {"anything-but": {"wildcard": "*a*b*"}}] * 2}) == TOO_COMPLEX
    assert refusal({"a": [{"wildcard": "*a*b*c*"}]}) == TOO_COMPLEX


def test_a_long_policy_is_refused_before_it_is_read() -> None:
    assert refusal(" " * 262_143 + "{}") == "FilterPolicy: Filter policy can not be longer than 262144 bytes"


def nested_or(depth: int) -> dict[str, Any]:
    policy: dict[str, Any] = {"a": ["x"]}
    for _ in range(depth):
        policy = {"$or": [policy, {"b": ["y"]}]}
    return policy


def test_what_a_hostile_policy_would_multiply_out_to_is_refused_first() -> None:
    """Each of these would be more conditions than fit into memory, or go deeper than Python can."""
    compile_policy(json.dumps(nested_or(149)), MESSAGE_ATTRIBUTES)
    assert refusal(nested_or(150)) == TOO_COMPLEX
    wide = {"$or": [{f"k{n}": ["x"] for n in range(5_000)}, {"a": ["x"]}]}
    assert refusal({**wide, "b": {"$or": [{"c": ["x"]}, {"d": ["x"]}]}}) == TOO_COMPLEX
    assert refusal({".".join("a" * 200): ["x"]}) == TOO_COMPLEX
    deep: dict[str, Any] = {"a": ["x"]}
    for _ in range(150):
        deep = {"a": deep}
    assert refusal(deep) == TOO_COMPLEX


def test_a_hostile_message_is_read_once() -> None:
    """Backtracking, one walk for each alternative or one level of Python's stack for each of the message's would not
    end, take minutes or fail here."""
    text = "a" * 200_000
    wildcards = compile_policy(json.dumps({"a": [{"wildcard": "*a*b*"}, {"wildcard": "*aa*ab*b"}]}), MESSAGE_ATTRIBUTES)
    assert not wildcards.matches(attributes_of({"a": text}), "")
    branches = {"$or": [{f"k{n}": ["x"]} for n in range(70)]}
    assert not by_body({"a": branches}, {"a": [{}] * 60_000})
    together = {"a": {"$or": [{"b": [n], "c": [n]} for n in range(37)]}}
    elements = [{"b": n % 37, "c": (n + 1) % 37} for n in range(4_000)]
    assert not by_body(together, {"a": elements})
    assert by_body(together, {"a": [*elements, {"b": 5, "c": 5}]})
    assert not by_body({"a": ["x"], "b": ["y"]}, '{"a":' + "[" * 50_000 + "]" * 50_000 + "}")
    assert not by_body({"a": ["x"]}, '{"a":' + "9" * 200_000 + "}")


# --- against a second matcher ---

texts = st.text(alphabet="abAB", max_size=4)
filled = st.text(alphabet="abAB", min_size=1, max_size=4)
numbers = st.integers(-3, 3) | st.sampled_from([0.5, 1.0, -2.5])
scalars = texts | numbers | st.booleans() | st.none() | st.sampled_from(["10.0.0.7", "10.0.1.7", "::1"])
stars = st.lists(st.text(alphabet="ab", min_size=1, max_size=2), min_size=1, max_size=3).map("*".join)


def operator(name: str, argument: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.builds(lambda value: {name: value}, argument)


ranges = st.tuples(st.sampled_from([">", ">="]), st.integers(-3, 0), st.sampled_from(["<", "<="]), st.integers(1, 3))
wanted = (
    scalars
    | operator("prefix", texts)
    | operator("suffix", texts)
    | operator("equals-ignore-case", texts)
    | operator("wildcard", stars | stars.map(lambda each: each + "*"))
    | operator("exists", st.booleans())
    | operator("cidr", st.sampled_from(["10.0.0.0/24", "10.0.0.0/15", "::/64"]))
    | operator("numeric", ranges.map(list) | st.tuples(st.sampled_from(["=", "<", ">="]), numbers).map(list))
    | operator("anything-but", texts | numbers | st.lists(texts, min_size=1, max_size=2))
    | operator("anything-but", operator("prefix", texts) | operator("wildcard", stars))
)
names = st.sampled_from("abc")
lists = st.lists(wanted, min_size=1, max_size=2)


def with_or(policies: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    branches = st.lists(policies, min_size=2, max_size=2)
    return st.builds(lambda policy, either: {**policy, "$or": either}, policies, branches)


flat = st.dictionaries(names | st.just("a.b"), lists, min_size=1, max_size=2)
nested = st.recursive(
    flat,
    lambda inner: st.dictionaries(names, lists | inner, min_size=1, max_size=2) | with_or(inner),
    max_leaves=4,
)
events = st.dictionaries(
    names,
    st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
        max_leaves=8,
    ),
    max_size=3,
)


def is_simple(policy: dict[str, Any]) -> bool:
    """Whether its complexity is allowed, which other tests are about."""
    try:
        compile_policy(json.dumps(policy), MESSAGE_BODY)
    except InvalidFilterPolicy as error:
        if str(error) == TOO_COMPLEX:
            return False
        raise
    return True


@settings(max_examples=150)
@given(nested, events)
def test_bodies_are_judged_as_a_plain_reading_of_the_guide_does(policy: dict[str, Any], event: dict[str, Any]) -> None:
    assume(is_simple(policy))
    assert by_body(policy, event) is naive_filters.matches(policy, event)


@settings(max_examples=100)
@given(flat | with_or(flat), st.dictionaries(names | st.just("a.b"), filled | numbers | st.lists(scalars, max_size=3)))
def test_attributes_are_judged_as_a_plain_reading_of_the_guide_does(
    policy: dict[str, Any], values: dict[str, Any]
) -> None:
    assert by_attributes(policy, **values) is naive_filters.matches(policy, values, is_of_attributes=True)
