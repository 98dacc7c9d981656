"""Where jobs come from: logs, models, and the ground truth of applications.

A name is imported from its module when it is first asked for.
"""

from typing import TYPE_CHECKING

from predictors.lazy import public_names

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

__getattr__, __dir__, __all__ = public_names(__name__, __file__)
