"""Settings of the graph-diffusion study and its three presets."""

from dataclasses import dataclass

from boundlab.checks import check_integer, fail


@dataclass(frozen=True)
class Config:
    """What the study runs. Sizes and counts are static; all else is traced."""

    topology_nodes: tuple[int, ...] = (32, 64, 128, 256)
    """Nodes of the regular, power-law and star graphs, ascending even numbers; the sampler is simulated
    on the least."""
    topology_features: int = 50
    """Feature size F of the comparison over graph sizes; the paper's is 50."""
    topology_steps: int = 100
    """Steps N of the sampler."""
    topology_draws: int = 64
    """Random graphs of each family and size."""
    topology_seeds: int = 512
    """Runs of the sampler behind every simulated variance."""

    def __post_init__(self) -> None:
        for nodes in self.topology_nodes:
            check_integer("topology_nodes", nodes, 8)
        if any(nodes % 2 for nodes in self.topology_nodes) or len(self.topology_nodes) < 2:
            raise fail("topology_nodes", self.topology_nodes, "two even numbers or more")
        if list(self.topology_nodes) != sorted(set(self.topology_nodes)):
            raise fail("topology_nodes", self.topology_nodes, "an ascending sequence")
        for name in ("topology_draws", "topology_seeds", "topology_steps"):
            check_integer(name, getattr(self, name), 2)
        check_integer("topology_features", self.topology_features, 10)


PRESETS = {
    "smoke": Config(
        topology_nodes=(32, 128),
        topology_draws=16,
        topology_seeds=64,
        topology_steps=40,
    ),
    "quick": Config(),
    "paper": Config(
        topology_nodes=(32, 64, 128, 256, 512),
        topology_steps=200,
        topology_draws=256,
        topology_seeds=4096,
    ),
}
