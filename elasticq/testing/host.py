"""The common base of a server and a cluster: they start and stop, are context managers, and are Views."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from elasticq.testing.calls import Caller
from elasticq.testing.view import View


class Host(View, ABC):
    """The base of a server and of a cluster. It is also a View, for its own account."""

    def __init__(self, account: str, region: str) -> None:
        super().__init__(self, account)
        self._region = region
        self._views: list[View] = []

    @property
    def region(self) -> str:
        return self._region

    @abstractmethod
    def start(self) -> None:
        """Start, and return when calls are served."""

    @abstractmethod
    def stop(self) -> None:
        """Stop, and close all clients of its views. Do nothing if it is not running."""

    def close(self) -> None:
        self.stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def view(self, account: str) -> View:
        """Return the view of another account, a number of 12 digits."""
        view = View(self, account)
        self._views.append(view)
        return view

    @abstractmethod
    def callers(self, account: str) -> list[Caller]:
        """Return a sender of requests for ``account`` to each server. Faults use all; other calls use the first one."""

    def _close_views(self) -> None:
        for view in (self, *self._views):
            View.close(view)
        self._views.clear()


def overlaid(sections: dict[str, dict[str, Any]], more: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return ``sections`` of a configuration, updated in place with those of ``more``."""
    for section, values in more.items():
        sections.setdefault(section, {}).update(values)
    return sections
