"""The process's log: one event a line, as text or as JSON, even if its fields contain line ends.

Code passes the fields of an event as ``extra={"fields": {...}}``. They become members of the JSON object, or
``name=value`` in text.
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
    """A formatter that escapes control characters of messages, so no field can forge a log line.

    Tracebacks keep their lines, because they come from this program.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:
        parts = [record.message, *(f"{name}={value}" for name, value in _fields(record).items())]
        record.message = " ".join(parts).translate(_LINE_END)
        return super().formatMessage(record)

    def formatException(self, ei: object) -> str:
        return super().formatException(ei).translate(_CONTROL)  # type: ignore[arg-type]


class JsonLine(logging.Formatter):
    """A formatter that writes a JSON object a line: time, level, logger, event, its fields, and a trace if any."""

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
        return json.dumps(
            line, ensure_ascii=True, default=str
        )  # ensure_ascii: some readers end a line at a Unicode control


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    fields = getattr(record, "fields", None)
    return fields if isinstance(fields, dict) else {}


def set_up(form: Format = "text") -> None:
    """Send log lines of level INFO and above to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLine() if form == "json" else OneLine("%(asctime)s %(levelname)s %(name)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
