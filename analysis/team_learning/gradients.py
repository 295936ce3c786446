"""Policy gradients of one agent and of teams: speed at the start, noise, hitting times, symmetry.

The slopes, moments and times in closed form beside gradients by automatic differentiation, their flow by
Runge-Kutta steps, and single trajectories. Learners are paid the team's reward but where called own.
"""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from scipy.integrate import solve_ivp

from boundlab.analysis.datasets import describe
from boundlab.analysis.team_learning.config import Config
from boundlab.analysis.team_learning.gradients_claims import CLAIMS as CLAIMS
from boundlab.experiment import Repeat
from boundlab.models import teams
from boundlab.theory import team_learning as theory

# The task of all that isn't swept: actions, agents, gap and coupling.
ACTIONS, AGENTS, GAP, COUPLING = 4, 3, 0.6, 0.35
# Sizes (A, K) of the rewards whose slopes are compared.
SIZES = ((4, 3), (3, 2))
PARITY_COUPLINGS = (0.1, 0.35, 1.0)
# Alignments of rewards that are close to the threshold, in units of it.
NEAR = (0.6, 0.8, 1.25, 1.6)
# Length of the one step along the exact gradient after which it is seen who gained more.
SOON = 0.01
LEVELS = np.array([0.5, 0.9, 0.95])
OWN_NOISE = 0.3
LOGIT_NOISE = 1e-2
# Steps of every flow on the task: one compilation serves all of them.
STEPS = 3000
HORIZON = 3000.0
# The reduced flow goes on to here, in longer steps.
LATE = 30_000.0
# When learners with noise on their first logits are looked at; steps are of length 1.
ESCAPED = 1000.0
SHOWN = np.unique(np.append(np.geomspace(1, STEPS, 28).round(), ESCAPED)).astype(int)


def run(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Slopes, hitting times, the symmetric flow, and what single trajectories and noise make of them."""
    tensor_key, run_key = jax.random.split(key)
    parts = [
        _speeds(config, tensor_key),
        _hitting_times(),
        _symmetric(),
        _simulated(config, run_key, repeat),
    ]
    return describe(xr.merge(parts), "reward")


def _task_reward(
    actions: int, agents: int, coupling: float, coupled: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    """(1/K)Σμ(a_k) + coupling·g(a), g given as a function of the actions (K, A, …, A)."""
    places = np.indices((actions,) * agents)
    return -GAP * (places > 0).mean(axis=0) + coupling * coupled(places)


def _parity(actions: int, agents: int, coupling: float) -> np.ndarray:
    return _task_reward(actions, agents, coupling, lambda a: a.sum(axis=0) % actions == 1)


def _rewards(config: Config, key: jax.Array, actions: int, agents: int) -> dict[str, np.ndarray]:
    """Rewards of one team size by name: the tasks, and random ones of a chosen alignment."""
    shape = (actions,) * agents
    needle = np.zeros(shape)
    needle[(1,) * agents] = GAP
    named = {
        "additive": _parity(actions, agents, 0.0),
        "needle": needle,
        "two together": _task_reward(actions, agents, 1.0, lambda a: (a[:2] == 1).all(axis=0)),
        **{f"parity {c:g}": _parity(actions, agents, c) for c in PARITY_COUPLINGS},
    }
    threshold = float(actions) ** (1 - agents)
    spread = np.geomspace(0.1 * threshold, 1.0, config.gradients_tensors)
    drawn = np.asarray(
        jax.random.normal(key, (len(spread) + len(NEAR), 2, *shape), dtype=jnp.float64)
    )
    wanted = np.concatenate([spread, threshold * np.array(NEAR)])
    for share, (first, second) in zip(wanted, drawn, strict=True):
        main, rest = _main_effects(first), second - _main_effects(second)
        rest -= rest.mean()
        mixed = np.sqrt(share) * main / main.std() + np.sqrt(1 - share) * rest / rest.std()
        named[f"random {share:.4g}"] = mixed
    return named


def _main_effects(tensor: np.ndarray) -> np.ndarray:
    """Sum over axes of the means along all others, centred: the additive part."""
    total, axes = np.zeros_like(tensor), range(tensor.ndim)
    for k in axes:
        mean = tensor.mean(axis=tuple(j for j in axes if j != k), keepdims=True)
        total = total + mean - tensor.mean()
    return total


def _speeds(config: Config, key: jax.Array) -> xr.Dataset:
    """Squared gradients at uniform policies and what is gained soon, factored against joint."""
    columns: dict[str, list[np.ndarray]] = {}
    names, sizes = [], []
    for place, (actions, agents) in enumerate(SIZES):
        rewards = _rewards(config, jax.random.fold_in(key, place), actions, agents)
        tensors = np.stack(list(rewards.values()))
        found = {k: np.asarray(v) for k, v in _compared(jnp.asarray(tensors)).items()}
        threshold = float(actions) ** (1 - agents)
        found["alignment"] = threshold * found["theory"]
        found["additive"] = np.full(len(tensors), 1 / threshold)
        found["predicted"] = np.where(found["alignment"] > threshold, 1.0, 0.0)
        found["mostly_additive"] = np.where(found["alignment"] > 0.5, 1.0, 0.0)
        for name, values in found.items():
            columns.setdefault(name, []).append(values)
        names += [f"A={actions}, K={agents}, {name}" for name in rewards]
        sizes += [f"A={actions}, K={agents}"] * len(rewards)
    described = {
        "ratio": "squared gradient at uniform policies, factored / joint",
        "theory": "A^(K-1) times the alignment",
        "additive": "A^(K-1)",
        "alignment": "first-order share of the variance",
        "faster": "whether factored learners gained more by then",
        "predicted": "whether the alignment is above A^-(K-1)",
        "mostly_additive": "whether the alignment is above one half",
    }
    dim = "gradients_reward"
    return xr.Dataset(
        {
            f"gradients_{name}": (
                dim,
                np.concatenate(columns[name]),
                {"long_name": words, "units": "1"},
            )
            for name, words in described.items()
        },
        coords={dim: names, "gradients_size": (dim, sizes)},
    )


@jax.jit
def _compared(tensors: jax.Array) -> dict[str, jax.Array]:
    agents, actions = tensors.ndim - 1, tensors.shape[1]
    starts = {
        "joint": jnp.zeros(tensors.shape[1:], jnp.float64),
        "factored": jnp.zeros((agents, actions), jnp.float64),
    }

    def one(tensor: jax.Array) -> dict[str, jax.Array]:
        squares, values = {}, {}
        for policy, start in starts.items():
            gradient = teams.policy_gradient(start, tensor, policy)
            squares[policy] = jnp.sum(gradient**2)
            values[policy] = teams.expected_reward(start + SOON * gradient, tensor, policy)
        return {
            "ratio": squares["factored"] / squares["joint"],
            "faster": jnp.where(values["factored"] > values["joint"], 1.0, 0.0),
            "theory": theory.gradient_speed_ratio(tensor),
        }

    return jax.vmap(one)(tensors)


def _flow(reward: np.ndarray, horizon: float, policy: str) -> tuple[np.ndarray, np.ndarray]:
    """Times and expected rewards along a flow from uniform policies."""
    times = np.linspace(0.0, horizon, STEPS + 1)
    return times, np.asarray(teams.gradient_flow(reward, times, policy).value)


def _hitting_times() -> xr.Dataset:
    """When the best action has each level of probability, by flows and in closed form."""
    additive = _parity(ACTIONS, AGENTS, 0.0)
    needle = np.zeros_like(additive)
    needle[(0,) * AGENTS] = GAP
    # Agents with rewards of their own follow the sum of these; its mean is what the team is paid.
    cases = {
        "own": (AGENTS * additive, 45.0, "factored", (AGENTS * GAP, AGENTS * GAP)),
        "team": (additive, AGENTS * 45.0, "factored", (GAP, GAP)),
        "joint, needle": (needle, 180.0, "joint", (0.0, GAP)),
    }
    measured = []
    for reward, horizon, policy, (offset, gap) in cases.values():
        times, values = _flow(reward, horizon, policy)
        measured.append(np.interp(LEVELS, (values + offset) / gap, times))
    sizes = {
        "own": (ACTIONS, GAP),
        "team": (ACTIONS, GAP / AGENTS),
        "joint, needle": (ACTIONS**AGENTS, GAP),
    }
    exact = np.array(
        [[float(theory.hitting_time(*sizes[c], float(p))) for p in LEVELS] for c in cases]
    )
    size, lead = np.array(list(sizes.values()), dtype=np.float64).T[:, :, None]
    middle = 2 * (size - 1) * np.log(LEVELS * (size - 1) / (1 - LEVELS)) / (size * lead)
    teams_sizes = np.arange(1, 9)
    growth = [
        [float(theory.hitting_time(a, g, float(LEVELS[-1]))) for a, g in rows]
        for rows in (
            [(ACTIONS, GAP) for _ in teams_sizes],
            [(ACTIONS, GAP / k) for k in teams_sizes],
            [(ACTIONS ** int(k), GAP) for k in teams_sizes],
        )
    ]
    dims, time = ("gradients_learner", "gradients_level"), {"units": "flow time"}
    return xr.Dataset(
        {
            "gradients_hitting": (
                dims,
                np.array(measured),
                {"long_name": "time to a probability of the best action", **time},
            ),
            "gradients_hitting_theory": (dims, exact, {"long_name": "its closed form", **time}),
            "gradients_hitting_no_log": (
                dims,
                exact - middle,
                {"long_name": "the closed form without its logarithm", **time},
            ),
            "gradients_team_over_own": (
                "gradients_level",
                measured[1] / measured[0],
                {"long_name": "time of agents paid the team's mean / their own", "units": "1"},
            ),
            "gradients_team_over_own_theory": (
                (),
                float(AGENTS),
                {"long_name": "number of agents", "units": "1"},
            ),
            "gradients_hitting_growth": (
                ("gradients_learner", "gradients_agents"),
                np.array(growth),
                {"long_name": f"time to probability {LEVELS[-1]:g}", **time},
            ),
        },
        coords={
            "gradients_learner": list(cases),
            "gradients_level": LEVELS,
            "gradients_agents": teams_sizes,
        },
    )


def _theory_regret(times: np.ndarray, coupling: float) -> np.ndarray:
    """Regret along the reduced flow of agents that see this coupling, judged by the true one."""

    def slope(_: float, logits: np.ndarray) -> np.ndarray:
        return np.asarray(theory.symmetric_parity_flow(logits, AGENTS, GAP, coupling))

    span, start = (0.0, float(times[-1])), np.zeros(ACTIONS)
    path = solve_ivp(slope, span, start, "LSODA", times, rtol=1e-9, atol=1e-10)
    regret = jax.vmap(lambda x: theory.symmetric_parity_regret(x, AGENTS, GAP, COUPLING))
    return np.asarray(regret(jnp.asarray(path.y.T)))


def _symmetric() -> xr.Dataset:
    """Regret of learners that start exactly uniform: joint, and factored by one agent's logits."""
    reward = _parity(ACTIONS, AGENTS, COUPLING)
    best = float(reward.max())
    times = np.linspace(0.0, HORIZON, STEPS + 1)
    path = teams.gradient_flow(reward, times, "symmetric")
    late = teams.gradient_flow(
        reward, np.linspace(HORIZON, LATE, STEPS + 1), "symmetric", path.logits
    )
    _, joint = _flow(reward, HORIZON, "joint")
    trap = float(theory.symmetric_trap_regret(AGENTS, GAP, COUPLING))
    dim = "gradients_time"
    return xr.Dataset(
        {
            "gradients_symmetric": (
                dim,
                best - np.asarray(path.value)[SHOWN],
                {"long_name": "regret, factored from exactly uniform"},
            ),
            "gradients_symmetric_theory": (
                dim,
                _theory_regret(times[SHOWN], COUPLING),
                {"long_name": "regret by the reduced equation"},
            ),
            "gradients_symmetric_blind": (
                dim,
                _theory_regret(times[SHOWN], 0.0),
                {"long_name": "regret of agents to whom parity is invisible"},
            ),
            "gradients_joint": (
                dim,
                best - joint[SHOWN],
                {"long_name": "regret, joint learner from exactly uniform"},
            ),
            "gradients_late": (
                (),
                best - float(late.value[-1]),
                {"long_name": f"regret at {LATE:g}, factored from exactly uniform"},
            ),
            "gradients_trap": ((), trap, {"long_name": "regret of the symmetric maximiser"}),
            "gradients_floor": (
                (),
                COUPLING - GAP / AGENTS,
                {"long_name": "floor of learners that stay at their own best actions"},
            ),
            "gradients_escape": ((), 0.1 * trap, {"long_name": "a tenth of the trap's regret"}),
        },
        coords={dim: (dim, times[SHOWN], {"long_name": "time", "units": "flow time"})},
    )


def _simulated(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Signal to noise of single trajectories, and regret with noise on the first logits."""
    additive, reward = _parity(ACTIONS, AGENTS, 0.0), _parity(ACTIONS, AGENTS, COUPLING)
    own = np.tile(-GAP * (np.arange(ACTIONS) > 0), (AGENTS, 1))
    outcome_noise = OWN_NOISE / np.sqrt(AGENTS)
    learners = {
        "own": (np.zeros((AGENTS, ACTIONS)), OWN_NOISE, own),
        "shared": (np.zeros((AGENTS, ACTIONS)), outcome_noise, None),
    }
    times = np.linspace(0.0, HORIZON, STEPS + 1)
    best = float(reward.max())
    # Later, rounding would begin to tell agents apart that start alike.
    at = int(np.flatnonzero(times[SHOWN] == ESCAPED)[0])

    def one(params: dict[str, jax.Array], key: jax.Array) -> dict[str, jax.Array]:
        draw_key, logit_key = jax.random.split(key)
        # The same draws for all learners: each has claims of its own, and programs are shared.
        draws = jax.random.split(draw_key, config.gradients_draws)
        ratios = []
        for name, (logits, noise, rewards) in learners.items():
            estimates = jax.vmap(
                functools.partial(
                    teams.reinforce_gradient,
                    logits=logits,
                    reward=additive,
                    learner=name,
                    noise_std=noise,
                    own_rewards=rewards,
                )
            )(draws)
            ratios.append(_signal_to_noise(estimates.reshape(len(estimates), -1)))
        free = teams.initial_logits(logit_key, reward, "factored", LOGIT_NOISE)
        tied = jnp.broadcast_to(free[:1], free.shape)
        noisy = best - jax.vmap(
            lambda start: teams.gradient_flow(reward, times, "factored", start).value[SHOWN]
        )(jnp.stack([free, tied]))
        return {"signal": jnp.stack(ratios), "free": noisy[0], "tied": noisy[1, at]}

    found = repeat("gradients-runs", one, {}, jax.random.split(key, config.gradients_seeds))
    exact = [
        float(theory.reinforce_signal_to_noise(own[0], OWN_NOISE)[0]),
        float(theory.reinforce_signal_to_noise(additive, outcome_noise)[0]),
    ]
    seed = "gradients_seed"
    return xr.Dataset(
        {
            "gradients_signal": (
                (seed, "gradients_reinforce"),
                found["signal"].values,
                {"long_name": "squared mean / mean square of REINFORCE", "units": "1/trajectory"},
            ),
            "gradients_signal_theory": (
                "gradients_reinforce",
                exact,
                {"long_name": "its closed form", "units": "1/trajectory"},
            ),
            "gradients_signal_square": (
                "gradients_reinforce",
                [exact[0], exact[0] / AGENTS**2],
                {"long_name": "a K²-th for all who share the outcome", "units": "1/trajectory"},
            ),
            "gradients_noisy": (
                (seed, "gradients_time"),
                found["free"].values,
                {"long_name": "regret, noise on each agent's first logits"},
            ),
            "gradients_escaped": (
                seed,
                found["free"].values[:, at],
                {"long_name": f"regret at {ESCAPED:g}, noise on each agent's logits"},
            ),
            "gradients_escaped_tied": (
                seed,
                found["tied"].values,
                {"long_name": f"regret at {ESCAPED:g}, the same noise for every agent"},
            ),
        },
        coords={"gradients_reinforce": list(learners)},
    )


def _signal_to_noise(estimates: jax.Array) -> jax.Array:
    """‖Eĝ‖²/E‖ĝ‖² of all learners together, the numerator without the bias of a squared mean."""
    count = len(estimates)
    second = jnp.sum(estimates**2) / count
    mean = jnp.sum(jnp.mean(estimates, axis=0) ** 2)
    return (count * mean - second) / (count - 1) / second
