"""The settings of queues as fields of forms."""

from elasticq.admin.page.settings import FIELDS, KIND_NAMES, OF_DEAD_LETTERS, Redrive, of_kind, redrive_of
from elasticq.engine.actions.queue_attributes import NAMES, READ_ONLY
from elasticq.engine.ordering.kinds import KINDS, MARKERS, STANDARD


def test_each_setting_that_clients_can_change_has_a_field() -> None:
    assert {each.name for each in FIELDS} | {*OF_DEAD_LETTERS} | MARKERS == NAMES - READ_ONLY


def test_a_kind_has_the_fields_of_its_own_settings_alone() -> None:
    common = {each.name for each in FIELDS if each.kinds == KIND_NAMES}
    for kind in KINDS:
        own = {*kind.ranges, *kind.choices, *kind.checks} - MARKERS
        fields = {shown.field.name for shown in of_kind(kind.name, {}, is_new=True)}
        assert fields == own | common, kind.name
    fixed = {each.name for each in FIELDS if each.is_fixed}
    assert not fixed & {shown.field.name for shown in of_kind("FIFO", {})}


def test_choices_are_those_of_the_kind() -> None:
    for each in FIELDS:
        for kind in KINDS:
            if each.name in kind.choices:
                assert {value for value, _ in each.options} == set(kind.choices[each.name])


def test_fields_have_the_values_of_the_queue() -> None:
    shown = {each.field.name: each.value for each in of_kind(STANDARD.name, {"DelaySeconds": "7"})}
    assert (shown["DelaySeconds"], shown["VisibilityTimeout"], shown["ElasticqFairness"]) == ("7", "30", "sqs")
    weights = {each.field.name: each.value for each in of_kind("standard", {"ElasticqGroupWeights": "broken"})}
    assert weights["ElasticqGroupWeights"] == "broken"


def test_policies_of_dead_letters_become_fields() -> None:
    arn = "arn:aws:sqs:us-east-1:000000000000:"
    attributes = {
        "RedrivePolicy": f'{{"deadLetterTargetArn": "{arn}dead", "maxReceiveCount": "3"}}',
        "RedriveAllowPolicy": f'{{"redrivePermission": "byQueue", "sourceQueueArns": ["{arn}a", "{arn}b"]}}',
    }
    assert redrive_of(attributes) == Redrive("dead", "3", "byQueue", "a, b")
    assert redrive_of({"RedrivePolicy": "{", "RedriveAllowPolicy": "[]"}) == Redrive()
