"""Trust regions and improvement bounds: closed forms beside linear programs and exact improvements.

Bounds are held against J(π′) − J(π) of random processes and sequence trees, solved exactly, and of worst
cases that attain them; and improvements against simulated returns.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from scipy.optimize import linprog

from boundlab.analysis.policy_optimization import region_cases as cases
from boundlab.analysis.policy_optimization.config import Config
from boundlab.analysis.policy_optimization.region_claims import CLAIMS as CLAIMS
from boundlab.experiment import Repeat
from boundlab.models.tabular_mdp import simulate_returns, solve_mdp
from boundlab.models.tabular_trees import solve_tree
from boundlab.theory import policy_optimization as theory

# Actions of the linear programs, and of the states whose samples are censored.
PROGRAM_ACTIONS, SAMPLED_ACTIONS, MOST_SAMPLES = 4, 5, 5
RADII = (0.05, 0.2)
# Of the policies that are simulated: e^(2r) in the place of uniform ones, or the mixture; how long.
SIMULATED_GREED, SIMULATED_DISCOUNT, SIMULATED_MIXTURE, SIMULATED_STEPS = 2.0, 0.7, 0.15, 60
SIMULATED = ("leaves by mixture", "random 1", "random 2")
# Advantages below this are rounding.
ROUNDING = 1e-12
# Golden sections from [0, 2] down to 1e-10.
SECTIONS, GOLDEN = 50, (5**0.5 - 1) / 2
# Effective horizons at which radii with and without discount are drawn.
LENGTHS = np.unique(np.geomspace(2, 1000, 40).round())


def run(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Steps and retractions of single states, bounds on processes and trees, simulated improvements."""
    keys = [jax.random.fold_in(key, place) for place in range(4)]
    return xr.merge(
        [
            _programs(config, keys[0]),
            _retractions(config, keys[1]),
            _processes(config, keys[2], repeat),
            _trees(config, keys[3]),
            _vanishing(),
        ]
    )


def _dataset(
    dims: Any, described: dict[str, tuple[Any, str, str]], coords: dict[str, Any]
) -> xr.Dataset:
    """Variables region_… from values, words and units, all with the same dims."""
    return xr.Dataset(
        {
            f"region_{name}": (dims, np.asarray(values), {"long_name": words, "units": units})
            for name, (values, words, units) in described.items()
        },
        coords=coords,
    )


def _generator(key: jax.Array) -> np.random.Generator:
    return np.random.default_rng(np.asarray(jax.random.key_data(key)))


def _programs(config: Config, key: jax.Array) -> xr.Dataset:
    """Gains of the closed form and of linear programs, at radii up to beyond 2."""
    rng, count = _generator(key), config.region_programs
    policy = rng.dirichlet(np.ones(PROGRAM_ACTIONS), size=count)
    policy[: count // 4, 0] = 0.0
    policy /= policy.sum(axis=1, keepdims=True)
    advantage = rng.standard_normal((count, PROGRAM_ACTIONS))
    advantage[count // 4 : count // 2, 1] = advantage[count // 4 : count // 2, 2]
    radius = rng.uniform(0.0, 2.4, count)
    step = jax.jit(jax.vmap(lambda p, a, d: theory.tv_trpo_step(p[None], a[None], jnp.ones(1), d)))
    found = step(policy, advantage, radius)
    exact = [_program(*row) for row in zip(policy, advantage, radius, strict=True)]
    spread = advantage.max(axis=1) - advantage.min(axis=1)
    moved = np.abs(np.asarray(found.policy)[:, 0] - policy).sum(axis=1)
    return _dataset(
        "region_program",
        {
            "step": (found.surrogate_gain, "surrogate gain of the closed form", "reward"),
            "program": (exact, "surrogate gain of the linear program", "reward"),
            "unlimited": (radius * spread / 2, "δ(max A − min A)/2, no limit", "reward"),
            "moved": (moved, "Σ|π′ − π| of the closed form", "1"),
            "allowed": (radius, "radius δ", "1"),
        },
        {},
    )


def _program(policy: np.ndarray, advantage: np.ndarray, radius: float) -> float:
    """Maximise Σ(up − down)A subject to Σ(up + down) ≤ δ, Σup = Σdown, down ≤ π."""
    size = len(policy)
    found = linprog(
        np.concatenate([-advantage, advantage]),
        A_ub=np.ones((1, 2 * size)),
        b_ub=[radius],
        A_eq=np.concatenate([np.ones(size), -np.ones(size)])[None],
        b_eq=[0.0],
        bounds=[(0, None)] * size + [(0, p) for p in policy],
    )
    return -float(found.fun)


def _retractions(config: Config, key: jax.Array) -> xr.Dataset:
    """Samples of single states: retracted, and their censored objective beside its maximum."""
    rng, count = _generator(key), config.region_states
    actions = rng.integers(2, SAMPLED_ACTIONS + 1, count)
    taken = np.arange(SAMPLED_ACTIONS)[None, :] < actions[:, None]
    counts = np.where(taken, rng.integers(1, MOST_SAMPLES + 1, taken.shape), 0)
    total = counts.sum(axis=1)
    radius = rng.choice(RADII, count)

    def centred(values: np.ndarray) -> np.ndarray:
        return np.where(taken, values - ((counts * values).sum(axis=1) / total)[:, None], 0.0)

    def far(deviation: np.ndarray) -> np.ndarray:
        return (counts * np.abs(deviation)).sum(axis=1) / total

    drawn = rng.standard_normal(taken.shape) * rng.uniform(0.02, 1.0, (count, 1)) * taken
    advantage = centred(rng.standard_normal(taken.shape))
    deviation = centred(drawn)
    retract = jax.jit(jax.vmap(theory.retraction))
    after, raw = (np.asarray(retract(u, counts, radius)) for u in (deviation, drawn))
    alone = centred(np.clip(deviation, -(total * radius)[:, None], (total * radius)[:, None]))
    before = far(deviation)
    # After the step no more than 2δ less what was before: of that, what can count is 2δ.
    both = far(after) + np.minimum(before, 2 * radius)
    both_raw = far(raw) + np.minimum(far(drawn), 2 * radius)
    # The maximiser: half of the radius to the best action, half from the worst.
    rows, hidden = np.arange(count), np.where(taken, advantage, np.nan)
    top, bottom = np.nanargmax(hidden, axis=1), np.nanargmin(hidden, axis=1)
    best = np.zeros(taken.shape)
    best[rows, top] = radius * total / (2 * counts[rows, top])
    best[rows, bottom] -= radius * total / (2 * counts[rows, bottom])
    reached = radius * total * (advantage[rows, top] - advantage[rows, bottom]) / 2
    # Samples of a state stand first; those of another, which fill up the shape, change nothing.
    slot = np.arange(SAMPLED_ACTIONS * MOST_SAMPLES)
    action = np.minimum(
        (slot[None, :, None] >= np.cumsum(counts, axis=1)[:, None, :]).sum(axis=2),
        SAMPLED_ACTIONS - 1,
    )
    used = slot[None, :] < total[:, None]

    def samples(values: np.ndarray) -> np.ndarray:
        return np.where(used, np.take_along_axis(values, action, axis=1), 0.0)

    value = jax.jit(jax.vmap(theory.apc_objective))

    def censored(moved: np.ndarray) -> np.ndarray:
        state = np.where(used, 0, 1)
        return len(slot) * np.asarray(value(1 + samples(moved), samples(advantage), state, radius))

    return _dataset(
        "region_state",
        {
            "before": (before, "mean deviation of the ratios", "1"),
            "radius_apc": (radius, "radius δ", "1"),
            "after": (far(after), "mean deviation, censored and centred", "1"),
            "after_alone": (far(alone), "mean deviation, each clipped at Tδ alone", "1"),
            "both": (both, "mean deviations before (up to 2δ) and after, together", "1"),
            "both_raw": (both_raw, "the same of ratios that don't average to 1", "1"),
            "twice": (2 * radius, "2δ", "1"),
            "apc_best": (censored(best), "censored objective at the closed form", "reward"),
            "apc_maximum": (reached, "δT(max A − min A)/2", "reward"),
            "apc_one": (
                radius * total * np.abs(advantage).max(axis=1),
                "δT max|A|, all at one action",
                "reward",
            ),
            "apc_random": (censored(deviation), "censored objective, centred", "reward"),
            "apc_raw": (censored(drawn), "censored objective, not centred", "reward"),
        },
        {},
    )


def _best_radius(certificate: Callable[[jax.Array], jax.Array]) -> jax.Array:
    """Where a concave function of the radius is largest in [0, 2], by golden sections."""

    def shrink(_: Any, ends: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        low, high = ends
        width = GOLDEN * (high - low)
        left, right = high - width, low + width
        at_left, at_right = jax.vmap(certificate)(jnp.stack([left, right]))
        keeps_left = at_left > at_right
        return jnp.where(keeps_left, low, left), jnp.where(keeps_left, right, high)

    ends = (jnp.zeros((), jnp.float64), jnp.asarray(2.0, jnp.float64))
    low, high = jax.lax.fori_loop(0, SECTIONS, shrink, ends)
    return 0.5 * (low + high)


def _spread(advantage: jax.Array, policy: Any) -> tuple[jax.Array, jax.Array]:
    """(max A − min A)/2 of each state, and what the worst action has (1 where all are equal)."""
    reach = jnp.max(advantage, axis=1) - jnp.min(advantage, axis=1)
    worst = advantage == jnp.min(advantage, axis=1, keepdims=True)
    held = jnp.sum(jnp.where(worst, policy, 0.0), axis=1)
    return reach / 2, jnp.where(reach > ROUNDING, held, 1.0)


@jax.jit
def _bounded(processes: cases.Processes) -> dict[str, jax.Array]:
    """Improvements and bounds of each process: of π′, of a mixture, and of the trust-region step."""

    def one(process: cases.Processes) -> dict[str, jax.Array]:
        transition, reward, initial, old, new, share, discount = process

        def solve(policy: jax.Array) -> Any:
            return solve_mdp(transition, reward, policy, discount, initial)

        mixed = (1.0 - share) * old + share * new
        solutions = jax.vmap(solve)(jnp.stack([old, new, mixed]))
        objective, new_visits = solutions.objective, solutions.occupancy[1]
        advantage, visits = solutions.advantage[0], solutions.occupancy[0]
        largest = jnp.max(jnp.abs(advantage))
        expected = jnp.sum(new * advantage, axis=1)
        surrogate, most = jnp.sum(visits * expected), jnp.max(jnp.abs(expected))
        divergence = jnp.sum(jnp.abs(new - old), axis=1) / 2
        far, mean = jnp.max(divergence), jnp.sum(visits * divergence)
        half, held = _spread(advantage, old)
        improvement = (1.0 - discount) * jnp.sum(visits * half)
        radius = theory.trust_region_radius(improvement, largest, discount)
        step = theory.tv_trpo_step(old, advantage, visits, radius)

        def certificate(delta: jax.Array) -> jax.Array:
            gain = theory.tv_trpo_step(old, advantage, visits, delta).surrogate_gain
            return gain - 4.0 * discount * largest * (delta / (1.0 - discount)) ** 2

        bound = theory.improvement_bound_discounted(surrogate, largest, far, discount)
        trust = theory.achiam_bound(surrogate, most, mean, discount)
        slow = theory.kakade_langford_bound(surrogate, most, share, discount)
        return {
            "gain": objective[1] - objective[0],
            "surrogate": surrogate,
            "difference": jnp.sum(new_visits * expected),
            "trpo": bound,
            "trpo_halved": surrogate - (surrogate - bound) / 4.0,
            "achiam": trust,
            "achiam_normalised": surrogate - (surrogate - trust) * (1.0 - discount),
            "mixture_gain": objective[2] - objective[0],
            "mixture": slow,
            "mixture_single": share * surrogate - (share * surrogate - slow) / 2.0,
            "step_gain": solve(step.policy).objective - objective[0],
            "guarantee": theory.guaranteed_gain(improvement, largest, discount),
            "feasible": jnp.all(0.5 * radius <= held),
            "radius": radius,
            "radius_square": (1.0 - discount) * radius,
            "radius_found": _best_radius(certificate),
        }

    return jax.vmap(one)(processes)


BOUNDED = {
    "gain": ("J(π′) − J(π)", "reward"),
    "surrogate": ("surrogate gain, by the old occupancy", "reward"),
    "difference": ("expected advantage, by the new occupancy", "reward"),
    "trpo": ("bound by the largest total variation", "reward"),
    "trpo_halved": ("the same, the ½ of total variation counted twice", "reward"),
    "achiam": ("bound by the mean total variation", "reward"),
    "achiam_normalised": ("the same with a normalised occupancy", "reward"),
    "mixture_gain": ("improvement of the mixture", "reward"),
    "mixture": ("Kakade and Langford's bound of the mixture", "reward"),
    "mixture_single": ("the same with half of the penalty", "reward"),
    "step_gain": ("improvement of the trust-region step", "reward"),
    "guarantee": ("gain that is guaranteed to the step", "reward"),
    "feasible": ("whether the worst actions have δ/2 everywhere", "1"),
    "radius": ("radius of the trust region", "1"),
    "radius_square": ("radius with (1 − γ)² for 1 − γ", "1"),
    "radius_found": ("radius at which the bound is largest", "1"),
}


def _described(found: dict[str, Any], prefix: str, words: dict[str, Any]) -> dict[str, Any]:
    return {
        prefix + name: (np.asarray(found[name]).astype(np.float64), *words[name]) for name in found
    }


def _processes(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Bounds of all processes, also of those that are simulated: one program."""
    case_key, run_key = (jax.random.fold_in(key, place) for place in range(2))
    given, kinds = cases.processes(case_key, config.region_processes)
    simulated = _simulated_processes(given)
    everything = jax.tree.map(lambda *parts: np.concatenate(parts), given, simulated)
    solved = {name: np.asarray(value) for name, value in _bounded(everything).items()}
    dim, count = "region_process", len(kinds)
    coords = {
        "region_kind": (dim, kinds),
        "region_discount": (dim, given.discount),
        "region_share": (dim, given.mixture),
    }
    found = {name: value[:count] for name, value in solved.items()}
    exact = {name: value[count:] for name, value in solved.items()}
    return xr.merge(
        [
            _dataset(dim, _described(found, "", BOUNDED), coords),
            _simulated(config, run_key, repeat, simulated, exact),
        ]
    )


@jax.jit
def _bounded_trees(trees: cases.Trees) -> dict[str, jax.Array]:
    """The same without discount, on trees of H steps."""

    def one(tree: cases.Trees) -> dict[str, jax.Array]:
        start, end = (solve_tree(log, tree.leaf_reward) for log in (tree.old, tree.new))
        old, new = jnp.exp(tree.old), jnp.exp(tree.new)
        steps = tree.horizon.astype(jnp.float64)
        advantage, visits = start.advantage, start.reach
        largest = jnp.max(jnp.abs(advantage))
        surrogate = jnp.sum(visits * jnp.sum(new * advantage, axis=1))
        far = jnp.max(jnp.sum(jnp.abs(new - old), axis=1)) / 2
        half, held = _spread(advantage, old)
        improvement = jnp.sum(visits * half)
        radius = theory.trust_region_radius_finite(improvement, largest, tree.horizon)
        radius = jnp.minimum(radius, 2.0)
        step = theory.tv_trpo_step(old, advantage, visits, radius)

        def certificate(delta: jax.Array) -> jax.Array:
            gain = theory.tv_trpo_step(old, advantage, visits, delta).surrogate_gain
            return gain - 2.0 * steps * (steps - 1.0) * largest * (delta / 2.0) ** 2

        bound = theory.improvement_bound_finite(surrogate, largest, far, tree.horizon)
        # A step without probability: its logarithm is −∞, and stays out of gradients.
        stepped = solve_tree(jnp.log(step.policy), tree.leaf_reward)
        more = jnp.maximum(tree.horizon, 2)
        return {
            "gain": end.objective - start.objective,
            "surrogate": surrogate,
            "bound": bound,
            "bound_halved": surrogate - (surrogate - bound) / 4.0,
            "bound_loose": surrogate - 2.0 * steps * (steps - 1.0) * largest * far**2,
            "step_gain": stepped.objective - start.objective,
            "guarantee": theory.guaranteed_gain_finite(improvement, largest, more),
            "proper": jnp.all(0.5 * radius <= held) & (tree.horizon > 1) & (radius < 2.0),
            "radius": radius,
            "radius_square": radius * (steps - 1.0) / steps,
            "radius_found": _best_radius(certificate),
        }

    return jax.vmap(one)(trees)


BOUNDED_TREES = {
    "gain": ("J(π′) − J(π), no discount", "reward"),
    "surrogate": ("surrogate gain, by the old policy's prefixes", "reward"),
    "bound": ("bound for H steps, as a sum", "reward"),
    "bound_halved": ("the same, the ½ of total variation counted twice", "reward"),
    "bound_loose": ("bound for H steps, in closed form", "reward"),
    "step_gain": ("improvement of the trust-region step", "reward"),
    "guarantee": ("gain that is guaranteed to the step", "reward"),
    "proper": ("whether H > 1 and the worst actions have δ/2 everywhere", "1"),
    "radius": ("radius of the trust region", "1"),
    "radius_square": ("radius with H² for H(H − 1)", "1"),
    "radius_found": ("radius at which the bound is largest", "1"),
}


def _trees(config: Config, key: jax.Array) -> xr.Dataset:
    given, kinds = cases.trees(key, config.region_trees)
    found = _bounded_trees(given)
    dim = "region_tree"
    coords = {"region_tree_kind": (dim, kinds), "region_horizon": (dim, given.horizon)}
    return _dataset(dim, _described(found, "tree_", BOUNDED_TREES), coords)


def _simulated(
    config: Config,
    key: jax.Array,
    repeat: Repeat,
    given: cases.Processes,
    solved: dict[str, np.ndarray],
) -> xr.Dataset:
    """Differences of mean returns of new and old policies that meet the same random numbers."""

    def one(params: dict[str, jax.Array], seed_key: jax.Array) -> jax.Array:
        def improved(process: cases.Processes) -> jax.Array:
            def mean(policy: jax.Array) -> jax.Array:
                returns = simulate_returns(
                    seed_key,
                    process.transition,
                    process.reward,
                    policy,
                    process.discount,
                    process.initial,
                    config.region_episodes,
                    SIMULATED_STEPS,
                )
                return jnp.mean(returns)

            old, new = jax.vmap(mean)(jnp.stack([process.old, process.new]))
            return new - old

        return jax.vmap(improved)(jax.tree.map(jnp.asarray, given))

    found = repeat("region-returns", one, {}, jax.random.split(key, config.region_seeds))
    (name,) = found.data_vars
    dim = "region_simulated_process"
    words = {name: BOUNDED[name] for name in ("gain", "surrogate", "trpo", "trpo_halved")}
    exact = _described({name: solved[name] for name in words}, "simulated_", words)
    returns = {"simulated": (found[name].values, "simulated J(π′) − J(π)", "reward")}
    coords = {dim: list(SIMULATED)}
    return xr.merge([_dataset(("region_seed", dim), returns, coords), _dataset(dim, exact, coords)])


def _simulated_processes(given: cases.Processes) -> cases.Processes:
    """The worst case by a mixture, and two random processes: from uniform policies to greedier ones."""
    worst = cases.worst_process("mixture", SIMULATED_MIXTURE, SIMULATED_DISCOUNT)
    mixed = (1 - SIMULATED_MIXTURE) * worst.old + SIMULATED_MIXTURE * worst.new
    rows = [worst._replace(new=mixed)]
    for place in range(len(SIMULATED) - 1):
        process = jax.tree.map(lambda part, place=place: part[place], given)
        weight = np.exp(SIMULATED_GREED * process.reward)
        rows.append(
            process._replace(
                old=np.full(weight.shape, 1 / cases.ACTIONS),
                new=weight / weight.sum(axis=1, keepdims=True),
                discount=worst.discount,
            )
        )
    return jax.tree.map(lambda *parts: np.stack(parts), *rows)


def _vanishing() -> xr.Dataset:
    """Radii per unit of M/(Hε) against the horizon, 1/(1 − γ) steps or exactly H."""

    @jax.jit
    @jax.vmap
    def radii(length: jax.Array) -> tuple[jax.Array, jax.Array]:
        return (
            theory.trust_region_radius(1.0, 1.0, 1.0 - 1.0 / length),
            theory.trust_region_radius_finite(length, 1.0, length),
        )

    discounted, finite = radii(LENGTHS)
    return _dataset(
        "region_length",
        {
            "radius_discounted": (discounted, "radius with discount 1 − 1/H", "1"),
            "radius_finite": (finite, "radius in H steps without discount", "1"),
        },
        {"region_length": ("region_length", LENGTHS, {"long_name": "horizon", "units": "steps"})},
    )
