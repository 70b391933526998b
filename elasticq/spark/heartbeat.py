"""The renewal of a running batch's messages, in a thread of the driver-side process."""

import logging
import threading
from collections.abc import Callable

from elasticq.spark.offsets import Offset

log = logging.getLogger(__name__)


class Heartbeat:
    """A thread that renews one batch every ``interval_s`` seconds, from its planning until its commit."""

    def __init__(self, interval_s: float, renew: Callable[[Offset], None]) -> None:
        self._interval_s = interval_s
        self._renew = renew
        self._changed = threading.Condition()
        self._offset: Offset | None = None
        self._thread: threading.Thread | None = None
        self._stopped = False

    def cover(self, offset: Offset | None) -> None:
        """Renew this batch instead of any other from now on; None: renew nothing."""
        with self._changed:
            self._offset = offset
            if offset is not None and self._thread is None and not self._stopped:
                self._thread = threading.Thread(target=self._run, name="sqs-heartbeat", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """End the thread, and wait for its end."""
        with self._changed:
            self._stopped = True
            self._offset = None
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        while True:
            with self._changed:
                if self._stopped or self._changed.wait(self._interval_s) or self._stopped:
                    return
                offset = self._offset
            if offset is None:
                continue
            try:
                self._renew(offset)
            except Exception as error:  # the next beat may succeed; the commit reports what was lost
                log.warning("renewal_failed batch=%d error=%s", offset.batch, error)
