"""What a server and a cluster have in common: they start and stop, also as context managers, and are Views."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from elasticq.testing.calls import Caller
from elasticq.testing.view import View


class Host(View, ABC):
    """The base of a server and of a cluster, which is also a View of itself."""

    def __init__(self, account: str, region: str) -> None:
        super().__init__(self, account)
        self._region = region
        self._views: list[View] = []

    @property
    def region(self) -> str:
        return self._region

    @abstractmethod
    def start(self) -> None:
        """Start; returns when calls are served."""

    @abstractmethod
    def stop(self) -> None:
        """Stop, and close the clients that it gave; harmless if it does not run."""

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
        """Return the view of another account, which is a number of 12 digits."""
        view = View(self, account)
        self._views.append(view)
        return view

    @abstractmethod
    def callers(self, account: str) -> list[Caller]:
        """Return a caller for each server; the first is asked for clock and queues."""

    def _close_views(self) -> None:
        for view in (self, *self._views):
            View.close(view)
        self._views.clear()


def overlaid(sections: dict[str, dict[str, Any]], more: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the ``sections`` of a configuration, with those of ``more`` over them."""
    for section, values in more.items():
        sections.setdefault(section, {}).update(values)
    return sections
