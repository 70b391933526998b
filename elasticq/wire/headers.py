"""The headers that a request may have once."""

from typing import Final

from elasticq.wire import browsers

ONCE: Final = frozenset(
    b"access-control-request-method amz-sdk-invocation-id authorization content-encoding content-length content-type"
    b" date expect host trailer transfer-encoding upgrade user-agent x-amz-content-sha256 x-amz-date"
    b" x-amz-security-token x-amz-target x-amzn-query-mode x-amzn-trace-id x-elasticq-fence x-elasticq-guid".split()
) | frozenset(browsers.MARKS)
"""In lower case: what frames a request, or says who asks for what. Standing twice, it could be read in two ways, so
the reader of heads (http/head.py) refuses it, and the check of signatures counts on that."""
