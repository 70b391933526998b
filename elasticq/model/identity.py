"""The command and the result of GetCallerIdentity, the only action of STS that is here."""

from elasticq.model.commands import Command
from elasticq.model.results import Result


class GetCallerIdentity(Command):
    """The question who the caller is."""


class CallerIdentityResult(Result):
    """The name, the ARN and the account of the caller."""

    user_id: str
    arn: str
    account: str
