"""Public names of a package that are imported when they are first asked for."""

import re
from importlib import import_module
from pathlib import Path
from typing import Any


def public_names(package: str, file: str) -> tuple[Any, Any, list[str]]:
    """Return a package's ``__getattr__``, ``__dir__`` and ``__all__``.

    Parameters
    ----------
    package : str
        Its name.
    file : str
        Its ``__init__.py``, whose imports for type checkers say where each name is defined.
    """
    found = re.findall(r"^    from (\S+) import (\w+) as", Path(file).read_text("utf-8"), re.M)
    modules = {name: module for module, name in sorted(found, key=lambda one: one[1])}

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(modules[name]), name)

    return get, lambda: list(modules), list(modules)
