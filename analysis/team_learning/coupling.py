"""What coupling does to a team: regret against budget, crossovers, floors and measures of alignment.

The default task: K = 3 agents of A = 4 actions, gap Δ = .6, own noise 1 and outcome noise 1/√3. Budgets
N are in trajectories; regret is in the team's reward. `own` agents are paid their own (process) rewards,
`shared` ones and the joint learner the team's outcome.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from boundlab.analysis.datasets import describe
from boundlab.analysis.team_learning.config import Config
from boundlab.analysis.team_learning.coupling_claims import CLAIMS as CLAIMS
from boundlab.experiment import Repeat
from boundlab.models import teams
from boundlab.theory import team_learning as theory

ACTIONS, AGENTS, GAP, ORDER = 4, 3, 0.6, 2
LEARNERS = ("joint", "own", "shared")
KINDS = ("parity", "order", "needle")
BUDGETS = np.round(np.geomspace(64.0, 65536.0, 41), 6)
SIMULATED_BUDGETS = np.array([64.0, 256.0, 1024.0])
SIMULATED_WEIGHTS = np.array([0.0, 0.1, 0.2, 0.25, 0.35, 0.45, 0.6])
# Couplings with a crossover above A^K, and how far from it, as a factor, learners are compared.
CROSSING_WEIGHTS = np.array([0.25, 0.35])
APART = 1.5
# Couplings of the floors, away from the ties at Δ/K = .2, qΔ/K = .4 and A^{q−1}Δ/K = .8.
STRENGTHS = np.round(np.linspace(0.01, 1.11, 45), 10)
ORDER_WEIGHTS = STRENGTHS[[8, 12, 20, 24, 28, 36, 40]]
PROGRAMMED = STRENGTHS[[8, 24, 40]]
# Noise at which learners make no errors any more with as many trajectories as joint actions.
QUIET, FIRST_BUDGET = 0.01, 64
# Outcome noise at which the exploration of teammates is most of a shared reward's noise.
JUDGE = 0.3
# Regrets of the joint learner below the first, and of own rewards less than the second above their
# floor, are too rare to measure to a few per cent.
LEAST_REGRET, LEAST_ABOVE_FLOOR = 0.1, 0.005
ACCURACIES = np.array([0.05, 0.1, 0.2, 0.4])


def run(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Exact and simulated regrets, crossovers, floors and alignments as one dataset."""
    weights = np.round(np.linspace(0.0, 0.8, config.coupling_weights), 10)
    exact = _regrets(weights)
    simulated = _simulated(config, exact, key, repeat)
    parts = [exact, simulated, _expected(exact), _alignments()]
    return describe(xr.merge(parts), "reward")


def _task(weight: jax.Array | float, outcome: jax.Array | float | None = None) -> teams.ParityTask:
    return teams.ParityTask(ACTIONS, AGENTS, GAP, weight, 1.0, outcome)


def _curves(weights: np.ndarray, learner: str, outcome: float) -> np.ndarray:
    """Exact regret (weights, budgets). All numbers are batched alike: one program serves all teams."""
    batch = [np.full(len(weights), number) for number in (GAP, 1.0, outcome)]
    curves = jax.vmap(
        lambda w, gap, own, other: theory.team_regret(
            BUDGETS, teams.ParityTask(ACTIONS, AGENTS, gap, w, own, other), learner
        )
    )(weights, *batch)
    return np.asarray(curves)


def _regrets(weights: np.ndarray) -> xr.Dataset:
    """Exact regrets of the learners over coupling and budget, and the budget crossover."""
    curves = [_curves(weights, learner, AGENTS**-0.5) for learner in LEARNERS]
    judged = [_curves(weights, learner, JUDGE)[:, 0] for learner in ("shared", "orthogonal")]
    crossing = jax.jit(
        lambda ws: jax.lax.map(lambda w: theory.budget_crossover(_task(w), "own"), ws)
    )(jnp.asarray(weights))
    dims = ("coupling_learner", "coupling_weight", "coupling_budget")
    return xr.Dataset(
        {
            "coupling_regret_theory": (
                dims,
                np.stack(curves),
                {"long_name": "exact expected regret"},
            ),
            "coupling_crossover": (
                "coupling_weight",
                np.asarray(crossing),
                {
                    "long_name": "budget crossover of joint and own learners",
                    "units": "trajectories",
                },
            ),
            "coupling_judged_theory": (
                "coupling_weight",
                judged[0],
                {"long_name": "exact regret, shared reward of a better judge, 64 trajectories"},
            ),
            "coupling_judged_alone": (
                "coupling_weight",
                judged[1],
                {"long_name": "the same without the teammates' variance"},
            ),
        },
        coords={
            "coupling_learner": list(LEARNERS),
            "coupling_weight": weights,
            "coupling_budget": BUDGETS,
        },
    )


def _expected(exact: xr.Dataset) -> xr.Dataset:
    """Regrets at the simulated points by the theory and by wrong ones; NaN where too rare to measure."""
    found = exact["coupling_regret_theory"].sel(
        coupling_weight=SIMULATED_WEIGHTS, coupling_budget=SIMULATED_BUDGETS
    )
    joint, own = (found.sel(coupling_learner=name, drop=True) for name in LEARNERS[:2])
    floor = (found["coupling_weight"] - GAP / AGENTS).clip(0.0)
    often, frequent = joint >= LEAST_REGRET, (floor > 1e-9) & (own > floor + LEAST_ABOVE_FLOOR)
    cases = {
        "joint": (joint.where(often), "expected regret, joint learner"),
        "joint_additive": (
            joint.sel(coupling_weight=0.0, drop=True).where(often),
            "the same without the coupling",
        ),
        "own": (own.where(frequent), "expected regret, own rewards"),
        # Without coupling the regret is Δq.
        "own_missed": (
            (floor + own.sel(coupling_weight=0.0, drop=True)).where(frequent),
            "the same if errors never solved the parity",
        ),
    }
    names = {
        "coupling_weight": "coupling_simulated_weight",
        "coupling_budget": "coupling_simulated_budget",
    }
    variables = {}
    for name, (values, words) in cases.items():
        renamed = values.transpose("coupling_weight", "coupling_budget").rename(names)
        variables[f"coupling_expected_{name}"] = renamed.assign_attrs(long_name=words)
    return xr.Dataset(variables)


def _simulated(config: Config, exact: xr.Dataset, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Mean regrets of each key's trials: joint, own and shared on parity, floors of order-q coupling."""
    crossing = exact["coupling_crossover"].sel(coupling_weight=SIMULATED_WEIGHTS).values
    crossing = np.where(np.isfinite(crossing), crossing, BUDGETS[0])
    beside = np.stack([crossing / APART, crossing * APART], axis=1)
    budgets = np.concatenate([np.tile(SIMULATED_BUDGETS, (len(beside), 1)), beside], axis=1)
    plays, raw = config.coupling_trials, config.coupling_raw_trials

    def one(params: dict[str, jax.Array], key: jax.Array) -> dict[str, jax.Array]:
        case = params["case"]
        weight = jnp.asarray(SIMULATED_WEIGHTS)[case]
        task = _task(weight)
        keys = [jax.random.fold_in(key, i) for i in range(4)]

        def mean_regret(learner: str, key: jax.Array) -> jax.Array:
            return jax.vmap(
                lambda n: jnp.mean(teams.simulate_regret(key, task, learner, n, plays, "grouped"))
            )(jnp.asarray(budgets)[case])

        # By the default outcome and by a better judge's.
        shared = jax.vmap(
            lambda noise: jnp.mean(
                teams.simulate_regret(
                    keys[2], _task(weight, noise), "shared", FIRST_BUDGET, raw, "raw"
                )
            )
        )(jnp.asarray([AGENTS**-0.5, JUDGE], jnp.float64))
        strength = jnp.asarray(ORDER_WEIGHTS)[case]
        quiet = teams.OrderTask(ACTIONS, AGENTS, GAP, strength, ORDER, QUIET)
        floors = teams.simulate_regret(keys[3], quiet, "orthogonal", FIRST_BUDGET, raw, "raw")
        return {
            "joint": mean_regret("joint", keys[0]),
            "own": mean_regret("own", keys[1]),
            "shared": shared[0],
            "judged": shared[1],
            "order": jnp.mean(floors),
        }

    keys = jax.random.split(key, config.coupling_seeds)
    found = repeat("coupling-regrets", one, {"case": np.arange(len(SIMULATED_WEIGHTS))}, keys)
    cells = ("coupling_simulated_weight", "coupling_seed", "coupling_simulated_budget")
    sides = ("coupling_crossing_weight", "coupling_seed", "coupling_side")
    few = len(SIMULATED_BUDGETS)
    crossed = np.isin(SIMULATED_WEIGHTS, CROSSING_WEIGHTS)
    variables: dict[str, Any] = {}
    for name, words in (("joint", "joint learner"), ("own", "own rewards")):
        values = found[name].values
        variables[f"coupling_regret_{name}"] = (
            cells,
            values[..., :few],
            {"long_name": f"simulated regret, {words}"},
        )
        variables[f"coupling_beside_{name}"] = (
            sides,
            values[crossed][..., few:],
            {"long_name": f"simulated regret beside the crossover, {words}"},
        )
    variables["coupling_regret_shared"] = (
        cells[:2],
        found["shared"].values,
        {"long_name": "simulated regret, shared reward, 64 trajectories"},
    )
    variables["coupling_judged"] = (
        cells[:2],
        found["judged"].values,
        {"long_name": "simulated regret, shared reward of a better judge"},
    )
    variables["coupling_order_regret"] = (
        ("coupling_order_simulated", "coupling_seed"),
        found["order"].values,
        {"long_name": "simulated regret of learners without errors, order-q coupling"},
    )
    return xr.Dataset(
        variables,
        coords={
            "coupling_simulated_weight": SIMULATED_WEIGHTS,
            "coupling_simulated_budget": SIMULATED_BUDGETS,
            "coupling_crossing_weight": CROSSING_WEIGHTS,
            "coupling_side": ["below", "above"],
            "coupling_order_simulated": ORDER_WEIGHTS,
        },
    )


def _alignments() -> xr.Dataset:
    """Floors, variance shares and sup-distances of whole reward tensors against closed forms."""
    own = teams.own_rewards(_task(0.0))

    def tensors(weight: jax.Array) -> dict[str, jax.Array]:
        order = teams.OrderTask(ACTIONS, AGENTS, GAP, weight, ORDER)
        needle = teams.NeedleTask(ACTIONS, AGENTS, weight)
        return {
            "parity": teams.reward_tensor(_task(weight)),
            "order": teams.reward_tensor(order),
            "needle": teams.reward_tensor(needle),
        }

    def forms(weight: jax.Array) -> dict[str, theory.TaskAlignment]:
        return {
            "parity": theory.parity_alignment(ACTIONS, AGENTS, GAP, weight),
            "order": theory.order_q_alignment(ACTIONS, AGENTS, ORDER, GAP, weight),
            "needle": theory.needle_alignment(ACTIONS, AGENTS, weight),
        }

    def measured(tensor: jax.Array) -> tuple[jax.Array, jax.Array]:
        floors = [theory.bias_floor(tensor, "own", own), theory.bias_floor(tensor, "shared")]
        return jnp.stack(floors), theory.anova_alignment(tensor)

    @jax.jit
    @jax.vmap
    def all_of(weight: jax.Array) -> tuple[dict[str, jax.Array], jax.Array, jax.Array, jax.Array]:
        rewards, closed = tensors(weight), [forms(weight)[kind] for kind in KINDS]
        floors, shares = jax.vmap(measured)(jnp.stack([rewards[kind] for kind in KINDS]))
        closed_floors = jnp.stack([jnp.stack([f.own_floor, f.shared_floor]) for f in closed])
        numbers = jnp.stack([shares, jnp.stack([f.anova for f in closed])])
        return (
            rewards,
            jnp.stack([floors, closed_floors]),
            numbers,
            jnp.stack([f.sup for f in closed]),
        )

    rewards, floors, shares, sups = jax.tree.map(np.asarray, all_of(jnp.asarray(STRENGTHS)))
    kinds = list(KINDS)
    dims = ("coupling_strength", "coupling_kind")
    # Rounding leaves 1e-17 of floors that are 0.
    floors = np.round(floors, 13)
    # Wrong forms, for controls: one switch instead of q; a share that forgets the number of agents.
    single = np.broadcast_to(
        np.maximum(0.0, STRENGTHS - GAP / AGENTS)[:, None, None], floors[:, 0].shape
    )
    forgetful = shares[:, 1].copy()
    forgetful[:, 0] = 1.0 / (1.0 + STRENGTHS**2 / GAP**2)
    signals = (*dims, "coupling_signal")
    unit = {"units": "1"}
    dataset = xr.Dataset(
        {
            "coupling_floor": (signals, floors[:, 0], {"long_name": "floor of the tensor"}),
            "coupling_floor_theory": (
                signals,
                floors[:, 1],
                {"long_name": "floor in closed form"},
            ),
            "coupling_floor_single": (
                signals,
                single,
                {"long_name": "floor if one switch were enough"},
            ),
            "coupling_share": (
                dims,
                shares[:, 0],
                {"long_name": "first-order share of the variance", **unit},
            ),
            "coupling_share_theory": (
                dims,
                shares[:, 1],
                {"long_name": "first-order share in closed form", **unit},
            ),
            "coupling_share_forgetful": (
                dims,
                forgetful,
                {"long_name": "first-order share without the number of agents", **unit},
            ),
        },
        coords={dims[0]: STRENGTHS, dims[1]: kinds, "coupling_signal": ["own", "shared"]},
    )
    places = np.flatnonzero(np.isin(STRENGTHS, PROGRAMMED))
    found = [
        [float(theory.sup_alignment(rewards[kind][place])) for kind in kinds] for place in places
    ]
    own_floor = dataset["coupling_floor"].sel(
        coupling_kind="parity", coupling_signal="own", drop=True
    )
    return xr.merge([dataset, _sups(np.array(found), sups[places], kinds), _feasible(own_floor)])


def _sups(found: np.ndarray, closed: np.ndarray, kinds: list[str]) -> xr.Dataset:
    """Sup-distances by linear programs and in closed form, and the rule of 2α for parity."""
    dims = ("coupling_programmed", "coupling_kind")
    # What is left of parity and order-q rewards by the agents' own, with no constant taken off.
    raw = np.repeat(PROGRAMMED[:, None], len(kinds), axis=1)
    left = np.maximum(0.0, PROGRAMMED - GAP / AGENTS)
    return xr.Dataset(
        {
            "coupling_sup": (dims, found, {"long_name": "sup-distance by linear program"}),
            "coupling_sup_theory": (dims, closed, {"long_name": "sup-distance in closed form"}),
            "coupling_sup_raw": (dims, raw, {"long_name": "sup-distance, constant not removed"}),
            "coupling_left": (dims[:1], left, {"long_name": "floor, parity"}),
            "coupling_left_bound": (
                dims[:1],
                2.0 * found[:, 0],
                {"long_name": "twice the sup-distance, parity"},
            ),
            "coupling_left_half_bound": (
                dims[:1],
                found[:, 0],
                {"long_name": "the sup-distance, parity"},
            ),
        },
        coords={dims[0]: PROGRAMMED, dims[1]: kinds},
    )


def _feasible(floor: xr.DataArray) -> xr.Dataset:
    """The largest coupling at which a team can reach accuracy ε, and what the rule 2α < ε allows."""
    above = STRENGTHS > GAP / AGENTS
    dim = "coupling_accuracy"
    # The floor is linear above Δ/K, so that interpolation is exact.
    reached = np.interp(ACCURACIES, floor.values[above], STRENGTHS[above])
    values = {
        "": (reached, "coupling at which the floor reaches the accuracy"),
        "_theory": (ACCURACIES + GAP / AGENTS, "accuracy plus gap over agents"),
        "_rule": (ACCURACIES, "coupling at which twice the sup-distance reaches the accuracy"),
    }
    return xr.Dataset(
        {
            f"coupling_feasible{name}": (dim, numbers, {"long_name": words})
            for name, (numbers, words) in values.items()
        },
        coords={dim: ACCURACIES},
    )
