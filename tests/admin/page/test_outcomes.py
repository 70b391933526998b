"""The words of the notes that forms show."""

from elasticq.admin.calls import ACTIONS
from elasticq.admin.page import outcomes
from tests.admin.page.test_forms import forms_of_the_page


def test_each_form_of_the_page_has_its_own_words() -> None:
    wordless = {action for action, _ in forms_of_the_page() if action not in outcomes._WORDS}
    assert wordless == set()
    assert set(outcomes._WORDS) <= set(ACTIONS)


def test_handles_and_checksums_are_not_shown() -> None:
    assert outcomes.detail("StartMessageMoveTask", {"TaskHandle": "AbC="}) == ""
    answer = {"MessageId": "m", "MD5OfMessageBody": "x", "SequenceNumber": "1"}
    assert outcomes.detail("SendMessage", answer) == "MessageId: m\nSequenceNumber: 1"


def test_a_subscription_that_is_not_confirmed_says_so() -> None:
    words = outcomes.of("Subscribe", {}, {"SubscriptionArn": "pending confirmation"})
    assert words == ("Done.", "The subscription waits until its endpoint confirms it.")
    assert outcomes.of("CreateTopic", {"Name": "news"}, {}) == ("news:", "The topic was created.")
