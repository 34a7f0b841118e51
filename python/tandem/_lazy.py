# python/tandem/_lazy.py: names of a package that are imported when they are first used.
"""`import tandem` loads neither Arrow nor matplotlib nor the native part, so that pictures can be drawn where only matplotlib is."""

from __future__ import annotations

import importlib
from typing import Any, Callable


def imports(package: str, modules: dict[str, list[str]]) -> Callable[[str], Any]:
    """A `__getattr__` for `package`: `modules` says which of its modules has which names (none: the module itself)."""
    places = {name: module for module, names in modules.items() for name in names or [module]}

    def get(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = importlib.import_module(f".{places[name]}", package)
        return module if places[name] == name else getattr(module, name)

    return get
