"""Lazy imports of packages: a package imports a module when one of its names is first used."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def names(package: dict[str, Any], places: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for a package (PEP 562).

    package: its globals. places: the module of each name. ``__getattr__`` raises AttributeError for any other name.
    """
    own_name = package["__name__"]

    def get(name: str) -> Any:
        place = places.get(name)
        if place is None:
            raise AttributeError(f"module {own_name!r} has no attribute {name!r}")
        found = package[name] = getattr(import_module(f"{own_name}.{place}"), name)
        return found

    def all_names() -> list[str]:
        return sorted({*package, *places})

    return get, all_names
