"""What coupling does to a team: regret against budget, crossovers, floors and measures of alignment.

The default task: K = 3 agents of A = 4 actions, gap Δ = .6, own noise 1 and outcome noise 1/√3. Budgets
N are in trajectories; regret is in the team's reward. `own` agents are paid their own (process) rewards,
`shared` ones and the joint learner the team's outcome.
"""

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
LEARNERS = ("joint", "own", "shared", "orthogonal")
BUDGETS = np.round(np.geomspace(64.0, 65536.0, 41), 6)
SIMULATED_BUDGETS = np.array([64.0, 256.0, 1024.0])
SHARED_BUDGETS = (64, 256)
SIMULATED_WEIGHTS = np.array([0.0, 0.1, 0.2, 0.25, 0.35, 0.45, 0.6])
# Couplings with a crossover above A^K, and how far from it, as a factor, learners are compared.
CROSSING_WEIGHTS = np.array([0.25, 0.35])
APART = 1.5
# Couplings of the floors, away from the ties at Δ/K = .2, qΔ/K = .4 and A^{q−1}Δ/K = .8.
STRENGTHS = np.round(np.linspace(0.01, 1.11, 45), 10)
ORDER_WEIGHTS = STRENGTHS[[8, 12, 20, 24, 28, 36, 40]]
PROGRAMMED = STRENGTHS[[8, 24, 40]]
# Noise at which learners make no errors any more with as many trajectories as joint actions.
QUIET, QUIET_BUDGET = 0.01, 64
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
    parts = [exact, simulated, _expected(exact), _alignments(), _programs()]
    return describe(xr.merge(parts), "reward")


def _task(weight: jax.Array | float, outcome: float | None = None) -> teams.ParityTask:
    return teams.ParityTask(ACTIONS, AGENTS, GAP, weight, 1.0, outcome)


def _regrets(weights: np.ndarray) -> xr.Dataset:
    """Exact regrets of four learners over coupling and budget, floors, and the budget crossover."""
    curves = [
        jax.vmap(lambda w, name=name: theory.team_regret(BUDGETS, _task(w), name))(weights)
        for name in LEARNERS
    ]
    crossing = jax.jit(
        lambda ws: jax.lax.map(lambda w: theory.budget_crossover(_task(w), "own"), ws)
    )(jnp.asarray(weights))
    dims = ("coupling_learner", "coupling_weight", "coupling_budget")
    return xr.Dataset(
        {
            "coupling_regret_theory": (
                dims,
                np.stack([np.asarray(curve) for curve in curves]),
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
    floor = np.maximum(0.0, found["coupling_weight"] - GAP / AGENTS)
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
    judged = {
        "judged": ("shared", "expected regret, shared reward of a better judge"),
        "judged_alone": ("orthogonal", "the same without the teammates' variance"),
    }
    for name, (learner, words) in judged.items():
        expected = jax.vmap(
            lambda w, learner=learner: theory.team_regret(QUIET_BUDGET, _task(w, JUDGE), learner)
        )(CROSSING_WEIGHTS)
        variables[f"coupling_expected_{name}"] = (
            "coupling_crossing_weight",
            np.asarray(expected),
            {"long_name": words},
        )
    return xr.Dataset(variables, coords={"coupling_crossing_weight": CROSSING_WEIGHTS})


def _simulated(config: Config, exact: xr.Dataset, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Mean regrets of each key's trials: joint, own and shared on parity, floors of order-q coupling."""
    crossing = exact["coupling_crossover"].sel(coupling_weight=SIMULATED_WEIGHTS).values
    crossing = np.where(np.isfinite(crossing), crossing, BUDGETS[0])
    beside = np.stack([crossing / APART, crossing * APART], axis=1)
    budgets = np.concatenate([np.tile(SIMULATED_BUDGETS, (len(beside), 1)), beside], axis=1)
    plays, raw = config.coupling_trials, config.coupling_raw_trials

    def one(params: dict[str, jax.Array], key: jax.Array) -> dict[str, jax.Array]:
        case = params["case"]
        task = _task(jnp.asarray(SIMULATED_WEIGHTS)[case])
        keys = [jax.random.fold_in(key, i) for i in range(6)]

        def mean_regret(learner: str, method: str, key: jax.Array) -> jax.Array:
            return jax.vmap(
                lambda n: jnp.mean(teams.simulate_regret(key, task, learner, n, plays, method))
            )(jnp.asarray(budgets)[case])

        shared = [
            jnp.mean(
                teams.simulate_regret(jax.random.fold_in(keys[2], n), task, "shared", n, raw, "raw")
            )
            for n in SHARED_BUDGETS
        ]
        judged = _task(jnp.asarray(SIMULATED_WEIGHTS)[case], JUDGE)
        better = teams.simulate_regret(keys[5], judged, "shared", QUIET_BUDGET, 4 * raw, "raw")
        weight = jnp.asarray(ORDER_WEIGHTS)[case]
        quiet = teams.OrderTask(ACTIONS, AGENTS, GAP, weight, ORDER, QUIET)
        floors = [
            jnp.mean(teams.simulate_regret(key, quiet, learner, QUIET_BUDGET, raw, method))
            for key, learner, method in (
                (keys[3], "own", "sufficient"),
                (keys[4], "orthogonal", "raw"),
            )
        ]
        return {
            "joint": mean_regret("joint", "grouped", keys[0]),
            "own": mean_regret("own", "sufficient", keys[1]),
            "shared": jnp.stack(shared),
            "judged": jnp.mean(better),
            "order": jnp.stack(floors),
        }

    keys = jax.random.split(key, config.coupling_seeds)
    found = repeat("coupling-regrets", one, {"case": np.arange(len(SIMULATED_WEIGHTS))}, keys)
    cells = ("coupling_simulated_weight", "coupling_seed", "coupling_simulated_budget")
    sides = ("coupling_crossing_weight", "coupling_seed", "coupling_side")
    few = len(SIMULATED_BUDGETS)
    crossed = np.isin(SIMULATED_WEIGHTS, CROSSING_WEIGHTS)
    variables = {}
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
        (*cells[:2], "coupling_shared_budget"),
        found["shared"].values,
        {"long_name": "simulated regret, shared reward"},
    )
    variables["coupling_judged"] = (
        ("coupling_crossing_weight", "coupling_seed"),
        found["judged"].values[crossed],
        {"long_name": "simulated regret, shared reward of a better judge"},
    )
    variables["coupling_order_regret"] = (
        ("coupling_order_simulated", "coupling_seed", "coupling_signal"),
        found["order"].values,
        {"long_name": "simulated regret of learners without errors, order-q coupling"},
    )
    return xr.Dataset(
        variables,
        coords={
            "coupling_simulated_weight": SIMULATED_WEIGHTS,
            "coupling_simulated_budget": SIMULATED_BUDGETS,
            "coupling_shared_budget": np.array(SHARED_BUDGETS, dtype=float),
            "coupling_crossing_weight": CROSSING_WEIGHTS,
            "coupling_side": ["below", "above"],
            "coupling_order_simulated": ORDER_WEIGHTS,
            "coupling_signal": ["own", "shared"],
        },
    )


def _alignments() -> xr.Dataset:
    """Floors and variance shares of whole reward tensors against closed forms, over the coupling."""
    own = teams.own_rewards(_task(0.0))

    def both(weight: jax.Array) -> dict[str, jax.Array]:
        tasks = {
            "parity": _task(weight),
            "order": teams.OrderTask(ACTIONS, AGENTS, GAP, weight, ORDER),
        }
        forms = {
            "parity": theory.parity_alignment(ACTIONS, AGENTS, GAP, weight),
            "order": theory.order_q_alignment(ACTIONS, AGENTS, ORDER, GAP, weight),
        }
        found = {}
        for kind, form in forms.items():
            tensor = teams.reward_tensor(tasks[kind])
            floors = [theory.bias_floor(tensor, "own", own), theory.bias_floor(tensor, "shared")]
            found[f"{kind}_floor"] = jnp.stack(floors)
            found[f"{kind}_floor_theory"] = jnp.stack([form.own_floor, form.shared_floor])
            found[f"{kind}_anova"] = theory.anova_alignment(tensor)
            found[f"{kind}_anova_theory"] = form.anova
        return found

    found = jax.jit(jax.vmap(both))(jnp.asarray(STRENGTHS))
    # Rounding leaves 1e-17 of floors that are 0.
    arrays = {name: np.round(np.asarray(value), 13) for name, value in found.items()}
    # Wrong forms, for controls: one switch instead of q, and a share that forgets the number of agents.
    single = np.maximum(0.0, STRENGTHS - GAP / AGENTS)
    arrays["order_floor_single"] = np.stack([single, single], axis=1)
    arrays["parity_anova_single"] = 1.0 / (1.0 + STRENGTHS**2 / GAP**2)
    words = {
        "floor": "floor of the tensor",
        "floor_theory": "floor in closed form",
        "floor_single": "floor if one switch were enough",
        "anova": "first-order share of the variance",
        "anova_theory": "first-order share in closed form",
        "anova_single": "the same as for one agent",
    }
    variables = {}
    for name, values in arrays.items():
        kind, what = name.split("_", 1)
        dims = ("coupling_strength", "coupling_signal")[: values.ndim]
        units = {"units": "1"} if what.startswith("anova") else {}
        described = {"long_name": f"{words[what]}, {kind} coupling", **units}
        variables[f"coupling_{name}"] = (dims, values, described)
    coords = {"coupling_strength": STRENGTHS, "coupling_signal": ["own", "shared"]}
    dataset = xr.Dataset(variables, coords=coords)
    return dataset.merge(_feasible(dataset["coupling_parity_floor"].sel(coupling_signal="own")))


def _feasible(floor: xr.DataArray) -> xr.Dataset:
    """The largest coupling at which a team can reach accuracy ε, and what the rule 2α < ε allows."""
    above = STRENGTHS > GAP / AGENTS
    dim = "coupling_accuracy"
    return xr.Dataset(
        {
            # The floor is linear above Δ/K, so that interpolation is exact.
            "coupling_feasible": (
                dim,
                np.interp(ACCURACIES, floor.values[above], STRENGTHS[above]),
                {"long_name": "coupling at which the floor reaches the accuracy"},
            ),
            "coupling_feasible_theory": (
                dim,
                ACCURACIES + GAP / AGENTS,
                {"long_name": "accuracy plus gap over agents"},
            ),
            "coupling_feasible_rule": (
                dim,
                ACCURACIES,
                {"long_name": "coupling at which twice the sup-distance reaches the accuracy"},
            ),
        },
        coords={dim: ACCURACIES},
    )


def _programs() -> xr.Dataset:
    """Sup-distances of parity, order-q and needle tensors by linear programs."""
    rows = []
    for weight in PROGRAMMED.tolist():
        tasks = (
            _task(weight),
            teams.OrderTask(ACTIONS, AGENTS, GAP, weight, ORDER),
            teams.NeedleTask(ACTIONS, AGENTS, weight),
        )
        forms = (
            theory.parity_alignment(ACTIONS, AGENTS, GAP, weight),
            theory.order_q_alignment(ACTIONS, AGENTS, ORDER, GAP, weight),
            theory.needle_alignment(ACTIONS, AGENTS, weight),
        )
        pairs = [
            (theory.sup_alignment(teams.reward_tensor(task)), form.sup)
            for task, form in zip(tasks, forms, strict=True)
        ]
        rows.append([[float(number) for number in pair] for pair in pairs])
    found = np.array(rows)
    dims = ("coupling_programmed", "coupling_kind")
    # What is left of each reward by its own additive part, with no constant taken off.
    raw = np.repeat(PROGRAMMED[:, None], found.shape[1], axis=1)
    floors = np.maximum(0.0, PROGRAMMED - GAP / AGENTS)
    return xr.Dataset(
        {
            "coupling_sup": (dims, found[..., 0], {"long_name": "sup-distance by linear program"}),
            "coupling_sup_theory": (
                dims,
                found[..., 1],
                {"long_name": "sup-distance in closed form"},
            ),
            "coupling_sup_raw": (dims, raw, {"long_name": "sup-distance, constant not removed"}),
            "coupling_parity_bound": (
                dims[:1],
                2.0 * found[:, 0, 0],
                {"long_name": "twice the sup-distance, parity"},
            ),
            "coupling_parity_half_bound": (
                dims[:1],
                found[:, 0, 0],
                {"long_name": "the sup-distance, parity"},
            ),
            "coupling_parity_left": (dims[:1], floors, {"long_name": "floor, parity"}),
        },
        coords={dims[0]: PROGRAMMED, dims[1]: ["parity", "order", "needle"]},
    )
