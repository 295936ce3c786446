"""Exact sizes and bounds of the part on bounds: tables without randomness."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from boundlab.models import teams
from boundlab.theory import team_learning as theory

DELTA = 0.05
TEAM_SIZES = np.array([2, 4, 8])
ACTION_COUNTS = np.array([2, 4, 16, 256, 65536])
# Actions and agents of the simulated cells.
CELLS = np.array([[4, 2], [16, 2], [4, 4], [16, 4], [4, 8], [16, 8]])
ACTIONS, AGENTS = 4, 3
ARMS = 2.0 ** np.array([2, 6, 12, 20, 40])
DELTAS = np.array([0.2, 0.05, 0.01])
SANDWICH_ARMS = 2.0 ** np.array([1, 2, 6, 12, 20])
SEPARATIONS = np.array([1.0, 3.0, 5.0, 7.0])
LOG_CLASS, ACCURACY = 5.0, 0.2
TOKENS, DIM, POLICIES, STEP = 5, 3, 16, 0.02


def ratios() -> xr.Dataset:
    """ρ_F and κ, exact sizes with their bounds, and the sizes at which the cells are simulated."""
    a, k = ACTION_COUNTS[:, None].astype(float), TEAM_SIZES[None, :]
    each = -np.expm1(np.log1p(-DELTA) / k)
    actions, agents = CELLS.T.astype(float)
    cells = actions**agents
    each_cell = -np.expm1(np.log1p(-DELTA) / agents)
    queries = [
        (a**k, DELTA),
        (a, each),
        (cells, DELTA),
        (actions, each_cell),
        (actions, DELTA),
        (np.full(1, ACTIONS), -np.expm1(np.log1p(-DELTA) / AGENTS)),
        (ARMS[:, None], DELTAS[None, :]),
    ]
    found = _for_all(queries)
    joint, team, size, size_team, undivided, alone, exact = found["exact"]
    ratio = team / joint
    spare = ratio - 1.0 / TEAM_SIZES
    dims, cell = ("bounds_action_count", "bounds_team_size"), "bounds_cell"
    square = ("bounds_action_square", "bounds_team_size")
    described = {
        "ratio": (dims, ratio, "exact n of a team over n of one agent"),
        "ratio_bounds": (dims, _bounds_ratio(), "the same ratio of bounds"),
        "ratio_inverse": (dims, np.broadcast_to(1.0 / TEAM_SIZES, ratio.shape), "1/K"),
        "ratio_excess": (square, spare[1:] / spare[:-1], "distance from 1/K at A², over that at A"),
        "ratio_excess_even": ((), 1.0, "no change"),
        "ratio_excess_halved": ((), 0.5, "halved, as 1/ln A"),
        "size_one": (cell, size, "exact normalised size of one agent"),
        "size_k_times_team": (cell, agents * size_team, "K times a team's exact size"),
        "size_team": (cell, size_team, "exact normalised size of a team"),
        "size_undivided": (cell, undivided, "a team's size with δ for each agent"),
        "size_union": (cell, found["union"][2], "union bound"),
        "size_fano": (cell, found["fano"][2], "Fano's bound"),
        "size_joint": ((), alone[0], "exact normalised size of the jointly trained agents"),
        "delta": ((), DELTA, "allowed probability of failure"),
    }
    named = {name: found[name][-1] for name in found}
    coords = {
        dims[0]: ACTION_COUNTS,
        dims[1]: TEAM_SIZES,
        cell: [f"A = {a}, K = {k}" for a, k in CELLS],
        square[0]: ACTION_COUNTS[1:],
    }
    return xr.merge([dataset_of(described, coords), _tightness(exact, named), _sandwich(alone[0])])


def _tightness(exact: np.ndarray, named: dict[str, np.ndarray]) -> xr.Dataset:
    """Exact normalised sizes x*² with their bounds."""
    # Hoeffding's uniform convergence at the worst noise of rewards in [0, 1], ½: x² = nΔ²/σ² = 4nΔ².
    uniform = np.array(
        [
            [4.0 * float(theory.finite_class_samples(m, 1.0, d, "sarl")) for d in DELTAS]
            for m in np.log(ARMS)[:, None]
        ]
    )
    dims = ("bounds_arms", "bounds_delta_allowed")
    union, fano = named["union"], named["fano"]
    described = {
        "exact": (dims, exact, "exact normalised size x*²"),
        "union": (dims, union, "union bound"),
        "fano": (dims, fano, "Fano's bound"),
        "uniform": (dims, uniform, "bound by uniform convergence"),
        "union_half": (dims, union / 2, "half of the union bound"),
        "fano_twice": (dims, 2.0 * fano, "twice Fano's bound"),
        "uniform_excess": (dims, uniform / exact, "bound by uniform convergence over exact size"),
        "union_excess": (dims, union / exact, "union bound over exact size"),
        "fano_excess": (dims, fano / exact, "Fano's bound over exact size"),
        "least_excess": ((), 2.89, "least on this table"),
        "union_most_excess": ((), 2.3, "most on this table"),
        "pac_lower": (dims, named["any"] / ARMS[:, None], "bound for any algorithm, per arm"),
        "growth": (
            ("bounds_more_arms", dims[1]),
            exact[1:] / exact[:-1],
            "over that of fewer arms",
        ),
        "growth_stricter": (
            (dims[0], "bounds_stricter"),
            exact[:, 1:] / exact[:, :-1],
            "exact size over that at a larger δ",
        ),
        "growth_logarithm": (
            "bounds_more_arms",
            np.log(ARMS[1:]) / np.log(ARMS[:-1]),
            "ratio of the logarithms of arms",
        ),
        "growth_none": ((), 1.0, "no growth"),
    }
    coords = {
        dims[0]: ARMS,
        dims[1]: DELTAS,
        "bounds_more_arms": ARMS[1:],
        "bounds_stricter": DELTAS[1:],
    }
    return dataset_of(described, coords)


def _sandwich(size: float) -> xr.Dataset:
    """q(M, x) between its bounds, and the failure of K agents of the joint task."""
    shape = (len(SANDWICH_ARMS), len(SEPARATIONS))
    m, x = np.broadcast_arrays(SANDWICH_ARMS[:, None], SEPARATIONS[None, :])
    root = np.sqrt(size)
    # All in one program: with n samples, and with n/K².
    arms = np.concatenate([m.ravel(), [ACTIONS, ACTIONS]])
    missed = np.asarray(
        theory.slippage_failure(arms, np.concatenate([x.ravel(), [root, root / AGENTS]]))
    )
    bounds = [np.asarray(bound) for bound in theory.slippage_bounds(m, x)]
    whole, staged = -np.expm1(AGENTS * np.log1p(-missed[-2:]))
    pair = ("bounds_arm_count", "bounds_separation")
    described = {
        "missed": (pair, missed[:-2].reshape(shape), "probability q of missing the best"),
        "missed_slepian": (pair, bounds[1], "Slepian's bound"),
        "missed_half": (pair, bounds[0], "half of the chance with the best arm known"),
        "missed_known": (pair, 2.0 * bounds[0], "chance, best arm known"),
        "missed_union": (pair, bounds[2], "union bound"),
        "joint_failure_theory": ((), whole, "probability of failure of K agents"),
        "joint_failure_staged": ((), staged, "that at n/K²"),
    }
    return dataset_of(described, {pair[0]: SANDWICH_ARMS, pair[1]: SEPARATIONS})


def crossovers() -> xr.Dataset:
    """Finite classes: sizes of the four kinds, K³, and where misalignment makes the team's the larger."""
    star = [
        float(theory.alignment_crossover(LOG_CLASS, int(k), ACCURACY, DELTA)) for k in TEAM_SIZES
    ]
    limit = ACCURACY / 2 * (1 - 1 / np.sqrt(TEAM_SIZES))

    def sizes(kind: str, alignments: Any) -> np.ndarray:
        classes = [np.full(k, LOG_CLASS) for k in TEAM_SIZES]
        pairs = zip(classes, alignments, strict=True)
        return np.array(
            [float(theory.finite_class_samples(c, ACCURACY, DELTA, kind, a)) for c, a in pairs]
        )

    none = np.zeros(len(TEAM_SIZES))
    found = {
        "one": sizes("sarl", none),
        "independent": sizes("independent", none),
        "dependent": sizes("dependent", none),
        "misaligned": sizes("misaligned", star),
        "limit": sizes("misaligned", limit),
    }
    dim = "bounds_team_size"
    described = {
        "class_one": (dim, found["one"], "bound for one agent, finite classes"),
        "class_misaligned": (dim, found["misaligned"], "bound for a team misaligned by α*"),
        "class_limit": (dim, found["limit"], "bound for a team misaligned by (ε/2)(1 − 1/√K)"),
        "class_ratio": (
            dim,
            found["dependent"] / found["independent"],
            "bound for dependent agents over independent ones",
        ),
        "class_cubed": (dim, TEAM_SIZES**3.0, "K³"),
        "class_squared": (dim, TEAM_SIZES**2.0, "K²"),
        "class_crossover": (
            dim,
            np.array(star),
            "misalignment α* at which a team's bound is one's",
        ),
    }
    data = dataset_of(described, {dim: TEAM_SIZES})
    for name in ("one", "misaligned", "limit"):
        data[f"bounds_class_{name}"].attrs["units"] = "prompts"
    return data


def discoveries(actions: np.ndarray, agents: int, deltas: np.ndarray) -> xr.Dataset:
    """Exact sizes of discovery and the failures at them, by the right and by wrong formulas."""
    sizes = np.array(
        [[theory.coupon_samples(int(a), agents, float(d)) for d in deltas] for a in actions], float
    )
    undivided = np.array(
        [[theory.coupon_samples(int(a), 1, float(d))[0] for d in deltas] for a in actions], float
    )
    rows = list(zip(actions, sizes, undivided, strict=True))
    one = np.stack([theory.discovery_failure(n[:, 0], int(a), agents)[0] for a, n, _ in rows])
    team = np.stack([theory.discovery_failure(n[:, 1], int(a), agents)[1] for a, n, _ in rows])
    short = np.stack([theory.discovery_failure(m, int(a), agents)[1] for a, _, m in rows])
    single = np.stack([theory.discovery_failure(n[:, 1], int(a), 1)[1] for a, n, _ in rows])
    arms = actions[:, None].astype(float) ** agents
    dims = ("bounds_actions", "bounds_allowed")
    described = {
        "discovery_one_size": (dims, sizes[..., 0], "smallest size, one agent"),
        "discovery_team_size": (dims, sizes[..., 1], "smallest size, team"),
        "discovery_one_theory": (dims, one, "probability of failure at it, one agent"),
        "discovery_team_theory": (dims, team, "probability of failure at it, team"),
        "discovery_one_fresh": (
            dims,
            np.maximum(0.0, 1.0 - sizes[..., 0] / arms),
            "if no joint action came twice",
        ),
        "discovery_team_single": (dims, single, "of one agent of the team"),
        "discovery_team_short": (dims, short, "of a team at the size of one of its agents"),
        "discovery_delta": ("bounds_allowed", deltas, "allowed probability of failure"),
    }
    data = dataset_of(described, {dims[0]: actions, dims[1]: deltas})
    for name in ("one_size", "team_size"):
        data[f"bounds_discovery_{name}"].attrs["units"] = "trajectories"
    return data


def variations() -> xr.Dataset:
    """Total variation of pairs of linear-softmax policies over the length of their texts.

    The first pair is that of two tokens with opposite features, which attains the constant of one token.
    """
    rng = np.random.default_rng(0)
    thetas = rng.normal(size=(POLICIES, 1, DIM))
    steps = rng.normal(size=(POLICIES, 1, DIM)) * rng.uniform(0.1, 1.0, (POLICIES, 1, 1))
    thetas[0], steps[0] = 0.0, STEP * np.eye(DIM)[:1]
    both = thetas + 0.5 * steps * np.array([-1.0, 1.0])[:, None]
    features = [rng.normal(size=(POLICIES, 2**t, 2, DIM)) for t in range(TOKENS)]
    for array in features:
        array /= np.linalg.norm(array, axis=-1, keepdims=True)
        array[0] = np.stack([np.eye(DIM)[0], -np.eye(DIM)[0]])

    def distances(parameters: jax.Array, features: list[jax.Array]) -> jax.Array:
        pairs = jax.vmap(jax.vmap(teams.text_laws, (0, None)))(parameters, features)
        return jnp.stack([teams.total_variation(p[:, 0], p[:, 1]) for p in pairs], axis=1)

    arrays = [jnp.asarray(array) for array in features]
    found = np.asarray(jax.jit(distances)(jnp.asarray(both), arrays))
    slopes = found / np.linalg.norm(steps[:, 0], axis=1)[:, None]
    lengths = np.arange(1, TOKENS + 1)
    dims = ("bounds_policy", "bounds_tokens")
    described = {
        "variation": (dims, slopes, "total variation per unit of parameter"),
        "variation_pinsker": (
            dims[1],
            theory.softmax_lipschitz(lengths),
            "√T/2, from KL and Pinsker's inequality",
        ),
        "variation_hybrid": (dims[1], theory.sequence_lipschitz(lengths), "T/2, token by token"),
        "variation_token": ((), 0.5, "½, that of one token"),
    }
    return dataset_of(described, {dims[0]: np.arange(POLICIES), dims[1]: lengths})


def _for_all(queries: list) -> dict[str, list[np.ndarray]]:
    """x*² and its bounds at pairs (M, δ) of arrays, each function in one program."""
    shaped = [np.broadcast_arrays(*pair) for pair in queries]
    arms, delta = (np.concatenate([pair[i].ravel() for pair in shaped]) for i in (0, 1))
    found = {
        "exact": np.asarray(theory.slippage_root(arms, delta)) ** 2,
        "union": np.asarray(theory.union_upper(arms, delta)),
        "fano": np.asarray(theory.fano_lower(arms, delta)),
        "any": np.asarray(theory.pac_lower_bound(arms, 1.0, 1.0, delta)),
    }
    ends = np.cumsum([pair[0].size for pair in shaped])[:-1]
    return {
        name: [
            piece.reshape(pair[0].shape)
            for piece, pair in zip(np.split(values, ends), shaped, strict=True)
        ]
        for name, values in found.items()
    }


def _bounds_ratio() -> np.ndarray:
    """κ, the ratio of the bounds for K equal finite classes: (1 − 2α*)² at ε = 1."""
    star = [
        [float(theory.alignment_crossover(np.log(a), int(k), 1.0, DELTA)) for k in TEAM_SIZES]
        for a in ACTION_COUNTS
    ]
    return (1.0 - 2.0 * np.array(star)) ** 2


def dataset_of(described: dict, coords: dict) -> xr.Dataset:
    """Variables of this part by name: dims, values and what they are."""
    return xr.Dataset(
        {
            f"bounds_{name}": (dims, np.asarray(values), {"long_name": text})
            for name, (dims, values, text) in described.items()
        },
        coords=coords,
    )
