"""Where jobs come from: logs, models, and the ground truth of applications.

A name is imported from its module when it is first asked for.
"""

import re
from importlib import import_module
from operator import itemgetter
from pathlib import Path
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
_BLOCK = re.findall(r"^    from (\S+) import (\w+) as", Path(__file__).read_text("utf-8"), re.M)
_MODULES = {name: module for module, name in sorted(_BLOCK, key=itemgetter(1))}
"""Public name and the module that defines it, as the block above tells type checkers too."""
__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    """Import a public name from its module."""
    if name not in _MODULES:
        raise AttributeError(f"module 'workloads' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(_MODULES)
