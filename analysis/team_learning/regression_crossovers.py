"""Theory of the part on regression: crossovers in samples and in accuracy, and wrong ones beside them."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize
import xarray as xr

from boundlab.analysis.team_learning.regression_curves import (
    AGENTS,
    COUPLINGS,
    DIM,
    INPUTS,
    NOISE,
    mixing,
)
from boundlab.theory import team_learning as theory

COUPLED = COUPLINGS[COUPLINGS > 0.0]
STRENGTHS = np.geomspace(0.2, 3.0, 40)
WEAK = np.array([1e-6, 1e-5, 1e-4])
TEAMS = (4, 16)


def crossovers() -> xr.Dataset:
    """n* over the coupling and where it is weak, roots of the difference of risks, rival crossovers."""
    rates = np.concatenate([STRENGTHS, COUPLED, WEAK])
    ends = np.cumsum([len(STRENGTHS), len(COUPLED)])

    @jax.jit
    def table() -> tuple[jax.Array, jax.Array]:
        def one(coupling: jax.Array) -> tuple[jax.Array, jax.Array]:
            accuracy = theory.accuracy_crossover(AGENTS, coupling, "paper")
            return (
                theory.regression_crossover(AGENTS, DIM, NOISE, coupling),
                theory.regression_samples(accuracy, AGENTS, DIM, NOISE, coupling, "sarl"),
            )

        return jax.vmap(one)(jnp.asarray(rates))

    exact, paper = (np.split(np.asarray(values), ends) for values in table())
    variance = np.array([(mixing(float(c)) ** 2).sum(axis=1).mean() for c in COUPLED])
    limit = (INPUTS - DIM) * NOISE * AGENTS / np.sum(1.0 / np.arange(1, AGENTS))
    strength, coupled = "regression_strength", "regression_coupled"
    weak = "regression_weak_coupling"
    by_paper = "one agent's samples at the paper's crossover in accuracy"
    rows = {
        "crossover_curve": (strength, exact[0], "n* over the coupling"),
        "crossover_curve_paper": (strength, paper[0], by_paper),
        "crossover": (coupled, exact[1], "n* in closed form"),
        "crossover_paper": (coupled, paper[1], by_paper),
        "crossover_noise": (
            coupled,
            INPUTS + 1.0 + (INPUTS - DIM) * NOISE / (variance - 1.0),
            "n* if the labels' noise were not handed down",
        ),
        "crossover_bias": (
            coupled,
            INPUTS + 1.0 + INPUTS * NOISE * variance / (variance - 1.0),
            "n* if the blind team paid for its bias alone",
        ),
        "root": (coupled, _roots(variance), "root of the difference of risks"),
        "weak": (weak, (exact[2] - INPUTS - 1.0) * WEAK**2, "(n* − D − 1)λ²"),
        "weak_limit": ((), limit, "(D − d)σ²K/H_{K−1}, its limit"),
        "weak_slow": (weak, limit * WEAK, "the same if n* grew as 1/λ"),
    }
    coords = {strength: STRENGTHS, coupled: COUPLED, weak: WEAK}
    return xr.Dataset(_described(rows, "trajectories"), coords)


def inflations() -> xr.Dataset:
    """V_i of the paper's dependent task, beside its sum and that of labels taken for independent."""
    places = np.arange(1, AGENTS)
    subtask = "regression_subtask"
    rows = {
        "inflation": (subtask, np.asarray(theory.noise_inflation(AGENTS, 1.0)), "V_i at λ = 1"),
        "inflation_sum": (
            subtask,
            1.0 + np.concatenate([[0.0], np.cumsum(1.0 / places**2)]),
            "1 + Σ_{j<i} 1/j²",
        ),
        "inflation_fresh": (
            subtask,
            1.0 + np.concatenate([[0.0], 1.0 / places]),
            "1 + 1/(i − 1), as of independent labels",
        ),
    }
    return xr.Dataset(_described(rows, "1"))


def accuracies() -> xr.Dataset:
    """The accuracy at which both take n*, by the risk there, beside closed forms and rules."""

    def one(agents: int, coupling: jax.Array) -> dict[str, jax.Array]:
        at = theory.regression_crossover(agents, DIM, NOISE, coupling)
        risk = theory.regression_risk(at, agents, DIM, NOISE, coupling, "sarl")
        missed = jnp.sqrt(jnp.mean(theory.neglected_variance(agents, coupling)))
        noise = NOISE * jnp.mean(theory.noise_inflation(agents, coupling))
        accuracy = jnp.sqrt(jnp.mean(risk))
        return {
            "accuracy": accuracy,
            "accuracy_paper": theory.accuracy_crossover(agents, coupling, "paper"),
            "misalignment": missed,
            "limit": theory.dimension_ratio_limit(missed, accuracy),
            "limit_asymptotic": theory.dimension_ratio_limit(missed, accuracy, "asymptotic", noise),
        }

    @jax.jit
    def table() -> list[dict[str, jax.Array]]:
        rates = jnp.asarray(COUPLED)
        return [jax.vmap(lambda c, k=agents: one(k, c))(rates) for agents in TEAMS]

    by_team = jax.tree.map(np.asarray, table())
    found = {name: np.stack([row[name] for row in by_team]) for name in by_team[0]}
    share = 1.0 / np.array(TEAMS)
    lead = np.sqrt(1.0 - share) / (1.0 - np.sqrt(share))
    both, agents = ("regression_agents", "regression_coupled"), "regression_agents"
    errors = {
        "accuracy": (
            both,
            found["accuracy"],
            "error above which the blind team needs fewer samples",
        ),
        "accuracy_paper": (both, found["accuracy_paper"], "the same by the paper's rule"),
        "misalignment": (
            both,
            found["misalignment"],
            "root mean square of what the blind team misses",
        ),
    }
    ratios = {
        "limit": (both, found["limit"], "largest d/D at which it needs no more at that error"),
        "limit_asymptotic": (
            both,
            found["limit_asymptotic"],
            "the same from sizes without d + 1 and D + 1",
        ),
        "paper_ratio": (
            both,
            found["accuracy_paper"] / found["accuracy"],
            "the paper's crossover in accuracy over the exact one",
        ),
        "conservative": (agents, 2.0 * lead, "2√(1 − 1/K)/(1 − 1/√K)"),
        "centred": (agents, lead, "√(1 − 1/K)/(1 − 1/√K)"),
        "share": (agents, share, "d/D"),
    }
    return xr.Dataset(
        _described(errors, "root of squared error") | _described(ratios, "1"),
        {agents: np.array(TEAMS), "regression_coupled": COUPLED},
    )


def _roots(variances: np.ndarray) -> np.ndarray:
    """Where the mean risks are equal, by bracketing; `variances` V̄ of each coupling."""
    found = []
    for variance in variances.tolist():

        def difference(
            n: float, noise: float = NOISE * variance, missed: float = variance - 1.0
        ) -> float:
            blind = missed + (noise + missed) * DIM / (n - DIM - 1.0)
            return blind - noise * INPUTS / (n - INPUTS - 1.0)

        found.append(scipy.optimize.brentq(difference, INPUTS + 1.001, 1e6, xtol=1e-12))
    return np.array(found)


def _described(rows: dict[str, tuple[Any, Any, str]], units: str) -> dict[str, Any]:
    return {
        f"regression_{name}": (dims, values, {"long_name": text, "units": units})
        for name, (dims, values, text) in rows.items()
    }
