"""Where jobs come from: logs, models, and the ground truth of applications.

A name is imported from its module when it is first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workloads.base import Trace as Trace
    from workloads.errors import WorkloadError as WorkloadError
    from workloads.frame import FrameWorkload as FrameWorkload
    from workloads.logs.batsim import BatsimWorkload as BatsimWorkload
    from workloads.logs.log import ArchiveWorkload as ArchiveWorkload
    from workloads.logs.log import SwfWorkload as SwfWorkload
    from workloads.logs.sacct import SacctWorkload as SacctWorkload
    from workloads.logs.swf import read_swf as read_swf
    from workloads.logs.swf import write_swf as write_swf
    from workloads.models.downey import Downey as Downey
    from workloads.models.lublin import Lublin as Lublin
    from workloads.streams import Streams as Streams
    from workloads.truth.build import build_truth as build_truth
_MODULES = {
    "ArchiveWorkload": "workloads.logs.log",
    "BatsimWorkload": "workloads.logs.batsim",
    "Downey": "workloads.models.downey",
    "FrameWorkload": "workloads.frame",
    "Lublin": "workloads.models.lublin",
    "SacctWorkload": "workloads.logs.sacct",
    "Streams": "workloads.streams",
    "SwfWorkload": "workloads.logs.log",
    "Trace": "workloads.base",
    "WorkloadError": "workloads.errors",
    "build_truth": "workloads.truth.build",
    "read_swf": "workloads.logs.swf",
    "write_swf": "workloads.logs.swf",
}
"""Public name and the module that defines it; the block above tells type checkers the same."""
__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    """Import a public name from its module."""
    if name not in _MODULES:
        raise AttributeError(f"module 'workloads' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(_MODULES)
