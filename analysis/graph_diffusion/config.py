"""Settings of the graph-diffusion study and its three presets."""

from dataclasses import dataclass

from boundlab.checks import check_choice, check_integer, fail


@dataclass(frozen=True)
class Config:
    """What the study runs. Sizes and counts are static; all else is traced."""

    topology_nodes: tuple[int, ...] = (32, 64, 128, 256)
    """Nodes of the regular, power-law and star graphs, ascending even numbers; the sampler is simulated
    on the least."""
    topology_features: int = 50
    """Feature size F of the comparison over graph sizes; the paper's is 50."""
    topology_steps: int = 50
    """Steps N of the sampler."""
    topology_draws: int = 64
    """Random graphs of each family and size."""
    topology_seeds: int = 1024
    """Runs of the sampler behind every simulated variance."""

    coupling_steps: tuple[int, ...] = (10, 25, 50, 100, 200, 400)
    """Numbers of steps N of the coupled sampler whose exact error is shown."""
    coupling_fine_steps: int = 4000
    """Steps of the grid on which marginal scores are held against the mutual information."""
    coupling_drift_steps: int = 40
    """Steps of the sampler whose drift couples the blocks."""
    coupling_seeds: int = 256
    """Runs of the coupled sampler behind every simulated variance."""
    coupling_draws: int = 256
    """Samples of each run."""

    metrics_draws: int = 800
    """Times that the benchmark's set of 100 graphs is drawn anew, to count repeats in it."""
    metrics_pool: int = 240
    """Graphs of each law, from which the samples to compare are drawn."""
    metrics_seeds: int = 1536
    """Runs behind every mean discrepancy; each splits the pool into pairs of disjoint samples."""

    paradigms_steps: tuple[int, ...] = (10, 25, 50, 100, 200)
    """Numbers of steps N at which the three paradigms' errors are shown."""
    paradigms_nodes: int = 5
    """Nodes of the block model whose labels are enumerated, at most 10."""
    paradigms_seeds: int = 256
    """Repetitions behind each Fisher information of the block model."""
    paradigms_draws: int = 128
    """Pairs of features and edges of each repetition."""
    paradigms_run_steps: int = 300
    """Steps of the sampler of the block model."""
    paradigms_runs: int = 128
    """Runs of that sampler: half of them choose what to compare, the others compare it."""
    paradigms_run_draws: int = 8
    """Samples of each run."""

    edges_ladder: tuple[int, ...] = (20, 40, 100)
    """Numbers of steps N whose exact law on one edge is shown; 40 and 100 are simulated, too."""
    edges_steps: int = 1000
    """Euler–Maruyama steps of the published schedule; its recipe has 1,000."""
    edges_seeds: int = 320
    """Runs behind every simulated share of edges."""
    edges_draws: int = 1024
    """Edges of each run."""

    generation_sets: tuple[str, ...] = ("communities", "neighbourhoods")
    """Sets of graphs to train on: pairs of communities, neighbourhoods cut from citation graphs."""
    generation_train_graphs: int = 128
    """Graphs of each set on which the networks are trained."""
    generation_width: int = 16
    """Width of the networks, a multiple of 4; the model analysed has 32."""
    generation_layers: int = 3
    """Attention layers of the network of structure; the model analysed has 5."""
    generation_training_steps: int = 500
    """Steps of the training, for each set."""
    generation_batch_size: int = 32
    """Graphs of a batch of the training."""
    generation_sampling_steps: int = 100
    """Steps of the sampler; the model analysed takes 1,000."""
    generation_seeds: int = 20
    """Samples of generated graphs of each set."""
    generation_graphs: int = 20
    """Graphs of each sample; times the seeds at most 2,000."""

    ladder_steps: tuple[int, ...] = (25, 50, 100, 200, 400, 800)
    """Numbers of steps N of the ladder of errors and bounds; two of 200 or more are needed."""
    ladder_case_steps: tuple[int, ...] = (5, 20, 50, 100, 400)
    """Numbers of steps of the grid of cases in which every bound is held against the exact KL."""
    ladder_fine_steps: int = 20_000
    """Steps of the grids that stand for none."""
    ladder_seeds: int = 256
    """Runs of the four schemes behind every drawn moment."""
    ladder_draws: int = 512
    """Samples of each run."""

    horizon_steps: tuple[int, ...] = (50, 100, 200, 400, 800)
    """Numbers of steps N for which the best horizon is found; 200 among them."""
    horizon_points: int = 96
    """Horizons T between which the best is interpolated."""

    learned_training_steps: int = 1500
    """Steps of the training of small networks on Gaussian data."""
    learned_batch_size: int = 128
    """Draws of each step."""
    learned_steps: int = 300
    """Steps N of the sampler with trained scores."""
    learned_seeds: int = 128
    """Half of the runs behind measured losses and samples; this half chooses what to compare."""
    learned_draws: int = 64
    """Draws of each run."""

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
        for steps in self.paradigms_steps:
            check_integer("paradigms_steps", steps, 1)
        check_integer("paradigms_nodes", self.paradigms_nodes, 3, 10)
        for name in ("seeds", "draws", "run_steps", "runs", "run_draws"):
            check_integer(f"paradigms_{name}", getattr(self, f"paradigms_{name}"), 4)
        for name in ("training_steps", "batch_size", "steps", "seeds", "draws"):
            check_integer(f"learned_{name}", getattr(self, f"learned_{name}"), 8)
        for steps in self.coupling_steps:
            check_integer("coupling_steps", steps, 1)
        for name in ("fine_steps", "drift_steps", "seeds", "draws"):
            check_integer(f"coupling_{name}", getattr(self, f"coupling_{name}"), 2)
        for name in ("metrics_draws", "metrics_seeds"):
            check_integer(name, getattr(self, name), 2)
        check_integer("metrics_pool", self.metrics_pool, 40)
        for name in self.generation_sets:
            check_choice("generation_sets", name, ("communities", "neighbourhoods"))
        counts = (
            "train_graphs",
            "layers",
            "training_steps",
            "batch_size",
            "sampling_steps",
            "seeds",
        )
        for name in counts:
            check_integer(f"generation_{name}", getattr(self, f"generation_{name}"), 1)
        if self.generation_width < 4 or self.generation_width % 4:
            raise fail("generation_width", self.generation_width, "a multiple of 4")
        check_integer("generation_graphs", self.generation_graphs, 8)
        for name in ("edges_steps", "edges_seeds", "edges_draws"):
            check_integer(name, getattr(self, name), 2)
        for steps in self.edges_ladder:
            check_integer("edges_ladder", steps, 2)
        if not {40, 100} <= set(self.edges_ladder):
            raise fail("edges_ladder", self.edges_ladder, "numbers of steps, 40 and 100 among them")
        for name in ("ladder_steps", "ladder_case_steps", "horizon_steps"):
            for steps in getattr(self, name):
                check_integer(name, steps, 1)
        late = sum(steps >= 200 for steps in self.ladder_steps)
        if late < 2 or sorted(set(self.ladder_steps)) != list(self.ladder_steps):
            raise fail("ladder_steps", self.ladder_steps, "ascending numbers, two of them ≥ 200")
        if 200 not in self.horizon_steps or max(self.horizon_steps) < 400:
            raise fail("horizon_steps", self.horizon_steps, "200 and a number ≥ 400 among them")
        for name in ("ladder_fine_steps", "ladder_seeds", "ladder_draws"):
            check_integer(name, getattr(self, name), 2)
        check_integer("horizon_points", self.horizon_points, 16)


PRESETS = {
    "smoke": Config(
        topology_nodes=(32, 128),
        topology_draws=16,
        topology_seeds=64,
        coupling_steps=(25, 100),
        coupling_seeds=128,
        paradigms_steps=(25, 100),
        paradigms_seeds=64,
        paradigms_run_steps=200,
        paradigms_runs=128,
        metrics_draws=64,
        metrics_pool=120,
        metrics_seeds=256,
        edges_ladder=(40, 100),
        edges_steps=400,
        edges_seeds=64,
        edges_draws=512,
        ladder_steps=(50, 200, 400),
        ladder_case_steps=(5, 100),
        ladder_fine_steps=10_000,
        ladder_seeds=128,
        ladder_draws=256,
        horizon_steps=(50, 200, 400),
        horizon_points=48,
        generation_sets=("communities",),
        generation_layers=2,
        generation_training_steps=300,
        generation_batch_size=16,
        generation_sampling_steps=50,
        generation_seeds=16,
        generation_graphs=10,
        learned_training_steps=400,
        learned_steps=200,
        learned_seeds=64,
        learned_draws=16,
    ),
    "quick": Config(),
    "paper": Config(
        topology_nodes=(32, 64, 128, 256, 512),
        topology_steps=200,
        topology_draws=256,
        topology_seeds=4096,
        coupling_steps=(10, 25, 50, 100, 200, 400, 800, 1600),
        coupling_fine_steps=16000,
        coupling_seeds=2048,
        paradigms_steps=(10, 25, 50, 100, 200, 400, 800),
        paradigms_nodes=8,
        paradigms_seeds=1024,
        paradigms_run_steps=1000,
        paradigms_runs=512,
        metrics_draws=1000,
        metrics_pool=400,
        metrics_seeds=4096,
        edges_ladder=(10, 20, 40, 100, 200, 400),
        edges_seeds=1024,
        edges_draws=4096,
        ladder_steps=(25, 50, 100, 200, 400, 800, 1600, 3200),
        ladder_fine_steps=200_000,
        ladder_seeds=2048,
        horizon_steps=(25, 50, 100, 200, 400, 800, 1600, 5000),
        horizon_points=256,
        generation_train_graphs=400,
        generation_width=32,
        generation_layers=5,
        generation_training_steps=20000,
        generation_batch_size=128,
        generation_sampling_steps=1000,
        generation_seeds=64,
        learned_training_steps=10000,
        learned_batch_size=512,
        learned_steps=1000,
        learned_seeds=512,
    ),
}
