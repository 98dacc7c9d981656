"""Compiled functions, and where their machine code is kept between processes.

Numba keeps a function's code beside its source and drops it when that file changes. A
function that calls others, or takes their constants in, holds those, too; so here the code
of a function is dropped when any file changes that it was compiled from. And where neither the
installation nor the home can be written, code goes to a private temporary folder.
"""

import hashlib
import os
import re
import tempfile
from collections.abc import Callable
from functools import cache
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any, ParamSpec, Protocol, Self, TypeVar

from llvmlite.binding import parse_bitcode
from numba import config, njit, typeof
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import Cache, CacheImpl, _CacheLocator
from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
from numba.core.runtime.nrt import rtsys

_njit: Any = njit
Given = ParamSpec("Given")
Found = TypeVar("Found")
PACKAGES = ("predictors", "sim", "workloads")
HOLDS_COMPILED = re.compile(r"import .*\bcompiled\b", re.MULTILINE)
ROOT = Path(__file__).resolve().parents[1]
IMPORTED = re.compile(
    rf"^(?:from|import) ((?:{'|'.join(PACKAGES)})[\w.]*)(?: import ([\w, (]+))?", re.MULTILINE
)


@cache
def _imports(path: Path) -> frozenset[Path]:
    """Return the modules of the project that a file imports, if it holds compiled functions."""
    text = path.read_text(encoding="utf-8")
    if not HOLDS_COMPILED.search(text):
        return frozenset()
    named = [
        one
        for module, names in IMPORTED.findall(text)
        for one in (module, *(f"{module}.{name}" for name in re.findall(r"\w+", names)))
    ]
    files = [ROOT.joinpath(*one.split(".")).with_suffix(".py") for one in named]
    return frozenset(file for file in files if file.is_file())


@cache
def compiled_from(path: Path) -> frozenset[Path]:
    """Return the files that the compiled functions of a file hang on, itself among them.

    These are the modules of the project that it imports and, of those that hold compiled
    functions, the ones that they import.
    """
    found, pending = {path}, [path]
    while pending:
        new = _imports(pending.pop()) - found
        found |= new
        pending += new
    return frozenset(found)


@cache
def _digest(path: Path) -> bytes:
    return hashlib.sha256(path.read_bytes()).digest()


@cache
def _stamp(path: Path) -> bytes:
    return hashlib.sha256(b"".join(map(_digest, sorted(compiled_from(path))))).digest()


@cache
def _own_source(file: str) -> Path | None:
    """Return the source file if it is one of the project's."""
    source = Path(file).resolve()
    owned = any(source.is_relative_to(ROOT / package) for package in PACKAGES)
    return source if owned and source.is_file() else None


def _private_folder() -> Path:
    """Return a temporary folder that is this user's alone."""
    folder = Path(tempfile.gettempdir(), f"moldsim-kernels-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if status.st_uid != os.getuid() or status.st_mode & 0o077 or folder.is_symlink():
        folder = Path(tempfile.mkdtemp(prefix="moldsim-kernels-"))
    return folder


def folders_of(source: Path) -> list[Path]:
    """Return where the code of a file's functions may be kept, the best place first."""
    own = f"{source.parent.name}_{hashlib.sha256(bytes(source.parent)).hexdigest()[:16]}"
    given = getattr(config, "CACHE_DIR", "")  # NUMBA_CACHE_DIR
    if given:
        return [Path(given, own)]
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "moldsim")
    return [source.parent / "__pycache__", home / own]


@cache
def folder_of(source: Path) -> Path:
    """Return where the code of a file's functions is kept: the first place that can be written."""
    for folder in folders_of(source):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
        except OSError:
            continue
        return folder
    folder = _private_folder() / folders_of(source)[-1].name
    folder.mkdir(exist_ok=True)
    return folder


class KernelLocator(_CacheLocator):
    """Where Numba keeps the code of one of the project's functions, and what it hangs on."""

    def __init__(self, function: Any, source: Path) -> None:
        self._source = source
        self._line = function.__code__.co_firstlineno

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Self | None:
        """Return the place of a function; None if it is not one of the project's."""
        source = _own_source(py_file)
        return None if source is None else cls(py_func, source)

    def get_cache_path(self) -> str:
        """Return the folder."""
        return str(folder_of(self._source))

    def get_source_stamp(self) -> bytes:
        """Return what changes with any file that the function is compiled from."""
        return _stamp(self._source)

    def get_disambiguator(self) -> str:
        """Return what tells functions of one name in one file apart."""
        return str(self._line)


class Compiler(Protocol):
    """What compiles a function, whose types stay as they are."""

    def __call__(self, function: Callable[Given, Found], /) -> Callable[Given, Found]:
        """Return what runs in place of the function."""


def compiled(*, makes_arrays: bool = False, **options: Any) -> Compiler:
    """Return what compiles a function, and keeps its code.

    Whoever gives arrays to a function holds them until it returns. So one that makes none need
    not count who refers to them, which Numba otherwise does, with an atomic step each time that
    an array, or a tuple that holds arrays, gets a name or is handed on: four fifths of the time
    of a short step over many tables. Other threads may run meanwhile, such as the one that an
    interrupt by the user is to end all by.

    Parameters
    ----------
    makes_arrays : bool
        Whether the function makes arrays, by whatever expression, or returns any. It must
        be said of each that does: of most others Numba says *NRT required but not enabled*, and
        what the rest make stays in memory for ever (`tests/contract/test_compiled_functions.py`).
    **options
        Of `numba.njit`.
    """
    compiler: Compiler = _njit(cache=True, nogil=True, _nrt=makes_arrays, **options)
    return compiler


@cache
def _load_array_functions() -> None:
    """Load Numba's functions of arrays; it would load SciPy to see that it is there, as it is."""
    linalg = import_module("numba.np.linalg")
    asked = linalg.ensure_blas
    setattr(linalg, "ensure_blas", lambda: None)  # noqa: B010 (no type checker knows it)
    try:
        import_module("numba.np.arraymath")
    finally:
        setattr(linalg, "ensure_blas", asked)  # noqa: B010


def direct(function: Any) -> Callable[..., Any]:
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
        if entry is not None:
            return entry(*arguments)
        found = function(*arguments)
        if hasattr(function, "get_overload"):  # not where nothing is compiled
            entry = function.get_overload(tuple(map(typeof, arguments)))
        return found

    return call


_load_overload: Any = Cache.load_overload


def _load_kernel(self: Any, signature: Any, context: Any) -> Any:
    """Return compiled code that is kept, None if there is none.

    Numba makes its compiler ready first, a quarter of a second, although what is compiled
    needs its run-time library alone; a function that is not kept makes it ready itself.
    """
    if not isinstance(self._impl.locator, KernelLocator):
        return _load_overload(self, signature, context)
    _load_array_functions()
    rtsys.initialize(context)
    return self._load_overload(signature, context)


class KeptLibrary(JITCodeLibrary):
    """Compiled code; where it was kept, what other code inlines of it is read once any does.

    Numba reads that at once, which takes as long as the code itself, although nothing is
    compiled where everything is kept.
    """

    _kept: tuple[bytes, bytes] = b"", b""

    @classmethod
    def _unserialize(cls, codegen: Any, state: Any) -> Any:
        name, kind, kept = state
        if kind != "object":
            return super()._unserialize(codegen, state)  # type: ignore[no-untyped-call]
        library = codegen.create_library(name)
        library._kept = kept
        library.enable_object_caching()
        library._set_compiled_object(kept[0])
        library._finalize_final_module()
        return library

    def _get_module_for_linking(self) -> Any:
        if self._shared_module is None and self._kept[1]:
            self._shared_module = parse_bitcode(self._kept[1])
        return super()._get_module_for_linking()  # type: ignore[no-untyped-call]

    def get_pointer_to_function(self, name: str) -> int:
        """Return where a function of it stands, 0 if it has none of that name."""
        address: int = super().get_pointer_to_function(name)  # type: ignore[no-untyped-call]
        if not address and name.encode() in self._kept[0]:
            address = self._codegen._engine.get_function_address(name)
        return address


# Numba tells functions of one name and one type apart by a number that counts from 1 in each
# process. Of two such that different processes kept one would run in place of the other.
FunctionIdentity._unique_ids = count(int.from_bytes(os.urandom(6)))
if KernelLocator not in CacheImpl._locator_classes:
    setattr(JITCPUCodegen, "_library_class", KeptLibrary)  # noqa: B010
    CacheImpl._locator_classes.insert(0, KernelLocator)
    setattr(Cache, "load_overload", _load_kernel)  # noqa: B010 (typed as a method)
