"""Speed of sampled training against an eager PyTorch loop with the same sampling law, in one run.

PubMed (19,717 nodes, mean degree 4.5, largest 171), all nodes to train on, one-layer GraphSAGE on 16
features, b = 1,024, β = 10, SGD on the mean-square loss, float32, two cores. Contestants: `train`,
one run; `train` for 64 seeds, under vmap and one after another in one program; a PyTorch loop that
draws a random subset of nodes and uniform neighbours without replacement, in two ways (random keys on
the padded table and `topk`; Floyd's algorithm, a slot at a time), each on one thread and on two. Of these
four the fastest of a round counts.

The contestants alternate, since the machine's speed drifts; ratios are taken within a round. The floor
is what no such loop can avoid in the same language: drawing batch and neighbours alone. Needs the
extra `compare`. Run with `python benchmarks/fanout_training.py`.
"""

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from boundlab.models import graphs
from boundlab.models.neighborhoods import neighborhoods
from boundlab.models.sampling import sample_batch, sample_neighbors
from boundlab.models.training import train

try:
    import torch
except ModuleNotFoundError:
    print(f"{__file__}: needs PyTorch, the extra `compare`; skipped")
    raise SystemExit(0) from None


BATCH_SIZE, FAN_OUT, NUM_FEATURES, STEP_SIZE = 1024, 10, 16, 0.1
SEEDS, STEPS, SEED_STEPS, ROUNDS = 64, 100, 10, 5

GRAPH = graphs.planetoid("pubmed")
NODES = np.arange(GRAPH.num_nodes)
RNG = np.random.default_rng(0)
FEATURES = RNG.standard_normal((len(NODES), NUM_FEATURES)).astype(np.float32)
TARGETS = np.eye(3, dtype=np.float32)[np.asarray(GRAPH.labels)]


def one_run(key: jax.Array, steps: int) -> Any:
    """Batch losses of one run."""
    return train(
        key,
        GRAPH,
        FEATURES,
        TARGETS,
        NODES,
        step_size=STEP_SIZE,
        batch_size=BATCH_SIZE,
        fan_out=FAN_OUT,
        num_steps=steps,
        record=("batch",),
    ).batch_loss


def draws(key: jax.Array) -> jax.Array:
    """The batches and neighbours of one run, added up so that they must be made."""
    lists = neighborhoods(GRAPH)

    def step(total: jax.Array, key: jax.Array) -> tuple[jax.Array, None]:
        nodes, _ = sample_batch(key, NODES, BATCH_SIZE, BATCH_SIZE)
        index, _ = sample_neighbors(key, lists, nodes, FAN_OUT, FAN_OUT)
        return total + index.sum(), None

    return jax.lax.scan(step, jnp.zeros((), jnp.int32), jax.random.split(key, STEPS))[0]


class TorchLoop:
    """The same training, eagerly."""

    def __init__(self, sampler: str) -> None:
        table = GRAPH.neighbor_table()
        self.index, self.mask = torch.tensor(table.index), torch.tensor(table.mask)
        self.degrees = torch.tensor(GRAPH.degrees())
        self.features, self.targets = torch.tensor(FEATURES), torch.tensor(TARGETS)
        self.sample = self.by_keys if sampler == "keys" else self.by_floyd
        self.kernel = torch.nn.Linear(NUM_FEATURES, 3, bias=False)
        self.optimizer = torch.optim.SGD(self.kernel.parameters(), lr=STEP_SIZE)

    def by_keys(self, nodes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The neighbours with the largest of random keys."""
        keys = torch.rand(len(nodes), self.index.shape[1]).masked_fill_(~self.mask[nodes], -1.0)
        best, slot = keys.topk(FAN_OUT, dim=1, sorted=False)
        return self.index[nodes].gather(1, slot), best >= 0

    def by_floyd(self, nodes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Slot k takes a uniform one of the first d − m + k + 1 neighbours, or the last of them."""
        degrees = self.degrees[nodes]
        count = degrees.clamp(max=FAN_OUT)
        chosen = torch.full((len(nodes), FAN_OUT), -1)
        for k in range(FAN_OUT):
            last = degrees - count + k
            draw = (torch.rand(len(nodes), dtype=torch.float64) * (last + 1)).long()
            taken = (chosen[:, :k] == draw[:, None]).any(dim=1)
            chosen[:, k] = torch.where(taken, last, draw)
        mask = torch.arange(FAN_OUT)[None, :] < count[:, None]
        slot = torch.where(mask, chosen, torch.zeros_like(chosen))
        return self.index[nodes].gather(1, slot), mask

    def run(self, steps: int, threads: int = 1) -> list[float]:
        """Batch losses of so many steps."""
        torch.set_num_threads(threads)
        losses = []
        for _ in range(steps):
            nodes = torch.randperm(len(NODES))[:BATCH_SIZE]
            index, mask = self.sample(nodes)
            rows = (self.features[index] * mask[:, :, None]).sum(dim=1)
            rows = rows / mask.sum(dim=1).clamp(min=1)[:, None]
            error = self.kernel(rows) - self.targets[nodes]
            loss = error.square().sum(dim=1).mean() / 2
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            losses.append(loss.detach())
        return [float(loss) for loss in losses]


def seconds(contestant: Callable[[], object]) -> float:
    """Wall time of one call, until its result is there."""
    start = time.perf_counter()
    jax.block_until_ready(contestant())
    return time.perf_counter() - start


def main() -> None:
    """Time the contestants in turn; print medians and ratios."""
    torch.manual_seed(0)
    key = jax.random.key(0)
    keys = jax.random.split(key, SEEDS)
    single = jax.jit(lambda key: one_run(key, STEPS))
    floor = jax.jit(draws)
    batched = jax.jit(jax.vmap(lambda key: one_run(key, SEED_STEPS)))
    mapped = jax.jit(lambda keys: jax.lax.map(lambda key: one_run(key, SEED_STEPS), keys))
    by_keys, by_floyd = TorchLoop("keys"), TorchLoop("floyd")
    contestants: dict[str, tuple[Callable[[], object], int]] = {
        "train, one run": (lambda: single(key), STEPS),
        "train, 64 seeds, vmap": (lambda: batched(keys), SEEDS * SEED_STEPS),
        "train, 64 seeds, lax.map": (lambda: mapped(keys), SEEDS * SEED_STEPS),
        "PyTorch, topk, 1 thread": (lambda: by_keys.run(STEPS, 1), STEPS),
        "PyTorch, topk, 2 threads": (lambda: by_keys.run(STEPS, 2), STEPS),
        "PyTorch, Floyd, 1 thread": (lambda: by_floyd.run(STEPS, 1), STEPS),
        "PyTorch, Floyd, 2 threads": (lambda: by_floyd.run(STEPS, 2), STEPS),
        "floor: drawing alone": (lambda: floor(key), STEPS),
    }
    for contestant, _ in contestants.values():
        seconds(contestant)
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(ROUNDS):
        for name, (contestant, steps) in contestants.items():
            times[name].append(1e3 * seconds(contestant) / steps)
    torch_best = np.min([spent for name, spent in times.items() if "PyTorch" in name], axis=0)
    print(f"PubMed, b = {BATCH_SIZE}, β = {FAN_OUT}, {NUM_FEATURES} features, {ROUNDS} rounds")
    print(f"{'':28}{'ms a step':>10}{'PyTorch / it':>15}{'(min – max)':>18}")
    for name, spent in times.items():
        ratio = torch_best / np.array(spent)
        spread = f"({ratio.min():.2f} – {ratio.max():.2f})"
        print(f"{name:28}{np.median(spent):10.3f}{np.median(ratio):15.2f}{spread:>18}")
    print(f"last losses: train {float(single(key)[-1]):.4f}, PyTorch {by_keys.run(1)[0]:.4f}")


if __name__ == "__main__":
    main()
