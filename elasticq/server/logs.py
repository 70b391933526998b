"""The process's log: one event a line, whatever its fields hold."""

import logging
import sys
from typing import Final

_CONTROL: Final = {code: f"\\x{code:02x}" for code in (*range(32), *range(0x7F, 0xA0), 0x2028, 0x2029) if code != 10}
_LINE_END: Final = {**_CONTROL, 10: "\\n"}


class OneLine(logging.Formatter):
    """Control characters of messages are written as escapes, so that no field can pretend to be another line.

    Tracebacks keep their lines; they come from this program.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = record.message.translate(_LINE_END)
        return super().formatMessage(record)

    def formatException(self, ei: object) -> str:
        return super().formatException(ei).translate(_CONTROL)  # type: ignore[arg-type]


def set_up() -> None:
    """To stderr, from INFO on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(OneLine("%(asctime)s %(levelname)s %(name)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
