"""Nodes that a batch touches, hop by hop, simulated on four graphs and counted exactly.

Variables are those of the part `cost`. Symbols: n nodes, b batch size, β fan-out, d degree.
"""

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from boundlab.analysis.datasets import describe
from boundlab.analysis.fanout.config import Config
from boundlab.experiment import Repeat
from boundlab.models import graphs
from boundlab.models.neighborhoods import Neighborhoods, neighborhoods
from boundlab.models.sampling import sample_batch, sample_neighbors
from boundlab.theory.fanout import expected_touched_nodes, touched_layers, touched_regular

HOPS = 3
CELLS = ("cost_graph", "cost_touched_batch_size", "cost_fan_out")
Graphs = dict[str, graphs.Graph | graphs.DirectedGraph]


def run(config: Config, mixed: graphs.DirectedGraph, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Distinct nodes after each hop from a random batch of all nodes, and what theory says of them."""
    drawn: Graphs = {
        "fixed mix": mixed,
        "regular": graphs.random_regular(
            jax.random.fold_in(key, 0), config.cost_nodes, config.cost_degree
        ),
        "power law": graphs.barabasi_albert(
            jax.random.fold_in(key, 1), config.cost_nodes, config.cost_degree // 2
        ),
        "Cora": graphs.breadth_first_piece(
            graphs.largest_component(graphs.planetoid("cora")), config.cost_nodes
        ),
    }
    # In smaller batches two samples hardly ever meet, and there is nothing to see.
    sizes = tuple(config.cost_nodes // part for part in (12, 4, 2, 1))
    parts = [
        _simulated(config, drawn, sizes, jax.random.fold_in(key, 2), repeat),
        _counted(config, drawn, sizes),
    ]
    return describe(xr.merge(parts), "nodes").assign_coords(
        cost_graph=list(drawn),
        cost_touched_batch_size=list(sizes),
        cost_fan_out=list(config.cost_fan_outs),
        cost_batch=np.arange(config.cost_batches),
        cost_hop=np.arange(HOPS + 1),
    )


def _simulated(
    config: Config, drawn: Graphs, sizes: tuple[int, ...], key: jax.Array, repeat: Repeat
) -> xr.Dataset:
    """Every node of the frontier, old ones included, samples anew in each hop."""
    n, widest = config.cost_nodes, max(config.cost_fan_outs)
    lists = [neighborhoods(graph) for graph in drawn.values()]
    longest = max(one.indices.shape[0] for one in lists)
    # Graphs of equal size, so that one compiled program serves them all.
    starts = np.stack([np.asarray(one.indptr) for one in lists])
    ends = np.stack([np.resize(np.asarray(one.indices), longest) for one in lists])
    everyone = np.arange(n, dtype=np.int32)

    def one(params: dict[str, jax.Array], key: jax.Array) -> jax.Array:
        graph = Neighborhoods(
            jnp.asarray(starts)[params["graph"]], jnp.asarray(ends)[params["graph"]]
        )
        # One order of the nodes and one sample of each serve batches of all sizes, which are nested.
        order, _ = sample_batch(jax.random.fold_in(key, 0), everyone, n, n)
        used = jnp.arange(n, dtype=jnp.int32)[None, :] < jnp.asarray(sizes, jnp.int32)[:, None]
        seeds = jnp.zeros((len(sizes), n), bool).at[:, order].max(used)

        def hop(inside: jax.Array, number: jax.Array) -> tuple[jax.Array, jax.Array]:
            hop_key = jax.random.fold_in(key, number)
            index, mask = sample_neighbors(hop_key, graph, everyone, params["fan_out"], widest)
            found = inside.at[:, index].max(mask[None] & inside[:, :, None])
            return found, found.sum(axis=1, dtype=jnp.int32)

        hops = jnp.arange(1, HOPS + 1, dtype=jnp.int32)
        counts = jax.lax.scan(hop, seeds, hops)[1]
        return jnp.concatenate([seeds.sum(axis=1, dtype=jnp.int32)[None], counts]).T

    grid = {"graph": np.arange(len(lists)), "fan_out": np.array(config.cost_fan_outs)}
    keys = jax.random.split(key, config.cost_batches)
    found = repeat("cost-touched", one, grid, keys)
    counts = found["value"].rename(value_axis0="batch_size", value_axis1="hop")
    counts = counts.transpose("graph", "batch_size", "fan_out", "seed", "hop")
    return xr.Dataset(
        {
            "cost_touched": (
                (*CELLS, "cost_batch", "cost_hop"),
                counts.values.astype(np.float64),
                {"long_name": "distinct nodes after each hop, simulated"},
            )
        }
    )


def _counted(config: Config, drawn: Graphs, sizes: tuple[int, ...]) -> xr.Dataset:
    """One hop exactly, more hops by mean field, and by a tree whose nodes are all different."""
    n, fan_outs = config.cost_nodes, config.cost_fan_outs
    exact = [
        [[float(expected_touched_nodes(graph, b, beta)) for beta in fan_outs] for b in sizes]
        for graph in drawn.values()
    ]
    means = [round(float(graph.degrees().mean())) for graph in drawn.values()]
    by_mean = [
        [[float(touched_regular(n, degree, b, beta)) for beta in fan_outs] for b in sizes]
        for degree in means
    ]
    degree, hops = config.cost_degree, np.arange(HOPS + 1)
    field = [
        [np.asarray(touched_layers(n, degree, b, [beta] * HOPS)) for beta in fan_outs]
        for b in sizes
    ]
    tree = np.array(sizes)[:, None, None] * (1.0 + np.array(fan_outs)[:, None]) ** hops
    words = {
        "exact": "expected distinct nodes after one hop, exact",
        "mean_degree": "expected distinct nodes after one hop if all had the mean degree, rounded",
        "layers": "distinct nodes after each hop by mean field, all of one degree",
        "tree": "b(1 + β)^hops, every sampled node a new one",
    }
    dims = {"layers": (*CELLS[1:], "cost_hop"), "tree": (*CELLS[1:], "cost_hop")}
    values = {"exact": exact, "mean_degree": by_mean, "layers": field, "tree": tree}
    return xr.Dataset(
        {
            f"cost_touched_{name}": (
                dims.get(name, CELLS),
                np.array(value),
                {"long_name": words[name]},
            )
            for name, value in values.items()
        }
    )
