"""Small networks of growing capacity that learn the scores of one Gaussian law by denoising.

The law is that of `coupled_system`; vectors z are its coordinates, features first. A network's output
over −σ_b(t) is the score of block b. All networks are trained at once, each as a block of `descend`.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from boundlab.analysis.graph_diffusion.config import Config
from boundlab.analysis.graph_diffusion.coupled_system import (
    DIM_FEATURES,
    DIM_STRUCTURE,
    EARLY_STOP,
    HORIZON,
    SCHEDULES,
    coupled_system,
)
from boundlab.experiment import Runner
from boundlab.models import sde
from boundlab.models.sampler_noise import normal_noise
from boundlab.models.score_training import Descent, ScoreTraining, descend
from boundlab.models.vector_scores import LinearScore, PerceptronScore

BLOCKS = ("features", "structure")
SIZES = (DIM_FEATURES, DIM_STRUCTURE)
SDES = tuple(sde.vp(*schedule) for schedule in SCHEDULES)
# Coefficients of each linear network in time, and widths of the perceptrons.
LINEAR = {"linear, 1 in time": 1, "linear, 2 in time": 2, "linear, 4 in time": 4}
PERCEPTRONS = {"perceptron, width 12": 12, "perceptron, width 32": 32}
NETWORKS = (*LINEAR, *PERCEPTRONS)
# Of its first value, what the step size falls to along the training.
LAST_RATE = 0.01


def module(name: str) -> Any:
    """The network called `name`, of both blocks' scores."""
    if name in LINEAR:
        return LinearScore(sum(SIZES), LINEAR[name], HORIZON)
    return PerceptronScore(sum(SIZES), PERCEPTRONS[name], horizon=HORIZON)


def train(config: Config, key: jax.Array, repeat: Runner) -> ScoreTraining:
    """All networks, in single precision, on fresh draws of the law."""
    rate = float(np.exp(np.log(LAST_RATE) / config.learned_training_steps))
    root = np.linalg.cholesky(coupled_system().covariance).astype(np.float32)
    return descend(
        jax.random.fold_in(key, 1),
        partial(_loss, config.learned_batch_size),
        _start(jax.random.fold_in(key, 0)),
        num_steps=config.learned_training_steps,
        data=(root,),
        descent=Descent(decay=rate),
        advance=partial(repeat.advance, "learned-training"),
    )


@jax.jit
def _start(key: jax.Array) -> dict[str, Any]:
    """Initial parameters of all networks."""
    z, t = jnp.zeros(sum(SIZES), jnp.float32), jnp.float32(HORIZON)
    keys = [jax.random.fold_in(key, i) for i in range(len(NETWORKS))]
    return {name: module(name).init(own, z, t) for name, own in zip(NETWORKS, keys, strict=True)}


def _loss(batch: int, params: Any, key: jax.Array, root: jax.Array) -> dict[str, jax.Array]:
    """½ Σ (σ s + ξ)² of each network over both blocks, a mean over the batch, t uniform."""
    uniform = jax.random.uniform(jax.random.fold_in(key, 0), (batch,), root.dtype)
    t = EARLY_STOP + (HORIZON - EARLY_STOP) * uniform
    normal = normal_noise(jax.random.fold_in(key, 1), (2, batch, len(root)), root.dtype)
    z = scales("mean", t) * (normal[0] @ root.T) + scales("deviation", t) * normal[1]
    losses = {}
    for name in NETWORKS:
        net = jax.vmap(module(name).apply, in_axes=(None, 0, 0))(params[name], z, t)
        losses[name] = jnp.sum((normal[1] - net) ** 2) / (2 * batch)
    return losses


def network_scores(name: str, params: Any, z: jax.Array, t: jax.Array) -> jax.Array:
    """Score (draws, d) of one network at vectors z (draws, d), all at time t."""
    net = jax.vmap(module(name).apply, in_axes=(None, 0, None))(params[name], z, t)
    return -net / scales("deviation", t).astype(z.dtype)[None, :]


def linear_matrices(name: str, params: Any, times: np.ndarray) -> np.ndarray:
    """L_k (N, d, d) of the score L_k z of a linear network at each of `times`."""
    basis = chebyshev_table(LINEAR[name], times)
    kernel = np.asarray(params[name]["params"]["kernel"], np.float64)
    deviation = np.asarray(scales("deviation", jnp.asarray(times)))
    return -np.einsum("nk,kij->nji", basis, kernel) / deviation[:, :, None]


def chebyshev_table(count: int, times: np.ndarray) -> np.ndarray:
    """T_k of the networks' clock at each of `times`: (times, count)."""
    return np.polynomial.chebyshev.chebvander(2 * np.sqrt(times / HORIZON) - 1, count - 1)


def scales(kind: str, t: jax.Array) -> jax.Array:
    """Mean m or deviation σ of each coordinate's own block: (d,) at one time, (times, d) at several."""
    columns = []
    for equation, size in zip(SDES, SIZES, strict=True):
        value = equation.mean_coefficient(t) if kind == "mean" else jnp.sqrt(equation.variance(t))
        columns.append(jnp.broadcast_to(value[..., None], (*value.shape, size)))
    return jnp.concatenate(columns, axis=-1)


def parts(values: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Coordinates of the features and of the structure, along the last axis."""
    return values[..., :DIM_FEATURES], values[..., DIM_FEATURES:]
