"""The admission of slow requests: who calls, and which GETs may change something."""

from typing import Final

from elasticq.http.connection.head import JSON
from elasticq.http.context import ServerContext
from elasticq.http.pages.asked import Asked
from elasticq.model.errors import AccessDenied

LINKS: Final = frozenset(("ConfirmSubscription", "Unsubscribe"))
"""Actions of SNS that subscribers call by links in the messages that they get."""


def admit(context: ServerContext, asked: Asked) -> tuple[str, str]:
    """Return principal and owner (model/names.py) of the caller. Raise the SqsError that the client gets."""
    head, authenticator = asked.head, context.authenticator
    if authenticator is None:
        return context.callers.identify_request(head.lines, head.authorization)
    return authenticator.admit(head.lines, head.authorization, asked.body)


def admit_link(context: ServerContext, asked: Asked, protocol: int) -> tuple[str, str] | None:
    """Return an anonymous caller for a link of ``LINKS``, which subscribers cannot sign; None for other requests.

    The link itself is the credential: it contains a token or an ARN.
    """
    if protocol == JSON or asked.request.method != "GET" or asked.credential:
        return None
    is_link = asked.request.query.get("Action") in LINKS
    return context.callers.identify(b"") if is_link else None


def check_method(context: ServerContext, asked: Asked, action: str) -> None:
    """Raise AccessDenied for an unsigned GET that changes something, if a web page could have sent it.

    Without an Authenticator any Authorization header is enough, because no page can make a browser send one.
    """
    browsers = context.browsers
    if browsers is None or asked.request.method != "GET" or action in LINKS:
        return
    head, authenticator = asked.head, context.authenticator
    if head.authorization or (authenticator is not None and authenticator.is_signed(head.lines, b"")):
        return
    reason = browsers.get_refusal(asked.request.headers.get, action)
    if reason:
        raise AccessDenied(reason)
