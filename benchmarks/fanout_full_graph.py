"""Speed of full-graph training against torch-geometric's `GCNConv`, as ratios in one run.

PubMed (19,717 nodes, 88,648 directed edges, 500 features), a two-layer GCN without self-loops, hidden
width 64, softmax cross-entropy on the official train nodes, Adam; one epoch is forward, backward and
update. float32, two threads. The product of features and weights is the same work for all.

Contestants: a compiled step of `GCN` on `full_blocks`; the loop of `train`, which aggregates the input
features once a run; the same step with `segment_sum` over sorted edges; torch-geometric with its edge
weights cached. They alternate, and ratios are taken within a round. The floor is the three matrix
products of the first layer, which cost the most. Needs the extra `compare`. Run with
`python benchmarks/fanout_full_graph.py`.
"""

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from boundlab.models import graphs
from boundlab.models.gnn import GCN, full_blocks, node_losses
from boundlab.models.graph_layout import graph_layout
from boundlab.models.training import train
from boundlab.precision import standard_promotion

try:
    import torch
    from torch_geometric.nn import GCNConv
except ModuleNotFoundError:
    print(f"{__file__}: needs PyTorch, the extra `compare`; skipped")
    raise SystemExit(0) from None


HIDDEN, STEP_SIZE, EPOCHS, ROUNDS = 64, 0.01, 10, 9

GRAPH = graphs.planetoid("pubmed")
FEATURES = np.asarray(GRAPH.features, np.float32)
LABELS = np.asarray(GRAPH.labels)
TARGETS = np.eye(3, dtype=np.float32)[LABELS]
NODES = np.asarray(GRAPH.splits["train"])
NETWORK = GCN(3, num_layers=2, hidden=HIDDEN, bias=True)


def epochs_of(outputs: Callable[[Any, Any, Any], jax.Array]) -> Callable[..., jax.Array]:
    """Losses of `EPOCHS` full-graph steps; `outputs` of parameters, graph and features."""
    optimizer = optax.adam(STEP_SIZE)

    def step(carry: Any, _: None, structure: Any, features: jax.Array) -> Any:
        params, state = carry

        def loss(params: Any) -> jax.Array:
            found = outputs(params, structure, features)[NODES]
            return node_losses("cross_entropy", found, TARGETS[NODES]).mean()

        value, slope = jax.value_and_grad(loss)(params)
        with standard_promotion():
            updates, state = optimizer.update(slope, state, params)
            return (optax.apply_updates(params, updates), state), value

    @jax.jit
    def run(params: Any, structure: Any, features: jax.Array) -> jax.Array:
        start = (params, optimizer.init(params))
        body = lambda carry, x: step(carry, x, structure, features)  # noqa: E731
        return jax.lax.scan(body, start, None, EPOCHS)[1]

    return run


def with_segments(params: Any, edges: Any, features: jax.Array) -> jax.Array:
    """The same network by sorted segments."""
    senders, receivers, weights = edges
    p = params["params"]

    def convolve(values: jax.Array) -> jax.Array:
        messages = weights[:, None] * values[senders]
        n = len(FEATURES)
        return jax.ops.segment_sum(messages, receivers, n, indices_are_sorted=True)

    hidden = jax.nn.relu(convolve(features @ p["hidden_0_kernel"]) + p["hidden_0_bias"])
    return convolve(hidden @ p["kernel"]) + p["bias"]


class TorchNetwork(torch.nn.Module):
    """The same network in torch-geometric."""

    def __init__(self) -> None:
        super().__init__()
        self.first = GCNConv(FEATURES.shape[1], HIDDEN, cached=True, add_self_loops=False)
        self.second = GCNConv(HIDDEN, 3, cached=True, add_self_loops=False)

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        """Outputs of all nodes."""
        return self.second(self.first(x, edges).relu(), edges)


class TorchLoop:
    """Full-graph training in torch-geometric."""

    def __init__(self, params: Any) -> None:
        self.network = TorchNetwork()
        p = params["params"]
        with torch.no_grad():
            for layer, name in ((self.network.first, "hidden_0_"), (self.network.second, "")):
                layer.lin.weight.copy_(torch.tensor(np.asarray(p[name + "kernel"]).T.copy()))
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=STEP_SIZE)
        self.features = torch.tensor(FEATURES)
        self.edges = torch.tensor(GRAPH.to_edge_index())
        self.labels, self.nodes = torch.tensor(LABELS[NODES]), torch.tensor(NODES)

    def run(self) -> list[float]:
        """Losses of `EPOCHS` epochs."""
        losses = []
        for _ in range(EPOCHS):
            self.optimizer.zero_grad()
            outputs = self.network(self.features, self.edges)
            loss = torch.nn.functional.cross_entropy(outputs[self.nodes], self.labels)
            loss.backward()
            self.optimizer.step()
            losses.append(float(loss.detach()))
        return losses


def seconds(contestant: Callable[[], object]) -> float:
    """Wall time of one call, until its result is there."""
    start = time.perf_counter()
    jax.block_until_ready(contestant())
    return time.perf_counter() - start


def main() -> None:
    """Time the contestants in turn; print medians and ratios."""
    torch.set_num_threads(2)
    layout = graph_layout(GRAPH)
    features = jnp.asarray(FEATURES)
    params = jax.jit(NETWORK.init)(jax.random.key(0), full_blocks(layout, 2), features)
    senders, receivers = GRAPH.to_edge_index().astype(np.int32)
    degrees = GRAPH.degrees().astype(np.float32)
    weights = 1 / np.sqrt(degrees[senders] * degrees[receivers])
    edges = tuple(map(jnp.asarray, (senders, receivers, weights)))
    blocks = jax.device_put(full_blocks(layout, 2))
    ours = epochs_of(lambda params, blocks, x: NETWORK.apply(params, blocks, x))
    segments = epochs_of(with_segments)

    @jax.jit
    def floor(x: jax.Array, w: jax.Array) -> jax.Array:
        """Product with the weights, and that of its derivative."""

        def step(w: jax.Array, _: None) -> tuple[jax.Array, None]:
            return w - 1e-9 * x.T @ (x @ w), None

        return jax.lax.scan(step, w, None, EPOCHS)[0]

    @jax.jit
    def looped(params: Any, features: jax.Array) -> jax.Array:
        return train(
            jax.random.key(0),
            GRAPH,
            features,
            TARGETS,
            NODES,
            network=NETWORK,
            loss="cross_entropy",
            optimizer="adam",
            step_size=STEP_SIZE,
            batch_size=len(NODES),
            fan_out=1000,
            num_steps=EPOCHS,
            initial_params=params,
            record=("batch",),
        ).batch_loss

    torch_loop = TorchLoop(params)
    contestants: dict[str, Callable[[], object]] = {
        "GCN on full_blocks": lambda: ours(params, blocks, features),
        "train": lambda: looped(params, features),
        "sorted segments": lambda: segments(params, edges, features),
        "torch-geometric": torch_loop.run,
        "floor: two products": lambda: floor(features, params["params"]["hidden_0_kernel"]),
    }
    losses = {name: contestant() for name, contestant in contestants.items()}
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(ROUNDS):
        for name, contestant in contestants.items():
            times[name].append(1e3 * seconds(contestant) / EPOCHS)
    peer = np.array(times["torch-geometric"])
    print(f"PubMed, two-layer GCN, hidden {HIDDEN}, {ROUNDS} rounds of {EPOCHS} epochs")
    print(f"{'':24}{'ms an epoch':>12}{'PyG / it':>12}{'(min – max)':>18}")
    for name, spent in times.items():
        ratio = peer / np.array(spent)
        spread = f"({ratio.min():.2f} – {ratio.max():.2f})"
        print(f"{name:24}{np.median(spent):12.2f}{np.median(ratio):12.2f}{spread:>18}")
    for name, values in losses.items():
        if name[:5] != "floor":
            print(
                f"losses of the first epochs, {name}:", np.round(np.asarray(values), 5)[[0, 1, -1]]
            )


if __name__ == "__main__":
    main()
