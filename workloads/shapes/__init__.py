"""Families of shapes: how an application's runtime depends on its processors."""

from workloads.shapes.analytic import Amdahl, General, PowerLaw
from workloads.shapes.base import ShapeFamily, Shapes
from workloads.shapes.downey import Downey
from workloads.shapes.irregular import Declining, Stepwise
from workloads.shapes.measured import Measured
from workloads.shapes.rigid import NoMoldability
from workloads.shapes.special import Special

__all__ = [
    "Amdahl",
    "Declining",
    "Downey",
    "General",
    "Measured",
    "NoMoldability",
    "PowerLaw",
    "ShapeFamily",
    "Shapes",
    "Special",
    "Stepwise",
]
