"""One ReLU neuron as teacher: the mean-field theory of gradient methods and ridge, and simulation.

GLM-tron starts at 0; SGD on the true gradient, which never leaves 0, starts at a vector as long as
the teacher and nearly orthogonal to it; ridge regresses on 2y. Operators are diagonal, written in
their eigenbasis: the same law as on the nodes. Risks are R = 2Δ = E(ReLU(mᵀθ) − ReLU(mᵀθ*))².
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from boundlab.analysis.excess_risk import relu_neurons, relu_regression
from boundlab.analysis.excess_risk.config import Config
from boundlab.analysis.excess_risk.problems import graph_pair, problem
from boundlab.analysis.excess_risk.relu_claims import CLAIMS as CLAIMS
from boundlab.experiment import Repeat
from boundlab.models.linear_gnn import simulate_sgd
from boundlab.theory.excess_risk import relu as relu_theory
from boundlab.theory.excess_risk import sgd as sgd_theory

DIM = 128  # the errors of these theories fall like 1/d; from here on they are under 2.5 %
FRACTIONS = np.geomspace(0.045, 0.36, 17)  # step sizes over the stability limit of linear SGD
SIMULATED = FRACTIONS[::8]
GRID = ("relu_graph", "relu_fraction")


def run(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Theory and simulation of GLM-tron, SGD and ridge for the ReLU teacher."""
    graph_key, sgd_key, ridge_key, neuron_key = (jax.random.fold_in(key, i) for i in range(4))
    names, mu, teachers = _spectra(config, graph_key, DIM)
    keys = jax.random.split(ridge_key, num_seeds(config))
    parts = (
        _theory(mu, teachers, config),
        _simulation(mu, teachers, config, sgd_key, repeat),
        relu_regression.theory(mu, teachers, config.noise_variance),
        relu_regression.simulation(mu, teachers, config, keys, repeat),
        relu_neurons.run(config, neuron_key, repeat),
    )
    dataset = xr.merge(parts, join="exact").assign_coords(
        relu_graph=names,
        relu_fraction=("relu_fraction", FRACTIONS, {"long_name": "γ/γ_max of linear SGD"}),
        relu_simulated_fraction=SIMULATED,
    )
    risk = {"long_name": "excess risk R = 2Δ", "units": "E(ReLU − ReLU)², signal power 1"}
    for name in dataset.data_vars:
        dataset[name].attrs = risk | dataset[name].attrs
    return dataset.assign_attrs(
        relu_dim=DIM,
        relu_num_samples=config.num_samples[-1],
        relu_ridge_num_samples=relu_regression.NUM_SAMPLES,
    )


def alternating(theta: np.ndarray) -> np.ndarray:
    """`theta` with every second sign flipped: as long, and nearly orthogonal to it in M."""
    return theta * (-1.0) ** np.arange(theta.shape[-1])


def _spectra(config: Config, key: jax.Array, dim: int) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Names, eigenvalues (graphs, d) and isotropic teachers (graphs, d)."""
    graphs = graph_pair(key, dim, config.degree)
    items = [problem(name, graph, "laplacian") for name, graph in graphs.items()]
    teachers = np.stack([np.sqrt(item.theta_sq) for item in items])
    return list(graphs), np.stack([item.mu for item in items]), teachers


def num_seeds(config: Config) -> int:
    """Runs behind each mean of this part, whose risks vary less than those of small graphs."""
    return max(config.num_seeds // 4, 2)


def _theory(mu: np.ndarray, teachers: np.ndarray, config: Config) -> xr.Dataset:
    starts = np.stack([np.zeros_like(teachers), alternating(teachers)])
    steps = np.array([float(sgd_theory.stability_limit(row)) for row in mu])[:, None] * FRACTIONS
    noise, count = config.noise_variance, config.num_samples[-1]

    def table(formula: Callable, starts: np.ndarray) -> np.ndarray:
        def one(mu: jax.Array, teacher: jax.Array, start: jax.Array, step: jax.Array) -> jax.Array:
            return formula(mu, teacher, noise, step, count, None, start)

        over_steps = jax.vmap(one, in_axes=(None, None, None, 0))
        over_starts = jax.vmap(jax.vmap(over_steps), in_axes=(None, None, 0, None))
        return np.asarray(jax.jit(over_starts)(mu, teachers, starts, steps))

    glmtron = table(relu_theory.glmtron_risk, starts)
    return xr.Dataset(
        {
            "relu_glmtron_theory": (GRID, glmtron[0]),
            "relu_glmtron_linear": (GRID, table(_half_of_linear, starts[:1])[0]),
            "relu_sgd_theory": (GRID, table(relu_theory.relu_sgd_risk, starts[1:])[0]),
            "relu_sgd_ungated": (GRID, glmtron[1]),
            # b²/2 at signal power b² = 1; the linear teacher's b² from the same start.
            "relu_dead_theory": 0.5,
            "relu_dead_linear": 1.0,
        }
    )


def _half_of_linear(
    mu: jax.Array,
    teacher: jax.Array,
    noise: float,
    step: jax.Array,
    count: int,
    tail_start: None,
    start: jax.Array,
) -> jax.Array:
    """½R of linear SGD with the same step: what the ReLU's halved drift is mistaken for."""
    delta_sq = jnp.square(start - teacher)
    profile = sgd_theory.tail_averaged_risk(mu, delta_sq, noise, step, count, tail_start)
    return 0.5 * (profile.bias.sum() + profile.variance.sum())


def _simulation(
    mu: np.ndarray, teachers: np.ndarray, config: Config, key: jax.Array, repeat: Repeat
) -> xr.Dataset:
    limits = np.array([float(sgd_theory.stability_limit(row)) for row in mu])
    operators, targets, starts, sizes = (
        jnp.asarray(x, dtype=config.dtype)
        for x in (np.sqrt(mu), teachers, alternating(teachers), limits)
    )
    noise_std, count = config.noise_variance**0.5, config.num_samples[-1]

    def all_three(params: dict, run_key: jax.Array) -> dict[str, jax.Array]:
        i = params["relu_graph"]
        step = params["relu_simulated_fraction"] * sizes[i]
        given = (run_key, operators[i], targets[i], noise_std, step, count)

        def gated(start: jax.Array) -> jax.Array:
            return simulate_sgd(*given, algorithm="relu", theta0=start)

        # Both starts see the same samples, which are drawn once.
        moving, dead = jax.vmap(gated)(jnp.stack([starts[i], jnp.zeros_like(starts[i])]))
        return {
            "relu_glmtron_risk": simulate_sgd(*given, algorithm="glmtron"),
            "relu_sgd_risk": moving,
            "relu_dead_risk": dead,
        }

    grid = {"relu_graph": np.arange(len(mu)), "relu_simulated_fraction": SIMULATED}
    runs = repeat("relu-gradient", all_three, grid, jax.random.split(key, num_seeds(config)))
    return runs.rename(seed="relu_seed").drop_vars(["relu_seed", *grid])
