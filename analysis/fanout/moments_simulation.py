"""Simulations behind the part on moments: sampled batches at fixed weights, and runs of SGD.

Everything is drawn and averaged by `boundlab.models`; theory enters only as the centre about which
deviations are taken. Symbols: b batch size, β fan-out, h̃_i mean over a node's sample, h̄_i over all its
neighbours, ĝ mean gradient of a batch, W_t weights before update t.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Int

from boundlab.analysis.fanout.problems import Problem
from boundlab.experiment import Repeat
from boundlab.models.aggregation import aggregate, aggregate_full
from boundlab.models.gnn import node_losses
from boundlab.models.neighborhoods import neighborhoods
from boundlab.models.sampling import sample_batch, sample_neighbors
from boundlab.models.training import train

DRAWN = {
    "estimator_error": ("‖h̃ − h̄‖², mean over the batch", "features²"),
    "two_hop_error": ("the same of two hops", "features²"),
    "ridge_share": ("shift of the gradient along W V̄, in units of it", "1"),
    "drawn_fan_out_part": ("½‖ĝ − ĝ'‖² of two samples of a batch", "gradient²"),
    "drawn_batch_part": ("⟨ĝ − E ĝ, ĝ' − E ĝ⟩ of two samples of a batch", "gradient²"),
    "drawn_noise": ("‖ĝ − E ĝ‖²", "gradient²"),
    "batch_loss": ("loss of the batch, mean of ½‖·‖²", "loss"),
    "batch_loss_deviation": ("its squared distance from L_β", "loss²"),
}


class Centre(NamedTuple):
    """Expectations at each fan-out, about which a draw's deviations are taken."""

    fan_outs: tuple[int, ...]
    gradient: Float[np.ndarray, "fan_outs K r"]
    """E ĝ, the same for every batch size."""
    full_gradient: Float[np.ndarray, "K r"]
    """∇L_full."""
    penalty: Float[np.ndarray, "fan_outs K r"]
    """W V̄, zero for the fan-out that takes every neighbour."""
    loss: Float[np.ndarray, " fan_outs"]
    """L_β(W)."""


def draws(
    problem: Problem,
    weights: Float[np.ndarray, "K r"],
    centre: Centre,
    batch_sizes: tuple[int, ...],
    keys: jax.Array,
    repeat: Repeat,
    dtype: str,
) -> xr.Dataset:
    """Squared deviations of one batch with two independent samples of its neighbours.

    Two samples ĝ, ĝ' of one batch separate the noise without bias: E ½‖ĝ − ĝ'‖² is the part of the
    fan-out, E⟨ĝ − E ĝ, ĝ' − E ĝ⟩ the part of the batch.
    """
    num_nodes, largest = problem.graph.num_nodes, max(centre.fan_outs)
    everyone = jnp.arange(num_nodes, dtype=jnp.int32)
    lists = neighborhoods(problem.graph)
    x, y, w, penalty, gradient, full_gradient = (
        jnp.asarray(value, dtype=dtype)
        for value in (
            problem.features,
            problem.targets,
            weights,
            centre.penalty,
            centre.gradient,
            centre.full_gradient,
        )
    )
    h = aggregate_full(problem.graph, x, "mean")
    h_two = aggregate_full(problem.graph, h, "mean")
    fan_outs, expected_loss = jnp.asarray(centre.fan_outs), jnp.asarray(centre.loss, dtype=dtype)

    def one(params: dict[str, jax.Array], key: jax.Array) -> dict[str, jax.Array]:
        fan_out, case = params["fan_out"], jnp.argmax(fan_outs == params["fan_out"])
        nodes, used = sample_batch(
            jax.random.fold_in(key, 0), everyone, params["batch_size"], num_nodes
        )
        share = used.astype(x.dtype) / used.sum().astype(x.dtype)

        def loss(w: Float[Array, "K r"], inputs: Float[Array, "b r"]) -> Float[Array, ""]:
            return jnp.sum(share * node_losses("mse", inputs @ w.T, y[nodes]))

        # Two samples of the batch and one of every node, in one program.
        keys = jax.vmap(lambda i: jax.random.fold_in(key, i))(jnp.arange(1, 4))
        rows = jnp.stack([nodes, nodes, everyone])
        index, mask = jax.vmap(lambda k, v: sample_neighbors(k, lists, v, fan_out, largest))(
            keys, rows
        )
        h_one, h_other, inner = jax.vmap(
            lambda v, i, m: aggregate(problem.graph, v, i, m, x, "mean")
        )(rows, index, mask)
        two_hops = aggregate(problem.graph, nodes, index[1], mask[1], inner, "mean")
        (value, _), (g_one, g_other) = jax.vmap(jax.value_and_grad(loss), (None, 0))(
            w, jnp.stack([h_one, h_other])
        )
        off_one, off_other = g_one - gradient[case], g_other - gradient[case]
        size = jnp.sum(penalty[case] ** 2)
        along = jnp.sum((g_one - full_gradient) * penalty[case])
        return {
            "estimator_error": jnp.sum(share * jnp.sum((h_one - h[nodes]) ** 2, axis=1)),
            "two_hop_error": jnp.sum(share * jnp.sum((two_hops - h_two[nodes]) ** 2, axis=1)),
            "ridge_share": jnp.where(size > 0, along / jnp.where(size > 0, size, 1.0), 0.0),
            "drawn_fan_out_part": 0.5 * jnp.sum((g_one - g_other) ** 2),
            "drawn_batch_part": jnp.sum(off_one * off_other),
            "drawn_noise": jnp.sum(off_one**2),
            "batch_loss": value,
            "batch_loss_deviation": (value - expected_loss[case]) ** 2,
        }

    grid = {"batch_size": np.array(batch_sizes), "fan_out": np.array(centre.fan_outs)}
    found = repeat("moments-draws", one, grid, keys).transpose("seed", *grid)
    for name, (words, units) in DRAWN.items():
        found[name].attrs = {"long_name": words, "units": units}
    return found.rename({name: f"moments_{name}" for name in (*found.data_vars, *found.dims)})


class Descent(NamedTuple):
    """A run of SGD with fresh batches, and where it is looked at."""

    start: Float[np.ndarray, "K r"]
    path: Float[np.ndarray, "marks K r"]
    """E W_t at t = 0, s, 2s, …, s = `steps_between`."""
    moment: Float[np.ndarray, "r r"]
    """M, in which distances are measured."""
    batch_sizes: tuple[int, ...]
    fan_out: int
    step_size: float
    steps_between: int


def runs(
    problem: Problem, descent: Descent, keys: jax.Array, repeat: Repeat, dtype: str
) -> xr.Dataset:
    """Weights of SGD along the mean iterate, ⟨W_t, E W_t⟩/‖E W_t‖², and ½ tr[(W_t − E W_t) M (·)ᵀ]."""
    everyone = np.arange(problem.graph.num_nodes)
    neighborhoods(problem.graph)  # made before the sweep: what is made within belongs to its mesh
    x, y, first, metric, expected = (
        jnp.asarray(value, dtype=dtype)
        for value in (
            problem.features,
            problem.targets,
            descent.start,
            descent.moment,
            descent.path[1:],
        )
    )

    def one(params: dict[str, jax.Array], key: jax.Array) -> dict[str, jax.Array]:
        def piece(w: Float[Array, "K r"], number: Int[Array, ""]) -> tuple[Any, Any]:
            trained = train(
                jax.random.fold_in(key, number),
                problem.graph,
                x,
                y,
                everyone,
                step_size=descent.step_size,
                batch_size=params["batch_size"],
                max_batch_size=max(descent.batch_sizes),
                fan_out=descent.fan_out,
                num_steps=descent.steps_between,
                initial_params=w.T,
                record=(),
            )
            (kernel,) = jax.tree.leaves(trained.params)
            return kernel.T, kernel.T

        _, weights = jax.lax.scan(piece, first, jnp.arange(len(expected)))
        apart = weights - expected
        along = jnp.sum(weights * expected, axis=(1, 2)) / jnp.sum(expected**2, axis=(1, 2))
        excess = 0.5 * jnp.einsum("tkp,pq,tkq->t", apart, metric, apart)
        return {"moments_iterate": along, "moments_excess": excess}

    found = repeat("moments-runs", one, {"batch_size": np.array(descent.batch_sizes)}, keys)
    dims = ("moments_run_seed", "moments_run_batch_size", "moments_step")
    described = {
        "moments_iterate": {"long_name": "weights along the mean iterate", "units": "1"},
        "moments_excess": {"long_name": "excess sampled loss about the mean", "units": "loss"},
    }
    variables = {
        name: (dims, found[name].transpose("seed", "batch_size", ...).values, words)
        for name, words in described.items()
    }
    steps = descent.steps_between * np.arange(1, len(descent.path))
    coords = {dims[0]: found["seed"].values, dims[1]: found["batch_size"].values, dims[2]: steps}
    return xr.Dataset(variables, coords=coords)
