"""Import a package's names on first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from sys import modules
from typing import Any


def later(package: str, places: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and ``__dir__`` functions for a package.

    Args:
        package: the package's ``__name__``.
        places: name -> module in the package that defines the name.
    """
    namespace = vars(modules[package])

    def get(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = namespace[name] = getattr(import_module(f"{package}.{places[name]}"), name)
        return value

    return get, lambda: sorted({*namespace, *places})
