"""TagResource, UntagResource, ListTagsForResource."""

import pytest

from elasticq.model import errors
from elasticq.model import topic_commands as t
from tests.engine.topic_desk import TopicDesk, arn


@pytest.fixture
def desk() -> TopicDesk:
    made = TopicDesk()
    made.topic()
    return made


def tags(desk: TopicDesk) -> dict[str, str]:
    return {tag.key: tag.value for tag in desk.do(t.ListTagsForResource(arn())).tags}  # type: ignore[attr-defined]


def test_tags_are_added_overwritten_and_removed(desk: TopicDesk) -> None:
    desk.do(t.TagResource(arn(), [t.Tag("a", "1"), t.Tag("b", "")]))
    desk.do(t.TagResource(arn(), [t.Tag("a", "2")]))
    assert tags(desk) == {"a": "2", "b": ""}
    desk.do(t.UntagResource(arn(), ["a", "unknown"]))
    assert tags(desk) == {"b": ""}


def test_a_new_topic_of_the_same_name_has_none(desk: TopicDesk) -> None:
    desk.do(t.TagResource(arn(), [t.Tag("a", "1")]))
    desk.do(t.DeleteTopic(arn()))
    desk.topic()
    assert tags(desk) == {}


def test_tags_that_are_none_are_refused_and_nothing_is_stored(desk: TopicDesk) -> None:
    with pytest.raises(errors.InvalidParameter, match=r"Invalid parameter: Duplicated keys are not allowed\."):
        desk.do(t.TagResource(arn(), [t.Tag("a", "1"), t.Tag("a", "2")]))
    for tag in (t.Tag("", "1"), t.Tag("k" * 129, "1"), t.Tag("k", "v" * 257)):
        with pytest.raises(errors.InvalidParameter):
            desk.do(t.TagResource(arn(), [t.Tag("good", "1"), tag]))
    desk.do(t.TagResource(arn(), [t.Tag(f"k{number}", "") for number in range(50)]))
    with pytest.raises(errors.TagLimitExceeded, match="tag quota of per resource exceeded"):
        desk.do(t.TagResource(arn(), [t.Tag("one-more", "")]))
    assert len(tags(desk)) == 50


def test_unknown_topic_is_an_unknown_resource(desk: TopicDesk) -> None:
    for command in (t.TagResource(arn("x")), t.UntagResource(arn("x"), ["a"]), t.ListTagsForResource(arn("x"))):
        with pytest.raises(errors.TaggedResourceNotFound, match="Resource does not exist"):
            desk.do(command)
