"""Notifications of the process's state to systemd, by the protocol of sd_notify(3)."""

import logging
import os
import socket
from typing import Final

READY: Final = "READY=1"
STOPPING: Final = "STOPPING=1"
SOCKET_VARIABLE: Final = "NOTIFY_SOCKET"

_log = logging.getLogger(__name__)


def notify(state: str) -> None:
    """Send one datagram to systemd. Do nothing without systemd, and only log a failure."""
    address = os.environ.get(SOCKET_VARIABLE, "")
    if not address:
        return
    if address.startswith("@"):
        address = "\0" + address[1:]  # an abstract name
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)
            sender.sendto(state.encode(), address)
    except OSError as error:
        _log.warning("not_notified %s %s", state, error)
