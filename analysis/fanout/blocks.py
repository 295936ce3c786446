"""Block degrees: the degree normalisation through which the batch size enters the drift.

Two simulations: rows of the block-normalised aggregator on a regular graph, and a ReLU unit that learns
a ReLU teacher through three aggregators. Symbols: b batch size, β fan-out, d degree; s row sum, Γ squared
norm and δ squared distance from the full row, of a row of the aggregator; T updates to a target.
"""

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from boundlab.analysis.datasets import describe
from boundlab.analysis.fanout.blocks_claims import CLAIMS as CLAIMS
from boundlab.analysis.fanout.config import Config
from boundlab.experiment import Repeat
from boundlab.models import graphs
from boundlab.models.aggregation import aggregate
from boundlab.models.graph_layout import graph_layout
from boundlab.models.neighborhoods import neighborhoods
from boundlab.models.relu_teacher import descend_to_teacher, teacher_error, teacher_losses
from boundlab.models.sampling import sample_batch, sample_neighbors
from boundlab.models.training import first_hit
from boundlab.theory.fanout import (
    block_degree_law,
    population_gradient_descent,
    population_loss,
)

# Weights (φ, ψ) at which the loss against the teacher is compared; the first starts the descent.
POINTS = ((-0.2, 1.3), (0.6, 0.5))
FEATURE_PAIRS = 8
# Curves of the theory between b = 1 and b = n.
CURVE_POINTS = 24
AGGREGATORS = ("mean", "sum", "gcn_block")
STEP_SIZE = 0.2
TARGET = 0.01
"""Loss over Γ at which a descent stops; that of the zero weights is ½."""
INVARIANT_STEP_SIZE = 0.02
INVARIANT_TARGET = 1e-3
INVARIANT_NORMS = (1.0, 0.5, 0.25, 0.1)


def run(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """The law of the aggregator's rows, simulated and exact, and how long a teacher takes to learn."""
    parts = [
        _law(config),
        _rows(config, jax.random.fold_in(key, 0), repeat),
        _invariant(),
        _descent(config, jax.random.fold_in(key, 1), repeat),
    ]
    return describe(xr.merge(parts), "1")


def _law(config: Config) -> xr.Dataset:
    """s, Γ, δ and the loss at `POINTS`, on a fine grid of batch sizes."""
    n, d = config.block_nodes, config.block_degree
    curve = np.geomspace(1, n, CURVE_POINTS).round().astype(int)
    sizes = np.union1d(curve, config.block_batch_sizes)
    law = np.array(
        [
            [block_degree_law(n, d, int(b), fan_out) for fan_out in config.block_fan_outs]
            for b in sizes
        ]
    )
    losses = np.array([population_loss(*point, law[..., 1]) for point in POINTS])
    # What the draft puts in Γ's place: the mean row sum.
    published = np.array([population_loss(*point, law[..., 0]) for point in POINTS])
    dims = ("blocks_curve", "blocks_fan_out")
    fan_outs = np.array(config.block_fan_outs)
    sampled = np.minimum(fan_outs, d)
    return xr.Dataset(
        {
            "blocks_row_sum": (dims, law[..., 0], {"long_name": "mean row sum s"}),
            "blocks_squared_norm": (dims, law[..., 1], {"long_name": "mean squared norm Γ"}),
            "blocks_distance": (dims, law[..., 2], {"long_name": "squared distance δ"}),
            "blocks_loss": (("blocks_point", *dims), losses),
            "blocks_loss_of_row_sum": (
                ("blocks_point", *dims),
                published,
                {"long_name": "loss with the row sum in place of Γ"},
            ),
            "blocks_mean_squared_norm": (
                "blocks_fan_out",
                1 / sampled,
                {"long_name": "squared norm of a row of the mean aggregator"},
            ),
            "blocks_mean_distance": (
                "blocks_fan_out",
                1 / sampled - 1 / d,
                {"long_name": "squared distance of the mean aggregator's row"},
            ),
        },
        coords={
            "blocks_curve": sizes,
            "blocks_fan_out": fan_outs,
            "blocks_point": [f"φ {phi:g}, ψ {psi:g}" for phi, psi in POINTS],
        },
    )


def _rows(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Rows of the sampled aggregator, averaged over a batch, and losses on fresh features."""
    n, d, dtype = config.block_nodes, config.block_degree, config.dtype
    graph = graphs.circulant(n, d)
    lists, layout = neighborhoods(graph), graph_layout(graph)
    # Neighbours of a node are d consecutive nodes, all of different colours: with one column a
    # colour the aggregated features are the entries of the aggregator's row.
    colors = np.eye(d)[np.arange(n) % d]
    everyone = np.arange(n)
    most = max(config.block_batch_sizes)

    def one(params: dict[str, jax.Array], key: jax.Array) -> dict[str, jax.Array]:
        parts = jax.random.split(key, 3)
        # One order of the nodes and one sample of each serve batches of all sizes, which are nested.
        nodes, _ = sample_batch(parts[0], everyone, most, most)
        index, mask = sample_neighbors(parts[1], lists, nodes, params["fan_out"], d)
        drawn = jax.random.normal(parts[2], (n, 2 * FEATURE_PAIRS), dtype)
        features = jnp.concatenate([jnp.asarray(colors, dtype=dtype), drawn], axis=1)

        def batch(size: jax.Array) -> dict[str, jax.Array]:
            used = jnp.arange(most, dtype=jnp.int32) < size
            outputs = aggregate(layout, nodes, index, mask & used[:, None], features, "gcn_block")
            entries, aggregated = outputs[:, :d], outputs[:, d:].reshape(-1, 2)

            def mean(values: jax.Array) -> jax.Array:
                kept = jnp.where(used, values, jnp.zeros_like(values))
                return kept.sum() / used.sum().astype(values.dtype)

            losses = [
                mean(
                    teacher_losses(aggregated, jnp.asarray(point, dtype=dtype))
                    .reshape(most, FEATURE_PAIRS)
                    .mean(axis=1)
                )
                for point in POINTS
            ]
            return {
                "row_sum": mean(entries.sum(axis=1)),
                "squared_norm": mean((entries**2).sum(axis=1)),
                "distance": mean(((entries - 1 / d) ** 2).sum(axis=1)),
                "loss": jnp.stack(losses),
            }

        return jax.vmap(batch)(jnp.asarray(config.block_batch_sizes, dtype=jnp.int32))

    runs = repeat(
        "blocks-rows",
        one,
        {"fan_out": np.array(config.block_fan_outs)},
        jax.random.split(key, config.block_seeds),
    )
    found = {
        name: runs[name].rename({f"{name}_axis0": "b"}).transpose("b", "fan_out", "seed", ...)
        for name in ("row_sum", "squared_norm", "distance", "loss")
    }
    dims = ("blocks_batch_size", "blocks_fan_out", "blocks_seed")
    note = "simulated, mean over a batch"
    return xr.Dataset(
        {
            "blocks_simulated_row_sum": (
                dims,
                found["row_sum"].values,
                {"long_name": f"row sum, {note}"},
            ),
            "blocks_simulated_squared_norm": (
                dims,
                found["squared_norm"].values,
                {"long_name": f"squared norm, {note}"},
            ),
            "blocks_simulated_distance": (
                dims,
                found["distance"].values,
                {"long_name": f"squared distance from the full row, {note}"},
            ),
            "blocks_simulated_loss": (
                (*dims, "blocks_point"),
                found["loss"].values,
                {"long_name": f"loss against the teacher, {note}, with ½"},
            ),
        },
        coords={"blocks_batch_size": list(config.block_batch_sizes)},
    )


def _invariant() -> xr.Dataset:
    """Updates of population gradient descent, and their product with Γ."""
    updates = []
    for norm in INVARIANT_NORMS:
        steps = int(300 / norm)
        loss = population_gradient_descent(*POINTS[0], norm, INVARIANT_STEP_SIZE, steps).loss
        updates.append(_first(np.asarray(loss) / norm, INVARIANT_TARGET))
    product = np.array(updates) * np.array(INVARIANT_NORMS)
    return xr.Dataset(
        {
            "blocks_updates": (
                "blocks_norm",
                np.array(updates, dtype=float),
                {
                    "long_name": "updates of population gradient descent to the target",
                    "units": "updates",
                },
            ),
            "blocks_updates_by_norm": (
                "blocks_norm",
                product / product[0],
                {"long_name": "TΓ over that at Γ = 1"},
            ),
            "blocks_updates_alone": (
                "blocks_norm",
                np.array(updates) / updates[0],
                {"long_name": "T over that at Γ = 1"},
            ),
        },
        coords={"blocks_norm": list(INVARIANT_NORMS)},
    )


def _descent(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """SGD towards the teacher with three aggregators: over β at b = n, and over b at one β."""
    n, d = config.teacher_nodes, config.teacher_degree
    graph = graphs.random_regular(jax.random.fold_in(key, 0), n, d)
    neighborhoods(graph)  # kept on the graph before anything is traced
    fan_outs = [d // 6, d // 3, d // 2, d]
    cells = [(n, fan_out) for fan_out in fan_outs]
    cells += [(n // 4, fan_outs[1]), (n // 2, fan_outs[1])]
    sizes, sampled = (
        jnp.asarray(np.array(column, np.int32)) for column in zip(*cells, strict=True)
    )
    norms = np.array(
        [
            [1 / fan_out, fan_out, float(block_degree_law(n, d, b, fan_out).squared_norm)]
            for b, fan_out in cells
        ]
    )
    sums = np.array(
        [[1.0, fan_out, float(block_degree_law(n, d, b, fan_out).row_sum)] for b, fan_out in cells]
    )
    # The sum's squared norms are d times larger.
    rates = dict(zip(AGGREGATORS, (STEP_SIZE, STEP_SIZE / d, STEP_SIZE), strict=True))
    limit = int(np.ceil(1.25 * _updates(1 / d, STEP_SIZE)))
    start = np.array(POINTS[0], dtype=config.dtype)

    def one(params: dict[str, jax.Array], key: jax.Array) -> dict[str, jax.Array]:
        b, fan_out = sizes[params["cell"]], sampled[params["cell"]]
        paths = descend_to_teacher(key, graph, start, rates, b, fan_out, limit, n, d)
        # One step after another: the quadrature of a whole path would be the largest array by far.
        hits = [first_hit(jax.lax.map(teacher_error, path), TARGET) for path in paths.values()]
        return {
            "updates": jnp.stack([hit.iterations - 1 for hit in hits]),
            "censored": jnp.stack([hit.censored for hit in hits]),
        }

    keys = jax.random.split(jax.random.fold_in(key, 1), config.teacher_seeds)
    found = repeat("blocks-descent", one, {"cell": np.arange(len(cells))}, keys)
    dims = ("blocks_cell", "blocks_aggregator")
    simulated = found["updates"].values.astype(config.dtype)
    return xr.Dataset(
        {
            "blocks_simulated_updates": (
                ("blocks_cell", "blocks_teacher_seed", "blocks_aggregator"),
                simulated,
                {"long_name": "updates of SGD until the loss is 1 % of Γ", "units": "updates"},
            ),
            "blocks_censored": (
                dims,
                found["censored"].values.mean(axis=1),
                {"long_name": "share of runs that never get there"},
            ),
            "blocks_expected_updates": (
                dims,
                _table(norms, rates),
                {"long_name": "updates of descent on the expected loss", "units": "updates"},
            ),
            "blocks_updates_of_row_sum": (
                dims,
                _table(sums, rates),
                {"long_name": "the same with the row sum in place of Γ", "units": "updates"},
            ),
            "blocks_step_size": ("blocks_aggregator", list(rates.values())),
            "blocks_cell_norm": (dims, norms, {"long_name": "squared norm Γ"}),
            "blocks_cell_batch_size": ("blocks_cell", [b for b, _ in cells]),
            "blocks_cell_fan_out": ("blocks_cell", [fan_out for _, fan_out in cells]),
        },
        coords={
            "blocks_cell": [f"b {b}, β {fan_out}" for b, fan_out in cells],
            "blocks_aggregator": list(AGGREGATORS),
        },
    )


def _table(norms: np.ndarray, rates: dict[str, float]) -> np.ndarray:
    """Updates by cell and aggregator for these values of Γ."""
    columns = zip(norms.T, rates.values(), strict=True)
    return np.array([[_updates(norm, rate) for norm in column] for column, rate in columns]).T


def _updates(norm: float, rate: float) -> float:
    """Updates of population gradient descent to `TARGET`; its steps depend on the product alone."""
    loss = population_gradient_descent(*POINTS[0], 1.0, rate * norm, 600).loss
    return float(_first(np.asarray(loss), TARGET))


def _first(losses: np.ndarray, target: float) -> int:
    """Index of the first loss at or below the target, which must be there."""
    below = np.flatnonzero(losses <= target)
    assert len(below), "the descent is too short for its target"
    return int(below[0])
