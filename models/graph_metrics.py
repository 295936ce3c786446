"""How alike two sets of graphs are: statistics, maximum mean discrepancy, floors, duplicates.

from boundlab.models import graph_metrics
statistics = graph_metrics.graph_statistics(adjacency, mask)
graph_metrics.mmd_squared(reference.orbits, statistics.orbits, "orbits")
"""

from boundlab.models.graph_discrepancy import (
    KERNELS,
    Floor,
    kernel_matrix,
    mmd_floor,
    mmd_squared,
)
from boundlab.models.graph_duplicates import count_distinct, duplicates
from boundlab.models.graph_orbits import orbit_counts
from boundlab.models.graph_statistics import GraphStatistics, graph_statistics

__all__ = [
    "KERNELS",
    "Floor",
    "GraphStatistics",
    "count_distinct",
    "duplicates",
    "graph_statistics",
    "kernel_matrix",
    "mmd_floor",
    "mmd_squared",
    "orbit_counts",
]
