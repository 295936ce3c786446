"""Settings of the excess-risk study and its three presets."""

from dataclasses import dataclass
from typing import Literal

from boundlab.checks import check_choice, check_integer, check_number, fail


@dataclass(frozen=True)
class Config:
    """What the study runs. Sizes and counts are static; all else is traced."""

    num_seeds: int = 2048
    """Runs of SGD behind every simulated mean."""
    num_designs: int = 512
    """Drawn designs behind every simulated mean of ridge (each is averaged over its label noise)."""
    num_graphs: int = 64
    """Random graphs drawn to compare regular with power-law graphs."""
    num_nodes: int = 64
    """Nodes of the graphs of the learning curves."""
    num_samples: tuple[int, ...] = (30, 50, 128)
    """Samples N along the learning curves."""
    structure_nodes: int = 256
    """Nodes of the graphs whose spectra, depths and phase diagrams are compared."""
    structure_samples: int = 512
    """Samples N of the depth profiles."""
    depths: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64)
    """Rounds of aggregation L, increasing."""
    degree: int = 4
    """Degree of the regular graphs; the power-law graphs attach half as many edges a node."""
    noise_variance: float = 0.25
    """Variance of the label noise, with total signal power 1."""
    step_fraction: float = 0.5
    """Step size as a fraction of the exact stability limit."""
    spiked_dim: int = 4096
    """Directions of the spiked spectrum on which SGD beats tuned ridge."""
    citation_nodes: int = 512
    """Nodes of the piece of Cora; 0 for its whole largest component (2,485)."""
    citation_samples: tuple[int, ...] = (128, 512)
    """Samples N along Cora's learning curves."""
    citation_seeds: int = 128
    """Runs behind every simulated mean on Cora."""
    resolution: int = 9
    """Points an axis of the phase diagrams."""
    dtype: Literal["float64", "float32"] = "float64"
    """Precision of the simulations; theory is float64 always."""

    def __post_init__(self) -> None:
        for name in ("num_seeds", "num_designs", "num_graphs", "citation_seeds"):
            check_integer(name, getattr(self, name), 2)
        for name in ("num_nodes", "structure_nodes", "spiked_dim"):
            check_integer(name, getattr(self, name), 16)
        check_choice("dtype", self.dtype, ("float64", "float32"))
        check_integer("structure_samples", self.structure_samples, 4)
        check_integer("resolution", self.resolution, 2)
        check_integer("citation_nodes", self.citation_nodes, 0, 2485)
        if 0 < self.citation_nodes < 16:
            raise fail("citation_nodes", self.citation_nodes, "0 (all of them) or at least 16")
        for name, least in (("num_samples", 4), ("citation_samples", 4), ("depths", 1)):
            values = getattr(self, name)
            for value in values:
                check_integer(name, value, least)
            if not values or list(values) != sorted(set(values)):
                raise fail(name, values, "increasing integers, at least one")
        if self.num_samples[-1] < 2 * self.num_nodes:
            raise fail(
                "num_samples",
                self.num_samples,
                f"a largest one of at least 2·num_nodes = {2 * self.num_nodes} (least squares)",
            )
        if self.depths[0] != 1 or len(self.depths) < 4:
            raise fail("depths", self.depths, "at least four depths, the first of them 1")
        check_integer("degree", self.degree, 2, min(self.num_nodes, self.structure_nodes) - 1)
        if self.degree % 2:
            # Half of it is the power-law graph's edges a node; nodes × degree is even as well.
            raise fail("degree", self.degree, "an even integer")
        check_number("noise_variance", self.noise_variance, 0, low_open=True)
        check_number(
            "step_fraction",
            self.step_fraction,
            0,
            1,
            low_open=True,
            high_open=True,
            why="a step size at or beyond the stability limit diverges",
        )


PRESETS = {
    "smoke": Config(
        num_seeds=256,
        num_designs=128,
        num_graphs=16,
        num_samples=(30, 128),
        structure_nodes=128,
        structure_samples=256,
        citation_nodes=64,
        citation_samples=(32, 128),
        citation_seeds=128,
        resolution=4,
    ),
    "quick": Config(),
    "paper": Config(
        num_seeds=8192,
        num_designs=2048,
        num_graphs=256,
        num_samples=(16, 30, 50, 128, 256, 512, 1024),
        citation_nodes=0,
        citation_samples=(256, 1024, 4096),
        citation_seeds=128,
        resolution=17,
    ),
}
