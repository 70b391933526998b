"""Headers of requests that matter to more than one port."""

from typing import Final

from elasticq.wire import browsers

ONCE: Final = frozenset(
    b"access-control-request-method amz-sdk-invocation-id authorization content-encoding content-length content-type"
    b" date expect host trailer transfer-encoding upgrade user-agent x-amz-content-sha256 x-amz-date"
    b" x-amz-security-token x-amz-target x-amzn-query-mode x-amzn-trace-id x-elasticq-fence x-elasticq-guid".split()
) | frozenset(browsers.MARKS)
"""In lower case: what frames a request, or says who asks for what. Standing twice, it could be read in two ways, so
the reader of heads (http/connection/head.py) refuses it, and the check of signatures counts on that."""

NOTIFICATION_TYPE: Final = "x-amz-sns-message-type"
"""The header of every post to a subscriber, here as on AWS. No client of SQS or SNS sends it.

A subscriber may be anywhere, so a post may come to a port of this server, of another member or of another cluster.
Every port answers 403 to a request with this header, and executes nothing.
"""
NOT_FOR_POSTS: Final = f"Notifications of topics may not be sent here: a request with {NOTIFICATION_TYPE} is refused."
