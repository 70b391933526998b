"""AddPermission and RemovePermission write the queue's Policy as AWS does."""

import json

import pytest

from elasticq.model import commands as c
from elasticq.model.errors import InvalidParameterValue, MissingParameter, OverLimit
from tests.engine.desk import Desk

ARN = "arn:aws:sqs:us-east-1:000000000000:jobs"


@pytest.fixture
def desk() -> Desk:
    desk = Desk()
    desk.create()
    return desk


def policy(desk: Desk) -> str | None:
    shown = desk.do(c.GetQueueAttributes(queue_url="jobs", attribute_names=["All"])).attributes
    return shown.get("Policy")


def add(desk: Desk, label: str = "one", accounts: list[str] | None = None, actions: list[str] | None = None) -> None:
    accounts = ["111111111111"] if accounts is None else accounts
    actions = ["SendMessage"] if actions is None else actions
    desk.do(c.AddPermission(queue_url="jobs", label=label, aws_account_ids=accounts, actions=actions))


def test_permission_is_a_statement_of_the_policy(desk: Desk) -> None:
    add(desk)
    assert policy(desk) == (
        '{"Version":"2008-10-17","Id":"arn:aws:sqs:us-east-1:000000000000:jobs/SQSDefaultPolicy",'
        '"Statement":[{"Sid":"one","Effect":"Allow","Principal":{"AWS":"arn:aws:iam::111111111111:root"},'
        '"Action":"SQS:SendMessage","Resource":"arn:aws:sqs:us-east-1:000000000000:jobs"}]}'
    )


def test_several_principals_and_actions_are_lists(desk: Desk) -> None:
    add(desk, accounts=["111111111111", "222222222222"], actions=["SendMessage", "*"])
    (statement,) = json.loads(policy(desk) or "")["Statement"]
    assert statement["Principal"] == {"AWS": ["arn:aws:iam::111111111111:root", "arn:aws:iam::222222222222:root"]}
    assert statement["Action"] == ["SQS:SendMessage", "SQS:*"]


def test_policy_goes_with_its_last_label(desk: Desk) -> None:
    add(desk)
    add(desk, "two")
    desk.do(c.RemovePermission(queue_url="jobs", label="one"))
    assert [statement["Sid"] for statement in json.loads(policy(desk) or "")["Statement"]] == ["two"]
    desk.do(c.RemovePermission(queue_url="jobs", label="two"))
    assert policy(desk) is None


def test_statements_of_a_policy_that_was_set_stay(desk: Desk) -> None:
    own = {"Version": "2012-10-17", "Statement": {"Effect": "Deny", "Principal": "*", "Action": "sqs:*"}}
    desk.do(c.SetQueueAttributes(queue_url="jobs", attributes={"Policy": json.dumps(own)}))
    assert policy(desk) == json.dumps(own)
    add(desk)
    document = json.loads(policy(desk) or "")
    assert (document["Version"], document["Statement"][0]) == ("2012-10-17", own["Statement"])


def test_label_taken_and_label_unknown(desk: Desk) -> None:
    add(desk)
    with pytest.raises(InvalidParameterValue) as taken:
        add(desk)
    assert taken.value.message == "Value one for parameter Label is invalid. Reason: Already exists."
    with pytest.raises(InvalidParameterValue) as unknown:
        desk.do(c.RemovePermission(queue_url="jobs", label="two"))
    assert unknown.value.message == "Value two for parameter Label is invalid. Reason: can't find label."


@pytest.mark.parametrize("label", ["a b", "x" * 81, "ä"])
def test_bad_labels_are_refused(desk: Desk, label: str) -> None:
    with pytest.raises(InvalidParameterValue):
        add(desk, label)


@pytest.mark.parametrize("missing", [{"label": ""}, {"actions": []}])
def test_required_members(desk: Desk, missing: dict[str, object]) -> None:
    with pytest.raises(MissingParameter):
        add(desk, **missing)


def test_batch_actions_are_refused(desk: Desk) -> None:
    with pytest.raises(InvalidParameterValue) as caught:
        add(desk, actions=["ChangeMessageVisibilityBatch"])
    assert caught.value.message == (
        "Value SQS:ChangeMessageVisibilityBatch for parameter ActionName is invalid. "
        "Reason: Please refer to the appropriate WSDL for a list of valid actions."
    )


def test_what_is_the_owners_alone_cannot_be_permitted(desk: Desk) -> None:
    with pytest.raises(InvalidParameterValue) as caught:
        add(desk, actions=["RemovePermission"])
    assert caught.value.message == (
        "Value SQS:RemovePermission for parameter ActionName is invalid. "
        "Reason: Only the queue owner is allowed to invoke this action."
    )


def test_principals_must_be_given(desk: Desk) -> None:
    with pytest.raises(InvalidParameterValue) as caught:
        add(desk, accounts=[])
    assert caught.value.message == "Value [] for parameter PrincipalId is invalid. Reason: Unable to verify."


def test_principal_must_be_an_account(desk: Desk) -> None:
    with pytest.raises(InvalidParameterValue) as caught:
        add(desk, accounts=["me"])
    assert (
        caught.value.message == "Value [me] for parameter PrincipalId is invalid. Reason: Unable to verify principal."
    )


def test_too_much_is_over_limit(desk: Desk) -> None:
    names = ["SendMessage", "ReceiveMessage", "DeleteMessage", "PurgeQueue", "GetQueueUrl", "GetQueueAttributes", "*"]
    with pytest.raises(OverLimit, match=r"8 Actions were found, maximum allowed is 7\."):
        add(desk, actions=[*names, "ChangeMessageVisibility"])
    for at in range(20):
        add(desk, f"label{at}")
    with pytest.raises(OverLimit, match="21 statements were found in the submitted policy, max allowed is 20"):
        add(desk)


STATEMENT = {"Effect": "Allow", "Principal": "*", "Action": "sqs:*", "Resource": ARN}


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"Id": "x" * 8_192, "Statement": []}, "Submitted policy is over max allowed size."),
        ({"Statement": [STATEMENT] * 21}, "21 statements were found"),
        ({"Statement": [{**STATEMENT, "Action": ["sqs:SendMessage"] * 10}]}, "10 actions were found in a statement"),
        ({"Statement": [{**STATEMENT, "Principal": {"AWS": ["111111111111"] * 51}}]}, "51 principals"),
        ({"Statement": [{**STATEMENT, "Condition": {str(at): {} for at in range(11)}}]}, "11 conditions"),
    ],
)
def test_policy_that_is_set_has_the_same_limits(desk: Desk, document: object, words: str) -> None:
    with pytest.raises(OverLimit, match=words):
        desk.do(c.SetQueueAttributes(queue_url="jobs", attributes={"Policy": json.dumps(document)}))
