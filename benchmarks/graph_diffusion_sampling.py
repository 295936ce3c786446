"""Speed of sampling graphs with both score networks against an eager PyTorch loop, in one run.

128 graphs of 20 nodes with 10 features, networks of the published size (three convolutions; five
attention layers, width 32, four heads, eight channels), Euler–Maruyama, float32, two cores. Contestants:
`sample_graphs`; the same networks and solver in PyTorch, eager, batched over graphs and channels, under
`inference_mode`, on one thread and on two, of which the faster of a round counts. Weights are copied, and
the two implementations' scores must agree before anything is timed.

1,000 steps by default; give another number as the argument: time is proportional to it. The contestants
alternate, since the machine's speed drifts; ratios are taken within a round. Needs the extra `compare`.
Run with `python benchmarks/graph_diffusion_sampling.py`.
"""

import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from boundlab.models import samplers
from boundlab.models import sde as sdes
from boundlab.models.score_networks import (
    FeatureScore,
    GraphModel,
    StructureScore,
    graph_score,
    init_scores,
)

try:
    import torch
except ModuleNotFoundError:
    print(f"{__file__}: needs PyTorch, the extra `compare`; skipped")
    raise SystemExit(0) from None


BATCH, NODES, FEATURES, ROUNDS = 128, 20, 10, 3
STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
TIMES = np.linspace(1.0, 1e-3, STEPS + 1).astype(np.float32)
BETAS = (0.1, 10.0)
SCHEDULE = sdes.vp(*BETAS)
MODEL = GraphModel(FeatureScore(FEATURES), StructureScore(), SCHEDULE, SCHEDULE)
MASK = np.arange(NODES)[None, :] < np.random.default_rng(0).integers(12, NODES + 1, BATCH)[:, None]


class TorchNetworks:
    """Both networks with the given parameters, on a batch."""

    def __init__(self, params: Any) -> None:
        self.params = jax.tree.map(lambda leaf: torch.tensor(np.asarray(leaf)), params)
        self.nodes = torch.tensor(MASK)
        self.loop = torch.eye(NODES, dtype=torch.bool)
        self.pairs = self.nodes[:, :, None] & self.nodes[:, None, :] & ~self.loop

    def normalized(self, adjacency: torch.Tensor) -> torch.Tensor:
        """With unit self-loops, by degrees clamped at 1."""
        looped = adjacency.masked_fill(self.loop, 1.0)
        scale = looped.sum(dim=-1).clamp(min=1).rsqrt()
        return scale[..., :, None] * looped * scale[..., None, :]

    @staticmethod
    def perceptron(params: Any, values: torch.Tensor) -> torch.Tensor:
        """Dense layers with ELU between them."""
        for layer in range(len(params)):
            values = torch.nn.functional.elu(values) if layer else values
            dense = params[f"Dense_{layer}"]
            values = torch.addmm(
                dense["bias"], values.reshape(-1, values.shape[-1]), dense["kernel"]
            ).reshape(*values.shape[:-1], -1)
        return values

    def features(self, x: torch.Tensor, adjacency: torch.Tensor) -> torch.Tensor:
        """Of the features' score."""
        params = self.params["features"]["params"]
        operator, values = self.normalized(adjacency), [x]
        for layer in range(MODEL.features.num_layers):
            product = operator @ (values[-1] @ params[f"kernel_{layer}"])
            values.append(torch.tanh(product + params[f"bias_{layer}"]))
        result = self.perceptron(params["_Perceptron_0"], torch.cat(values, dim=-1))
        return result * self.nodes[:, :, None]

    def structure(self, x: torch.Tensor, adjacency: torch.Tensor) -> torch.Tensor:
        """Of the structure's score."""
        params = self.params["structure"]["params"]
        channels = torch.stack([adjacency, adjacency @ adjacency], dim=1)
        channels = channels.masked_fill(~self.nodes[:, None, :, None], 0)
        everything = [channels]
        for layer in range(MODEL.structure.num_layers):
            x, channels = self.attention(params[f"_AttentionLayer_{layer}"], x, channels)
            everything.append(channels)
        pairs = torch.cat(everything, dim=1).permute(0, 2, 3, 1)
        result = self.perceptron(params["_Perceptron_0"], pairs)[..., 0]
        return (result + result.transpose(1, 2)) / 2 * self.pairs

    def attention(
        self, params: Any, x: torch.Tensor, channels: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """New node values and channels."""
        hidden, heads = MODEL.structure.hidden, MODEL.structure.heads
        values = torch.einsum("bnr,crh->bcnh", x, params["kernel"])
        values = self.normalized(channels) @ values + params["bias"][None, :, None, :]
        query, keys, value = values.split(hidden, dim=-1)
        query, keys = (
            part.reshape(*part.shape[:3], heads, -1).transpose(2, 3) for part in (query, keys)
        )
        scores = torch.tanh(query @ keys.transpose(3, 4) / hidden**0.5).mean(dim=2)
        scores = (scores + scores.transpose(2, 3)) / 2
        gathered = value.transpose(1, 2).reshape(*x.shape[:2], -1)
        mixed = torch.tanh(self.perceptron(params["_Perceptron_0"], gathered))
        pairs = torch.cat([scores, channels], dim=1).permute(0, 2, 3, 1)
        pairs = self.perceptron(params["_Perceptron_1"], pairs).permute(0, 3, 1, 2)
        both = (self.nodes[:, :, None] & self.nodes[:, None, :])[:, None]
        return mixed * self.nodes[:, :, None], (pairs + pairs.transpose(2, 3)) * both

    def scores(self, x: torch.Tensor, adjacency: torch.Tensor, t: float) -> tuple[Any, Any]:
        """Of both blocks at time t."""
        low, high = BETAS
        scale = -((-np.expm1(-(low * t + (high - low) * t * t / 2))) ** -0.5)
        return scale * self.features(x, adjacency), scale * self.structure(x, adjacency)

    @torch.inference_mode()
    def sample(self, threads: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Euler–Maruyama down the grid, one draw of noise a pair, last step without noise."""
        torch.set_num_threads(threads)
        low, high = BETAS
        x, adjacency = self.noise()
        for k in range(STEPS):
            t, h = float(TIMES[k]), float(TIMES[k] - TIMES[k + 1])
            rate = low + (high - low) * t
            score_x, score_a = self.scores(x, adjacency, t)
            x = (1 + rate * h / 2) * x + rate * h * score_x
            adjacency = (1 + rate * h / 2) * adjacency + rate * h * score_a
            if k < STEPS - 1:
                noise_x, noise_a = self.noise()
                x, adjacency = (
                    x + (rate * h) ** 0.5 * noise_x,
                    adjacency + (rate * h) ** 0.5 * noise_a,
                )
        return x, adjacency

    def noise(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Of features and of pairs, mirrored."""
        upper = torch.randn(BATCH, NODES, NODES).triu(1)
        features = torch.randn(BATCH, NODES, FEATURES) * self.nodes[:, :, None]
        return features, (upper + upper.transpose(1, 2)) * self.pairs


def seconds(contestant: Callable[[], object]) -> float:
    """Wall time of one call, until its result is there."""
    start = time.perf_counter()
    jax.block_until_ready(contestant())
    return time.perf_counter() - start


def disagreement(networks: TorchNetworks, params: Any) -> float:
    """Largest relative difference of the two implementations' scores at one point."""
    rng = np.random.default_rng(1)
    upper = np.triu(rng.standard_normal((BATCH, NODES, NODES)), 1)
    pairs = MASK[:, :, None] & MASK[:, None, :]
    adjacency = ((upper + upper.swapaxes(1, 2)) * pairs).astype(np.float32)
    x = (rng.standard_normal((BATCH, NODES, FEATURES)) * MASK[:, :, None]).astype(np.float32)
    ours = graph_score(MODEL, params, MASK)(x, adjacency, jnp.float32(0.4))
    with torch.inference_mode():
        theirs = networks.scores(torch.tensor(x), torch.tensor(adjacency), 0.4)
    return max(
        float(np.abs(np.asarray(a) - b.numpy()).max() / np.abs(b.numpy()).max())
        for a, b in zip(ours, theirs, strict=True)
    )


def main() -> None:
    """Check that the scores agree, time the contestants in turn, print medians and ratios."""
    torch.manual_seed(0)
    key = jax.random.key(0)
    empty = np.zeros((NODES, FEATURES), np.float32), np.zeros((NODES, NODES), np.float32)
    params = init_scores(key, MODEL, *empty, np.ones(NODES, bool))
    # Untrained outputs grow with the square of the state: a smaller last layer keeps it finite.
    shrunk = jax.tree_util.tree_map_with_path(
        lambda path, leaf: leaf * np.float32(1e-3) if "Dense_2" in str(path) else leaf, params
    )
    networks = TorchNetworks(shrunk)
    apart = disagreement(networks, shrunk)
    print(f"scores of the two implementations differ by {apart:.1e} of the largest")
    if apart > 1e-4:
        raise SystemExit("the implementations differ")

    @jax.jit
    def ours(key: jax.Array, params: Any) -> tuple[jax.Array, jax.Array]:
        score = graph_score(MODEL, params, MASK)
        return samplers.sample_graphs(
            key, SCHEDULE, SCHEDULE, score, TIMES, BATCH, NODES, FEATURES, mask=MASK
        )

    runs: dict[str, Callable[[], object]] = {
        "sample_graphs": lambda: ours(key, shrunk),
        "PyTorch, 1 thread": lambda: networks.sample(1),
        "PyTorch, 2 threads": lambda: networks.sample(2),
    }
    for run in runs.values():
        seconds(run)
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(ROUNDS):
        for name, run in runs.items():
            times[name].append(1e3 * seconds(run) / STEPS)
    best = np.min([spent for name, spent in times.items() if "PyTorch" in name], axis=0)
    print(f"{BATCH} graphs of {NODES} nodes, {STEPS} steps, {ROUNDS} rounds")
    print(f"{'':24}{'ms a step':>10}{'PyTorch / it':>15}{'(min – max)':>18}")
    for name, spent in times.items():
        ratio = best / np.array(spent)
        spread = f"({ratio.min():.2f} – {ratio.max():.2f})"
        print(f"{name:24}{np.median(spent):10.1f}{np.median(ratio):15.2f}{spread:>18}")


if __name__ == "__main__":
    main()
