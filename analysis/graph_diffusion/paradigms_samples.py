"""The block model sampled: Fisher information, the bound of each paradigm, and lower bounds of the error.

A lower bound of a KL from samples alone: KL(q ‖ p) ≥ E_q f − E_p e^f + 1 for any f, here the log-ratio of
two histograms that other draws made, or the pointwise mutual information.
"""

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from boundlab.analysis.graph_diffusion.block_model_draws import (
    MODEL,
    MU,
    NOISE_STD,
    P_IN,
    P_OUT,
    Condition,
    Draws,
    conditions,
    draw_pairs,
    fisher_by_posterior,
    flat_normal,
    num_pairs,
)
from boundlab.analysis.graph_diffusion.config import Config
from boundlab.experiment import Repeat
from boundlab.models import samplers, sde
from boundlab.theory import graph_diffusion as theory

PARADIGMS = ("features | structure", "structure | features", "joint")
# (m_X, m_A) of the scores in the three paradigms, and of marginal scores; None follows the time.
SEEN = ((None, 1.0), (1.0, None), (None, None))
ALONE = ((None, 0.0), (0.0, None))
TIMES = np.array([0.1, 0.2, 0.4, 0.8])
HORIZON, EARLY_STOP = 3.0, 0.02
# Bins of the features' squared norm, by quantiles of the data.
BINS = 8


def _scores(
    x: jax.Array, edges: jax.Array, mean_features: jax.Array, mean_structure: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Exact scores of one pair."""
    return theory.sbm_joint_score(x, edges, mean_features, mean_structure, **MODEL)


def _density(
    x: jax.Array, edges: jax.Array, mean_features: jax.Array, mean_structure: jax.Array
) -> jax.Array:
    """Pointwise mutual information of one pair."""
    return theory.sbm_information_density(x, edges, mean_features, mean_structure, **MODEL)


def _seen(
    condition: Condition, draws: Draws, x: jax.Array, edges: jax.Array, t: jax.Array
) -> tuple[jax.Array, ...]:
    """Scores (draws, ·) of both blocks at noised x and edges, given blocks being the clean ones."""
    means = condition.means(t)
    given_x = ~condition.features_noised & (condition.features_mean == 1.0)
    given_a = ~condition.structure_noised & (condition.structure_mean == 1.0)
    return jax.vmap(_scores, in_axes=(0, 0, None, None))(
        jnp.where(given_x, draws.features, x), jnp.where(given_a, draws.edges, edges), *means
    )


def fisher(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """E‖score‖² of both blocks with the partner clean, noisy and absent, and by posterior variances."""
    nodes = config.paradigms_nodes
    rules = conditions(*SEEN, *ALONE)

    def one(params: dict[str, jax.Array], key: jax.Array) -> dict[str, jax.Array]:
        t = params["t"].astype(jnp.float64)
        draws = draw_pairs(key, config.paradigms_draws, nodes)
        x, edges = draws.noised(t)
        scores = jax.vmap(lambda rule: _seen(rule, draws, x, edges, t))(rules)
        squares = [jnp.mean(jnp.sum(part**2, axis=2), axis=1) for part in scores]
        posterior = jax.vmap(lambda *s: fisher_by_posterior(x, edges, s, t))(*scores)
        variances = [jnp.mean(part, axis=1) for part in posterior]
        # Conditions 0 to 4: A clean, X clean, both noised, X alone, A alone.
        rows = (jnp.array([0, 2, 3]), jnp.array([1, 2, 4]))
        return {
            "squares": jnp.stack([part[row] for part, row in zip(squares, rows, strict=True)]),
            "posterior": jnp.stack([part[row] for part, row in zip(variances, rows, strict=True)]),
        }

    keys = jax.random.split(key, config.paradigms_seeds)
    found = repeat("paradigms-fisher", one, {"t": TIMES}, keys)
    dims = ("paradigms_time", "paradigms_seed", "paradigms_block", "paradigms_partner")
    described = {"units": "1"}
    return xr.Dataset(
        {
            "paradigms_fisher": (
                dims,
                found["squares"].values,
                {"long_name": "Fisher information of a block, mean square of its score"}
                | described,
            ),
            "paradigms_fisher_posterior": (
                dims,
                found["posterior"].values,
                {"long_name": "the same from posterior variances"} | described,
            ),
            "paradigms_fisher_labels": (
                ("paradigms_time", "paradigms_block"),
                _with_labels(nodes),
                {"long_name": "Fisher information of a block, labels known"} | described,
            ),
            "paradigms_fisher_alone": (
                "paradigms_time",
                _features_alone(nodes),
                {"long_name": "Fisher information of features alone, by quadrature"} | described,
            ),
        },
        coords={"paradigms_time": TIMES},
    )


def _variance(t: np.ndarray) -> np.ndarray:
    """Variance v = m²s² + σ² of a noised feature given its label."""
    return np.exp(-2 * t) * NOISE_STD**2 - np.expm1(-2 * t)


def _with_labels(nodes: int) -> np.ndarray:
    """(times, 2): given the labels all coordinates are independent; half of the pairs are alike."""
    edges = [np.asarray(theory.edge_fisher(TIMES, p)) for p in (P_IN, P_OUT)]
    return np.stack(
        [nodes / _variance(TIMES), num_pairs(nodes) * 0.5 * (edges[0] + edges[1])], axis=1
    )


def _features_alone(nodes: int) -> np.ndarray:
    """A feature is a noised sign, scaled: ±μ at noise v reads as ±μσ/√v at noise σ²."""
    sigma_sq = -np.expm1(-2 * TIMES)
    scale = np.sqrt(sigma_sq / _variance(TIMES))
    values = [
        float(theory.edge_fisher(t, 0.5, -MU * s, MU * s)) * s**2
        for t, s in zip(TIMES, scale, strict=True)
    ]
    return nodes * np.array(values)


def samples(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Bound of each paradigm by Monte Carlo, and lower bounds of the error of drawn samples."""
    nodes, draws_each = config.paradigms_nodes, config.paradigms_run_draws
    times = _times(config.paradigms_run_steps)
    edges_at = 0.5 * np.exp(-EARLY_STOP)

    def one(params: dict[str, jax.Array], key: jax.Array) -> dict[str, jax.Array]:
        draws = draw_pairs(jax.random.fold_in(key, 0), draws_each, nodes)
        terms = _bound_terms(jax.random.fold_in(key, 1), draws, times)
        x, edges = _run(jax.random.fold_in(key, 2), draws, times)
        true_x, true_edges = draws.noised(jnp.asarray(EARLY_STOP))
        # Paradigms 0 to 2 keep a clean block as it is; chains 3 and 4 have marginal scores.
        norms = jnp.stack([jnp.sum(x[0] ** 2, axis=1), jnp.sum(true_x**2, axis=1)])
        counts = [jnp.sum(part > edges_at, axis=1) for part in (edges[1], edges[2], true_edges)]
        density = _densities(draws, (true_x, true_edges), (x[3], edges[4]))
        return {
            "terms": terms,
            "norms": norms,
            "counts": jnp.stack(counts).astype(jnp.int32),
            "marginal": jnp.mean(density[0] - jnp.exp(density[1]) + 1.0, axis=1),
            "information": jnp.mean(density[0], axis=1),
        }

    keys = jax.random.split(key, config.paradigms_runs)
    found = repeat("paradigms-samples", one, {}, keys)
    norms, counts = found["norms"].values, found["counts"].values
    held_out = len(keys) // 2
    bins = np.quantile(norms[:held_out, 1], np.linspace(0, 1, BINS + 1)[1:-1])
    binned = np.searchsorted(bins, norms)
    lower = np.stack(
        [
            _lower_bound(binned[:, 1], binned[:, 0], held_out),
            _lower_bound(counts[:, 2], counts[:, 0], held_out),
            _lower_bound(counts[:, 2], counts[:, 1], held_out),
        ],
        axis=1,
    )
    bound = found["terms"].values + _initialization(nodes)
    seed, paradigm = "paradigms_run_seed", "paradigms_paradigm"
    return xr.Dataset(
        {
            "paradigms_sbm_bound": (
                (seed, paradigm),
                bound[held_out:],
                {"long_name": "bound for exact scores, block model"},
            ),
            "paradigms_sbm_lower": (
                (seed, paradigm),
                lower,
                {"long_name": "lower bound of the KL from samples, exact scores"},
            ),
            "paradigms_sbm_marginal": (
                (seed, paradigm),
                found["marginal"].values[held_out:],
                {"long_name": "lower bound of the KL from samples, marginal scores"},
            ),
            "paradigms_sbm_information": (
                (seed, paradigm),
                found["information"].values[held_out:],
                {
                    "long_name": "mutual information of features and structure as the paradigm has them"
                },
            ),
        },
    )


def _times(num_steps: int) -> np.ndarray:
    """Half of the steps equal down to 1, the rest at a constant ratio."""
    return np.asarray(theory.time_grid(HORIZON, EARLY_STOP, num_steps, "benton"))


def _initialization(nodes: int) -> np.ndarray:
    """(paradigms,): at most the KL of the noised data from the prior, of the blocks that are noised."""
    moments = np.array([nodes * (MU**2 + NOISE_STD**2), num_pairs(nodes) * (P_IN + P_OUT) / 2])
    blocks = [
        float(theory.initialization_kl_universal(moment, dim, 2 * HORIZON))
        for moment, dim in zip(moments, (nodes, num_pairs(nodes)), strict=True)
    ]
    return np.array([blocks[0], blocks[1], blocks[0] + blocks[1]])


def _bound_terms(key: jax.Array, draws: Draws, times: np.ndarray) -> jax.Array:
    """(paradigms,): Σ_k ∫ J − (2(1 − e^{−h}) − h)J(t_k), one uniform time a step: no quadrature error."""
    grid = jnp.asarray(times)
    rules = conditions(*SEEN)
    noised = jnp.asarray([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])

    def information(t: jax.Array) -> jax.Array:
        x, edges = draws.noised(t)
        scores = jax.vmap(lambda rule: _seen(rule, draws, x, edges, t))(rules)
        blocks = jax.vmap(lambda *s: fisher_by_posterior(x, edges, s, t))(*scores)
        means = jnp.stack([jnp.mean(block, axis=1) for block in blocks], axis=1)
        return jnp.sum(noised * means, axis=1)

    def step(total: jax.Array, given: tuple[jax.Array, ...]) -> tuple[jax.Array, None]:
        tau, t, place = given
        h = tau - t
        at = jax.vmap(information)(jnp.stack([t + place * h, tau]))
        return total + h * at[0] + (2 * jnp.expm1(-h) + h) * at[1], None

    places = jax.random.uniform(key, (len(times) - 1,), jnp.float64)
    start = jnp.zeros(len(PARADIGMS), jnp.float64)
    return jax.lax.scan(step, start, (grid[:-1], grid[1:], places))[0]


def _run(key: jax.Array, draws: Draws, times: np.ndarray) -> tuple[jax.Array, jax.Array]:
    """Features and edges (5, draws, ·) sampled under the scores of each paradigm and under marginal ones.

    Both blocks have one schedule, so that the coupled system is one SDE of the pair; what a chain makes
    of a given or absent block isn't used.
    """
    count, nodes = draws.features.shape
    shape = (count, nodes + num_pairs(nodes))

    def chain(rule: Condition, own: jax.Array) -> jax.Array:
        def score(state: jax.Array, t: jax.Array) -> jax.Array:
            seen = _seen(rule, draws, state[:, :nodes], state[:, nodes:], t)
            return jnp.concatenate(seen, axis=1)

        return samplers.sample(
            own,
            sde.ou(),
            score,
            times,
            shape,
            "exponential_integrator",
            dtype=jnp.float64,
            draw=flat_normal,
        )

    rules = conditions(*SEEN, *ALONE)
    states = jax.vmap(chain)(rules, jax.random.split(key, len(SEEN) + len(ALONE)))
    return states[:, :, :nodes], states[:, :, nodes:]


def _densities(
    draws: Draws, true: tuple[jax.Array, jax.Array], alone: tuple[jax.Array, jax.Array]
) -> jax.Array:
    """(2, paradigms, draws): pointwise mutual information at true pairs, at marginal samples.

    A given block is the clean one in both.
    """
    stop = jnp.asarray(EARLY_STOP)

    def one(rule: Condition, x: jax.Array, edges: jax.Array) -> jax.Array:
        means = rule.means(stop)
        x = jnp.where(rule.features_noised, x, draws.features)
        edges = jnp.where(rule.structure_noised, edges, draws.edges)
        return jax.vmap(_density, in_axes=(0, 0, None, None))(x, edges, *means)

    both = tuple(jnp.stack(pair) for pair in zip(true, alone, strict=True))
    over_rules = jax.vmap(one, in_axes=(0, None, None))
    return jax.vmap(over_rules, in_axes=(None, 0, 0))(conditions(*SEEN), *both)


def _lower_bound(true: np.ndarray, sampled: np.ndarray, held_out: int) -> np.ndarray:
    """KL ≥ E_q f − E_p e^f + 1, f the log-ratio of the histograms of the first `held_out` runs.

    One value for each of the other runs, on whose draws f doesn't depend.
    """
    size = int(max(true.max(), sampled.max())) + 1
    first, other = (
        np.bincount(part[:held_out].ravel(), minlength=size) + 1.0 for part in (true, sampled)
    )
    ratio = np.log(first / first.sum()) - np.log(other / other.sum())
    witness = ratio[true[held_out:]] - np.exp(ratio[sampled[held_out:]]) + 1.0
    return witness.mean(axis=1)
