"""GetCallerIdentity of STS. Scripts and tools call it to learn whether their credentials work."""

from elasticq.engine.context import ExecutionContext, Outcome
from elasticq.engine.state import State
from elasticq.model.commands import Call
from elasticq.model.identity import CallerIdentityResult, GetCallerIdentity
from elasticq.model.names import ANONYMOUS, account_of


def get_caller_identity(state: State, call: Call, command: GetCallerIdentity, context: ExecutionContext) -> Outcome:
    """Return the account and name of the caller: the root user of the account if the call is not signed."""
    account = account_of(call.account)
    if call.principal == ANONYMOUS:
        return CallerIdentityResult(account, f"arn:aws:iam::{account}:root", account), []
    return CallerIdentityResult(call.principal, f"arn:aws:iam::{account}:user/{call.principal}", account), []
