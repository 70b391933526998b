"""The process's log: one event a line, as text or as JSON, whatever its fields hold.

Numbers and names beside an event are given as ``extra={"fields": {...}}``: they become members of the JSON object, or
``name=value``.
"""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, Final, Literal

Format = Literal["text", "json"]

_CONTROL: Final = {code: f"\\x{code:02x}" for code in (*range(32), *range(0x7F, 0xA0), 0x2028, 0x2029) if code != 10}
_LINE_END: Final = {**_CONTROL, 10: "\\n"}


class OneLine(logging.Formatter):
    """Writes control characters of messages as escapes, so that no field can pretend to be another line.

    Tracebacks keep their lines; they come from this program.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:
        told = [record.message, *(f"{name}={value}" for name, value in _fields(record).items())]
        record.message = " ".join(told).translate(_LINE_END)
        return super().formatMessage(record)

    def formatException(self, ei: object) -> str:
        return super().formatException(ei).translate(_CONTROL)  # type: ignore[arg-type]


class JsonLine(logging.Formatter):
    """Writes a JSON object a line: time, level, logger, event, its fields, and trace where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=True, default=str)  # escaped: no reader takes a control for a line's end


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    fields = getattr(record, "fields", None)
    return fields if isinstance(fields, dict) else {}


def set_up(form: Format = "text") -> None:
    """Log to stderr, from INFO on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLine() if form == "json" else OneLine("%(asctime)s %(levelname)s %(name)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
