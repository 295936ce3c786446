"""Speed of the neighbour sampler against vectorised NumPy, as ratios in one run.

PubMed (19,717 nodes, 88,648 directed edges, largest degree 171), fan-out 10, without replacement: a
batch of 1,024 random nodes, and all nodes. Contestants: `sample_neighbors` under jit; NumPy with one
random key a neighbour and `argpartition` on the padded neighbour table; NumPy with Floyd's algorithm,
vectorised over nodes; the same law each. Ratios are against the faster of the two NumPy ways. The
floor is drawing the random bits alone, in JAX.

Then `sample_batch` (1,024 of 19,717) against `jax.random.permutation` and NumPy's `Generator.choice`.

The contestants alternate, since the machine's speed drifts; ratios are taken within a round. Run
with `python benchmarks/fanout_sampler.py`. Where other programs keep the cores busy, pin it to one of
them (`taskset -c 1 python …`): XLA hands its kernels to a thread a core and waits for all of them.
"""

import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from boundlab.models import graphs
from boundlab.models.neighborhoods import Neighborhoods, neighborhoods
from boundlab.models.sampling import sample_batch, sample_neighbors

FAN_OUT, BATCH_SIZE = 10, 1024
ROUNDS, CALLS = 15, 10

GRAPH = graphs.planetoid("pubmed")
LISTS = neighborhoods(GRAPH)
TABLE = GRAPH.neighbor_table()
DEGREES = GRAPH.degrees()
SENDERS = GRAPH.to_edge_index()[0]
STARTS = np.cumsum(DEGREES) - DEGREES
RNG = np.random.default_rng(0)


@jax.jit
def ours(key: jax.Array, lists: Neighborhoods, nodes: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The sampler of the package."""
    return sample_neighbors(key, lists, nodes, FAN_OUT, FAN_OUT)


@jax.jit
def bits_only(key: jax.Array, nodes: jax.Array) -> jax.Array:
    """As many random bits, from JAX's own generator."""
    return jax.random.bits(key, (FAN_OUT, len(nodes)), jnp.uint32)


def numpy_keys(nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The `FAN_OUT` smallest of one random key a neighbour, padded table."""
    keys = RNG.random((len(nodes), TABLE.index.shape[1]), dtype=np.float32)
    keys[~TABLE.mask[nodes]] = 2
    slots = np.argpartition(keys, FAN_OUT - 1, axis=1)[:, :FAN_OUT]
    index = np.take_along_axis(TABLE.index[nodes], slots, axis=1)
    return index, np.take_along_axis(keys, slots, axis=1) < 2


def numpy_floyd(nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Floyd's algorithm on neighbour lists, one slot of all nodes after another."""
    degree = DEGREES[nodes]
    count = np.minimum(degree, FAN_OUT)
    uniform = RNG.random((FAN_OUT, len(nodes)), dtype=np.float32)
    chosen = np.empty((FAN_OUT, len(nodes)), np.int64)
    for slot in range(FAN_OUT):
        highest = degree - count + slot
        draw = (uniform[slot] * (highest + 1)).astype(np.int64)
        taken = (chosen[:slot] == draw).any(axis=0)
        chosen[slot] = np.where(taken, highest, draw)
    mask = np.arange(FAN_OUT)[:, None] < count
    index = SENDERS[np.minimum(STARTS[nodes] + np.where(mask, chosen, 0), len(SENDERS) - 1)]
    return index.T, mask.T


def seconds(contestant: Callable[[], object]) -> float:
    """Wall time of one call, the mean of a few, each until its result is there."""
    start = time.perf_counter()
    for _ in range(CALLS):
        jax.block_until_ready(contestant())
    return (time.perf_counter() - start) / CALLS


def rounds(contestants: dict[str, Callable[[], object]]) -> dict[str, np.ndarray]:
    """Seconds a call, (ROUNDS,) for each contestant, taken in turn."""
    for contestant in contestants.values():
        seconds(contestant)  # compile
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(ROUNDS):
        for name, contestant in contestants.items():
            times[name].append(seconds(contestant))
    return {name: np.array(spent) for name, spent in times.items()}


def report(times: dict[str, np.ndarray], first: str, edges: int = 0) -> None:
    """Median times, rates and ratios to `first`."""
    print(f"{'':44}{'µs a call':>10}" + (f"{'edges a µs':>12}" if edges else "") + "  time / ours")
    for name, spent in times.items():
        ratio = spent / times[first]
        rate = f"{edges / np.median(spent) / 1e6:12.1f}" if edges else ""
        spread = f"({ratio.min():.2f} – {ratio.max():.2f})"
        print(f"{name:44}{1e6 * np.median(spent):10.0f}{rate}{np.median(ratio):9.2f}  {spread}")


def main() -> None:
    """Time the contestants in turn and print medians and ratios."""
    key = jax.random.key(0, impl="threefry2x32")
    batch = RNG.permutation(GRAPH.num_nodes)[:BATCH_SIZE]
    for label, nodes in (("1,024 random nodes", batch), ("all nodes", np.arange(len(DEGREES)))):
        traced = jnp.asarray(nodes, dtype=jnp.int32)
        edges = int(np.minimum(DEGREES[nodes], FAN_OUT).sum())
        times = rounds(
            {
                "sample_neighbors": lambda traced=traced: ours(key, LISTS, traced),
                "NumPy, Floyd": lambda nodes=nodes: numpy_floyd(nodes),
                "NumPy, random keys and argpartition": lambda nodes=nodes: numpy_keys(nodes),
                "floor: random bits alone (jax.random)": lambda t=traced: bits_only(key, t),
            }
        )
        print(f"PubMed, {label}, fan-out {FAN_OUT}: {edges} edges")
        report(times, "sample_neighbors", edges)
        rivals = [spent for name, spent in times.items() if name.startswith("NumPy")]
        ratio = np.min(rivals, axis=0) / times["sample_neighbors"]
        print(
            f"against the faster: {np.median(ratio):.2f}× ({ratio.min():.2f} – {ratio.max():.2f})\n"
        )

    train = jnp.arange(GRAPH.num_nodes, dtype=jnp.int32)
    pick = jax.jit(lambda key, train: sample_batch(key, train, BATCH_SIZE, BATCH_SIZE))
    permute = jax.jit(lambda key, train: jax.random.permutation(key, train)[:BATCH_SIZE])
    times = rounds(
        {
            "sample_batch": lambda: pick(key, train),
            "jax.random.permutation": lambda: permute(key, train),
            "NumPy, choice without replacement": lambda: RNG.choice(
                GRAPH.num_nodes, BATCH_SIZE, replace=False
            ),
        }
    )
    print(f"{BATCH_SIZE} of {GRAPH.num_nodes} nodes")
    report(times, "sample_batch")


if __name__ == "__main__":
    main()
