"""Headers of requests that matter to more than one port."""

from typing import Final

from elasticq.wire import browsers

ONCE: Final = frozenset(
    b"access-control-request-method amz-sdk-invocation-id authorization content-encoding content-length content-type"
    b" date expect host trailer transfer-encoding upgrade user-agent x-amz-content-sha256 x-amz-date"
    b" x-amz-security-token x-amz-target x-amzn-query-mode x-amzn-trace-id x-elasticq-fence x-elasticq-guid".split()
) | frozenset(browsers.MARKS)
"""Names, in lower case, of headers that define the framing, the caller or the action of a request.

Parsers could read a repeated header of these differently. So the reader of heads (http/connection/head.py) refuses
it, and the check of signatures relies on that.
"""

NOTIFICATION_TYPE: Final = "x-amz-sns-message-type"
"""The header of every post to a subscriber, as on AWS. No client of SQS or SNS sends it.

The address of a subscriber may be a port of this server, of another member or of another cluster. So every port
answers 403 to a request with this header, and does not execute it.
"""
NOT_FOR_POSTS: Final = f"Notifications of topics may not be sent here: a request with {NOTIFICATION_TYPE} is refused."
