"""The log of aiohttp's errors, without the texts of requests."""

from logging import LogRecord, getLogger
from typing import Final

from elasticq.http.connection.failures import Failures

_failures: Final = Failures()


def _without_text(record: LogRecord) -> bool:
    """Replace the text of an aiohttp error by the exception's type and place, because it may quote the request.

    Return whether to log the record. It is not logged if the client left before its answer was written, nor if
    the same place was logged within the last minute.
    """
    _, failure, trace = record.exc_info or (None, None, None)
    if isinstance(failure, ConnectionError):
        return False
    line = _failures.line("slow_path_failed", failure, trace)
    record.msg, record.args, record.exc_info = "%s", (line,), None
    return bool(line)


LOGGER: Final = getLogger("elasticq.http.aiohttp")
LOGGER.addFilter(_without_text)
