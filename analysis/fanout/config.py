"""Settings of the fan-out study and its three presets."""

from dataclasses import dataclass
from typing import Literal

from boundlab.checks import check_choice, check_integer, check_number, fail


@dataclass(frozen=True)
class Config:
    """What the study runs. Sizes and counts are static; all else is traced."""

    num_nodes: int = 1200
    """Nodes n of the synthetic graphs."""
    degree: int = 24
    """Neighbours of every node of the fixed-mix and regular graphs."""
    num_classes: int = 6
    """Classes K of the synthetic graphs, of equal size."""
    num_features: int = 16
    """Features r of the synthetic graphs."""
    homophily: float = 0.7
    """Share of a node's neighbours in its own class."""
    class_gap: float = 0.8
    """Standard deviation of the class means, with feature noise of standard deviation 1."""
    selection_draws: int = 8192
    """Drawn grids of scores behind every mean of a maximum."""
    ridge_num_train: tuple[int, ...] = (30, 60, 120, 300)
    """Training nodes of the curves of test error against fan-out, ascending."""
    ridge_splits: int = 48
    """Random training sets behind these curves on the fixed-mix graph."""
    ridge_samples: int = 3600
    """Sampled neighbourhoods in a least-squares problem whose minimiser is compared."""
    ridge_steps: int = 400
    """Updates of SGD on the smallest training sets."""
    ridge_graph_splits: int = 24
    """Random training sets on every other graph."""
    ridge_citation_splits: int = 24
    """Random training sets on every citation graph."""
    ridge_citations: tuple[str, ...] = ("cora", "citeseer", "pubmed")
    """Citation graphs whose test accuracy is computed."""
    ridge_citation_features: int = 100
    """Columns to which their features are projected."""
    moment_nodes: int = 72
    """Nodes of the graph on which moments of estimators and gradients are simulated."""
    moment_degree: int = 8
    """Neighbours of its nodes."""
    moment_draws: int = 4096
    """Drawn batches, each with two samples, behind every simulated moment."""
    moment_runs: int = 256
    """Runs of SGD behind its mean iterate and its noise floor."""
    cost_nodes: int = 1200
    """Nodes of every graph on which costs are counted, half of them to train on; also of a piece of
    Cora."""
    cost_degree: int = 12
    """Neighbours of a node of those graphs; the mean where they differ."""
    cost_batch_sizes: tuple[int, ...] = (5, 25, 125)
    """Batch sizes whose costs are counted; at most the training nodes."""
    cost_fan_outs: tuple[int, ...] = (1, 3, 12)
    """Fan-outs whose costs are counted."""
    cost_steps: int = 40
    """Updates of a run whose cost to a target is counted."""
    cost_seeds: int = 48
    """Runs of training in every cell."""
    cost_batches: int = 144
    """Sampled batches in every cell whose nodes are counted."""
    sage_graphs: tuple[str, ...] = ("digits",)
    """Graphs on which the three-layer network is trained: `digits`, `fixed mix`, `cora`, `pubmed`."""
    sage_nodes: int = 240
    """Nodes of the subset of the digits and of the fixed-mix graph; a quarter of them to train on."""
    sage_neighbors: int = 8
    """Neighbours of their nodes."""
    sage_hidden: int = 32
    """Hidden width of the network; the paper's is 256."""
    sage_step_size: float = 0.01
    """Step size of Adam; the paper's is .001, with 10⁵ updates and more."""
    sage_batch_divisors: tuple[int, ...] = (8, 3, 1)
    """Training nodes over batch size, from small batches to all training nodes."""
    sage_fan_outs: tuple[int, ...] = (1, 3, 8)
    """Fan-outs of each of the three layers."""
    sage_steps: int = 60
    """Updates of a run."""
    sage_every: int = 5
    """Updates between two looks at validation and test accuracy; divides `sage_steps`."""
    sage_window: int = 20
    """Consecutive updates of the quiet window that sets the target loss; the paper's is 100."""
    sage_seeds: int = 24
    """Runs in every cell."""
    block_nodes: int = 240
    """Nodes of the regular graph on which block degrees are simulated; a multiple of its degree."""
    block_degree: int = 6
    """Neighbours of its nodes."""
    block_batch_sizes: tuple[int, ...] = (1, 30, 90, 240)
    """Batch sizes b on it, ascending."""
    block_fan_outs: tuple[int, ...] = (1, 2, 3, 6)
    """Fan-outs β on it, ascending."""
    block_seeds: int = 384
    """Drawn batches behind every mean of a block's rows."""
    teacher_nodes: int = 96
    """Nodes of the regular graph on which a ReLU unit learns its teacher; a multiple of 4."""
    teacher_degree: int = 6
    """Neighbours of its nodes, a multiple of 6."""
    teacher_seeds: int = 80
    """Runs behind every mean number of updates to the teacher."""
    transport_nodes: int = 300
    """Nodes of the graphs on which sampled means are held against full ones; a multiple of 4."""
    transport_degree: int = 12
    """Neighbours of their nodes, an even number."""
    transport_seeds: int = 64
    """Splits, or draws of samples, behind every measured gap and distance."""
    transport_labels: int = 512
    """Drawn labellings behind the failure rate of the generalisation bound."""
    stopping_nodes: int = 360
    """Nodes of the graph on which stopping rules are contrasted, all to train on."""
    stopping_batch_sizes: tuple[int, ...] = (20, 60, 180, 360)
    """Batch sizes of the contrast, ascending to all nodes."""
    stopping_steps: int = 256
    """Updates of its runs, a multiple of 4; a run that is not stopped by then is censored."""
    stopping_seeds: int = 48
    """Runs in every cell of the contrast."""
    stopping_grid_nodes: int = 144
    """Nodes of the graph behind the grids of iterations over batch size and fan-out."""
    stopping_grid_batch_sizes: tuple[int, ...] = (12, 48, 144)
    """Batch sizes of the grids, ascending to all nodes."""
    stopping_grid_fan_outs: tuple[int, ...] = (2, 4, 8)
    """Fan-outs of the grids, ascending; the last one is the degree."""
    stopping_grid_steps: int = 80
    """Updates of the grids' runs."""
    stopping_grid_seeds: int = 48
    """Runs in every cell of the grids."""
    stopping_window: int = 20
    """Updates for which a loss must hold."""
    stopping_settings: tuple[str, ...] = (
        "sage mse sgd",
        "sage mse adam",
        "sage cross_entropy sgd",
        "sage cross_entropy adam",
        "gcn mse sgd",
        "gcn_block mse sgd",
    )
    """Networks, losses and optimisers of the grids."""
    dtype: Literal["float64", "float32"] = "float64"
    """Precision of the simulations; theory is float64 always."""

    def __post_init__(self) -> None:
        check_integer("num_nodes", self.num_nodes, 24)
        check_integer("num_classes", self.num_classes, 2, self.num_nodes // 4)
        check_integer("num_features", self.num_features, 1)
        check_integer("selection_draws", self.selection_draws, 2)
        check_integer("moment_nodes", self.moment_nodes, 48)
        check_integer(
            "moment_degree", self.moment_degree, 6, self.moment_nodes // self.num_classes - 1
        )
        check_integer("moment_draws", self.moment_draws, 2)
        check_integer("moment_runs", self.moment_runs, 2)
        self._check_ridge()
        self._check_cost()
        self._check_stopping()
        self._check_sage()
        check_integer("block_degree", self.block_degree, 1, self.block_nodes - 1)
        if self.block_nodes % self.block_degree:
            raise fail("block_nodes", self.block_nodes, "a multiple of block_degree")
        for name, most in (("block_batch_sizes", self.block_nodes), ("block_fan_outs", None)):
            for value in getattr(self, name):
                check_integer(name, value, 1, most)
        check_integer("block_seeds", self.block_seeds, 2)
        check_integer("teacher_nodes", self.teacher_nodes, 24)
        check_integer("teacher_degree", self.teacher_degree, 6, self.teacher_nodes - 1)
        if self.teacher_nodes % 4 or self.teacher_degree % 6:
            raise fail(
                "teacher_nodes",
                self.teacher_nodes,
                "a multiple of 4, with a degree that is one of 6",
            )
        check_integer("teacher_seeds", self.teacher_seeds, 2)
        check_integer("transport_nodes", self.transport_nodes, 96)
        check_integer("transport_degree", self.transport_degree, 10, self.transport_nodes // 4 - 1)
        if self.transport_nodes % 4 or self.transport_degree % 2:
            raise fail("transport_nodes", self.transport_nodes, "a multiple of 4, of even degree")
        check_integer("transport_seeds", self.transport_seeds, 2)
        check_integer("transport_labels", self.transport_labels, 2)
        check_integer("degree", self.degree, 2, self.num_nodes // self.num_classes - 1)
        if self.num_nodes % self.num_classes:
            raise fail(
                "num_nodes", self.num_nodes, f"a multiple of num_classes = {self.num_classes}"
            )
        if self.num_nodes * self.degree % 2:
            raise fail("degree", self.degree, "num_nodes·degree even (regular graphs)")
        check_number("homophily", self.homophily, 0, 1)
        check_number("class_gap", self.class_gap, 0, low_open=True)
        check_choice("dtype", self.dtype, ("float64", "float32"))

    def _check_ridge(self) -> None:
        sizes = self.ridge_num_train
        for size in sizes:
            check_integer("ridge_num_train", size, 1, self.num_nodes - 1)
        if len(sizes) < 2 or list(sizes) != sorted(set(sizes)):
            raise fail("ridge_num_train", sizes, "increasing integers, at least two")
        check_integer("ridge_splits", self.ridge_splits, 2)
        check_integer("ridge_samples", self.ridge_samples, sizes[-1])
        check_integer("ridge_steps", self.ridge_steps, 1)
        check_integer("ridge_graph_splits", self.ridge_graph_splits, 2)
        check_integer("ridge_citation_splits", self.ridge_citation_splits, 2)
        for name in self.ridge_citations:
            check_choice("ridge_citations", name, ("cora", "citeseer", "pubmed"))
        check_integer("ridge_citation_features", self.ridge_citation_features, 1)

    def _check_stopping(self) -> None:
        classes = self.num_classes
        for name in ("stopping_nodes", "stopping_grid_nodes"):
            nodes = check_integer(name, getattr(self, name), 4 * classes)
            if nodes % classes:
                raise fail(name, nodes, f"a multiple of num_classes = {classes}")
        check_integer("degree", self.degree, 6, self.stopping_nodes // classes - 1)
        most = {
            "stopping_batch_sizes": self.stopping_nodes,
            "stopping_grid_batch_sizes": self.stopping_grid_nodes,
            "stopping_grid_fan_outs": self.stopping_grid_nodes // classes - 1,
        }
        for name, high in most.items():
            values = getattr(self, name)
            for value in values:
                check_integer(name, value, 1, high)
            if len(values) < 3 or list(values) != sorted(set(values)):
                raise fail(name, values, "increasing integers, at least three")
            if name != "stopping_grid_fan_outs" and values[-1] != high:
                raise fail(name, values, f"up to all {high} nodes")
        if check_integer("stopping_steps", self.stopping_steps, 4) % 4:
            raise fail("stopping_steps", self.stopping_steps, "a multiple of 4")
        check_integer("stopping_seeds", self.stopping_seeds, 2)
        check_integer("stopping_grid_steps", self.stopping_grid_steps, 1)
        check_integer("stopping_grid_seeds", self.stopping_grid_seeds, 2)
        check_integer("stopping_window", self.stopping_window, 1, self.stopping_grid_steps)
        choices = (
            ("sage", "gcn", "gcn_block", "gat"),
            ("mse", "cross_entropy"),
            ("sgd", "adam"),
        )
        for setting in self.stopping_settings:
            words = setting.split() if isinstance(setting, str) else []
            if len(words) != 3 or any(w not in c for w, c in zip(words, choices, strict=True)):
                raise fail("stopping_settings", repr(setting), "a network, a loss, an optimiser")
        for setting in ("sage mse sgd", "gcn_block mse sgd"):
            if setting not in self.stopping_settings:
                raise fail("stopping_settings", self.stopping_settings, f"{setting!r} among them")

    def _check_cost(self) -> None:
        nodes, classes = self.cost_nodes, self.num_classes
        check_integer("cost_nodes", nodes, 48, 2485, why="Cora's largest component")
        check_integer("cost_degree", self.cost_degree, 4, nodes // classes - 1)
        if nodes % classes:
            raise fail("cost_nodes", nodes, f"a multiple of num_classes = {classes}")
        if self.cost_degree % 2:
            raise fail("cost_degree", self.cost_degree, "an even integer (power-law graph)")
        most = {"cost_batch_sizes": nodes // 2, "cost_fan_outs": nodes}
        for name, high in most.items():
            values = getattr(self, name)
            for value in values:
                check_integer(name, value, 1, high)
            if len(values) < 2 or list(values) != sorted(set(values)):
                raise fail(name, values, "increasing integers, at least two")
        check_integer("cost_steps", self.cost_steps, 1)
        check_integer("cost_seeds", self.cost_seeds, 2)
        check_integer("cost_batches", self.cost_batches, 2)

    def _check_sage(self) -> None:
        for name in self.sage_graphs:
            check_choice("sage_graphs", name, ("digits", "fixed mix", "cora", "pubmed"))
        if not self.sage_graphs or len(set(self.sage_graphs)) < len(self.sage_graphs):
            raise fail("sage_graphs", self.sage_graphs, "different names, at least one")
        check_integer("sage_nodes", self.sage_nodes, 96, 1797, why="all digits")
        most = self.sage_nodes // self.num_classes - 1
        check_integer("sage_neighbors", self.sage_neighbors, 1, most)
        check_integer("sage_hidden", self.sage_hidden, 1)
        check_number("sage_step_size", self.sage_step_size, 0, low_open=True)
        divisors, fan_outs = self.sage_batch_divisors, self.sage_fan_outs
        for value in divisors:
            check_integer("sage_batch_divisors", value, 1, self.sage_nodes // 4)
        if len(divisors) < 2 or list(divisors) != sorted(set(divisors), reverse=True):
            raise fail("sage_batch_divisors", divisors, "decreasing integers, at least two")
        for value in fan_outs:
            check_integer("sage_fan_outs", value, 1)
        if len(fan_outs) < 2 or list(fan_outs) != sorted(set(fan_outs)):
            raise fail("sage_fan_outs", fan_outs, "increasing integers, at least two")
        check_integer("sage_steps", self.sage_steps, 2)
        check_integer("sage_every", self.sage_every, 1, self.sage_steps)
        if self.sage_steps % self.sage_every:
            raise fail("sage_every", self.sage_every, f"a divisor of {self.sage_steps} steps")
        check_integer("sage_window", self.sage_window, 2, self.sage_steps)
        check_integer("sage_seeds", self.sage_seeds, 3)


PRESETS = {
    "smoke": Config(
        ridge_splits=32,
        ridge_graph_splits=12,
        ridge_citation_splits=12,
        ridge_citations=("cora",),
        moment_draws=256,
        moment_runs=64,
        cost_seeds=24,
        cost_batches=24,
        sage_seeds=24,
        stopping_nodes=240,
        stopping_batch_sizes=(20, 60, 240),
        stopping_seeds=32,
        stopping_grid_seeds=24,
        stopping_settings=("sage mse sgd", "sage mse adam", "gcn_block mse sgd"),
        block_seeds=64,
        teacher_seeds=64,
    ),
    "quick": Config(),
    "paper": Config(
        ridge_splits=256,
        ridge_samples=36_000,
        ridge_steps=1200,
        ridge_graph_splits=100,
        ridge_citation_splits=100,
        moment_draws=32_768,
        moment_runs=4096,
        cost_nodes=2400,
        cost_degree=24,
        cost_batch_sizes=(5, 25, 125, 500, 1200),
        cost_fan_outs=(1, 3, 6, 12, 24),
        cost_steps=96,
        cost_seeds=256,
        cost_batches=256,
        sage_graphs=("digits", "fixed mix", "cora"),
        sage_nodes=900,
        sage_neighbors=24,
        sage_hidden=256,
        sage_step_size=0.001,
        sage_batch_divisors=(32, 16, 8, 4, 2, 1),
        sage_fan_outs=(1, 2, 5, 10, 15, 24),
        sage_steps=600,
        sage_every=20,
        sage_window=100,
        sage_seeds=8,
        stopping_nodes=1200,
        stopping_batch_sizes=(20, 100, 400, 1200),
        stopping_steps=400,
        stopping_seeds=256,
        stopping_grid_nodes=1200,
        stopping_grid_batch_sizes=(20, 100, 400, 1200),
        stopping_grid_fan_outs=(2, 6, 12, 24),
        stopping_grid_steps=320,
        stopping_grid_seeds=64,
        stopping_window=100,
        stopping_settings=tuple(
            f"{network} {loss} {optimizer}"
            for network in ("sage", "gcn", "gcn_block")
            for loss in ("mse", "cross_entropy")
            for optimizer in ("sgd", "adam")
        ),
        block_nodes=600,
        block_degree=12,
        block_batch_sizes=(1, 6, 20, 60, 100, 300, 600),
        block_fan_outs=(1, 2, 3, 6, 9, 12),
        block_seeds=1024,
        teacher_nodes=240,
        teacher_degree=12,
        teacher_seeds=1024,
        transport_nodes=1200,
        transport_seeds=256,
        transport_labels=8192,
    ),
}
