"""GetCallerIdentity: whom the server takes the caller for."""

from elasticq.engine.execute import execute
from elasticq.model.commands import Call
from elasticq.model.identity import CallerIdentityResult, GetCallerIdentity
from elasticq.model.names import ANONYMOUS
from tests.engine.desk import ENDPOINT, Desk


def test_signed_call_has_a_user_and_an_unsigned_one_the_root() -> None:
    desk = Desk()
    for principal, user_id, name in ((ANONYMOUS, "1" * 12, "root"), ("AKID", "AKID", "user/AKID")):
        call = Call(GetCallerIdentity(), principal, f"{'1' * 12}/eu-west-1", ENDPOINT)
        result, mutations = execute(desk.state, call, desk.context)
        assert result == CallerIdentityResult(user_id, f"arn:aws:iam::{'1' * 12}:{name}", "1" * 12)
        assert mutations == []
