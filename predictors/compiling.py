"""Compiled functions, and where their machine code is kept between processes.

Numba keeps a function's code until its own file changes, although the code holds what the
function calls and the constants that it takes in from other files, too. So code is kept in a
folder named by what all sources say: an edit of any of them is another folder, and a clone and
an installed copy that say the same share one. Functions of other packages have their code there,
too, until any source of their package changes.
"""

import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, ParamSpec, Self, TypeVar, cast, overload
from uuid import uuid4

import numpy as np
from numba import config, njit, typeof
from numba.core.caching import UserProvidedCacheLocator

_settings: Any = config
Given = ParamSpec("Given")
Found = TypeVar("Found")
PACKAGES = ("predictors", "sim", "workloads")
ROOT = Path(__file__).resolve().parents[1]
NAME = "moldsim-kernels-"
"""What names of folders of compiled code begin with."""
MOST_KEPT, DAYS_KEPT = 3, 30
"""Of other states of the sources so many folders stay, and all that were used so lately."""


def _digest(root: Path, paths: Iterable[Path]) -> str:
    """Return a digest of sources, which hangs on their names below a folder and texts alone."""
    digest = hashlib.sha256()
    for path in sorted(paths):
        text = path.read_bytes()
        digest.update(f"{path.relative_to(root).as_posix()} {len(text)}\n".encode() + text)
    return digest.hexdigest()[:32]


@cache
def state_of_sources() -> str:
    """Return a digest of all sources of the project."""
    return _digest(ROOT, (path for package in PACKAGES for path in (ROOT / package).rglob("*.py")))


def _private_folder() -> Path:
    """Return a temporary folder that is this user's alone."""
    folder = Path(tempfile.gettempdir(), f"{NAME}{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if status.st_uid != os.getuid() or status.st_mode & 0o077 or folder.is_symlink():
        folder = Path(tempfile.mkdtemp(prefix=NAME))
    return folder


def _cache_of_user() -> Path:
    """Return where compiled code belongs: NUMBA_CACHE_DIR, else in the user's cache."""
    if _settings.CACHE_DIR:
        return Path(_settings.CACHE_DIR)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser(), "moldsim")


def remove_old(place: Path) -> None:
    """Remove folders of compiled code that nobody has used for long, except the latest.

    Another process may do so at the same time, or begin to use one: it makes it anew.
    """
    known = []
    for folder in place.glob(f"{NAME}*"):
        with suppress(OSError):  # another process was faster
            known.append((folder.stat().st_mtime, folder))
    for used, folder in sorted(known, reverse=True)[MOST_KEPT:]:
        if time.time() - used > DAYS_KEPT * 86400:
            with suppress(OSError):
                shutil.rmtree(folder.rename(f"{folder}-{uuid4().hex}"), ignore_errors=True)


@cache
def kernel_folder() -> Path:
    """Return where code compiled from these sources is kept, a place that can be written."""
    folder = _cache_of_user() / f"{NAME}{state_of_sources()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
        os.utime(folder)
        remove_old(folder.parent)
    except OSError:
        folder = _private_folder() / folder.name
        folder.mkdir(exist_ok=True)
    return folder


class KernelLocator(UserProvidedCacheLocator):
    """Where Numba keeps the code of a function that is `compiled`."""

    def __init__(self, function: Any, source: str) -> None:
        self._lineno = function.__code__.co_firstlineno
        self._folder, self._stamp = kernel_folder() / function.__module__, state_of_sources()
        if not any(Path(source).is_relative_to(ROOT / package) for package in PACKAGES):
            top = Path(source).parent
            while (top.parent / "__init__.py").is_file():
                top = top.parent
            inside = top.rglob("*.py") if (top / "__init__.py").is_file() else top.glob("*.py")
            self._stamp += _digest(top, inside)

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Self | None:
        """Return the place of a function; None if it is not `compiled`, or in no file."""
        is_ours = getattr(py_func, "is_kernel", False) and Path(py_file).is_file()
        return cls(py_func, py_file) if is_ours else None

    def get_cache_path(self) -> str:
        """Return the folder."""
        return str(self._folder)

    def get_source_stamp(self) -> str:
        """Return the state of the sources from which the code may have been compiled."""
        return self._stamp


OWN_LOCATOR = f"{__name__}.{KernelLocator.__name__}"
OTHERS = "UserProvided, InTree, UserWide, IPython, Zip"
"""How Numba finds a place for functions of others, as long as nobody says otherwise."""
if OWN_LOCATOR not in _settings.CACHE_LOCATOR_CLASSES:
    _others = _settings.CACHE_LOCATOR_CLASSES or re.sub(r"(\w+)", r"\1CacheLocator", OTHERS)
    _settings.CACHE_LOCATOR_CLASSES = f"{OWN_LOCATOR}, {_others}"


@overload
def compiled(function: Callable[Given, Found]) -> Callable[Given, Found]: ...


@overload
def compiled(**options: Any) -> Callable[[Callable[Given, Found]], Callable[Given, Found]]: ...


def compiled(function: Any = None, **options: Any) -> Any:
    """Return a compiled function whose code is kept, or what makes such with options.

    Other threads may run meanwhile, such as the one that an interrupt by the user is to end
    all by. What is divided by 0 is infinite or NaN, as in NumPy: where nothing can raise, counts
    of references cancel out.

    Parameters
    ----------
    function : callable, optional
    **options
        Of `numba.njit`. A short step of a pass says `forceinline`: it is compiled by itself, in
        which most counts of references cancel out, and then put into whoever calls it. A step
        that one function of a run alone calls may say `inline="always"`: it is compiled there
        only, but in a large function fewer counts cancel out.
    """
    if function is None:
        return partial(compiled, **options)
    function.is_kernel = True
    return njit(cache=True, nogil=True, error_model="numpy", **options)(function)


def direct(function: Callable[Given, Found]) -> Callable[Given, Found]:
    """Return a compiled function whose arguments always have the types that they had first.

    At each call Numba looks up the types of all arrays in all arguments, which takes longer
    than a short step over many tables does. Here it is done once. Arrays must keep their
    layout: Numba's code does not look.

    Parameters
    ----------
    function : callable
        As `compiled` returns it.

    Examples
    --------
    >>> import numpy as np
    >>> last = direct(njit(lambda values: values[-1]))
    >>> last(np.arange(3.0)), last(np.arange(4.0))
    (2.0, 3.0)
    """
    entry: Any = None

    def call(*arguments: Any) -> Any:
        nonlocal entry
        entry = entry or of_types(function, *arguments)
        return entry(*arguments)

    return cast(Callable[Given, Found], call)


def of_types(function: Any, *arguments: Any) -> Any:
    """Return a compiled function for arguments of the types of these; see `direct`."""
    if not hasattr(function, "compile"):  # nothing is compiled
        return function
    return function.compile(tuple(map(typeof, arguments)))


def record(**fields: Any) -> np.dtype[Any]:
    """Return what is in a table whose rows have fields of these types, for plain Python, too."""
    kind = np.dtype([*fields.items()], align=True)
    return np.dtype((np.record, kind)) if _settings.DISABLE_JIT else kind
