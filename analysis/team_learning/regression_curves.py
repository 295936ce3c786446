"""Theory of the part on regression: risks on its grids, crossovers, and what wrong theories say."""

import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize
import xarray as xr

from boundlab.theory import team_learning as theory

AGENTS, DIM, NOISE = 4, 3, 2.0
INPUTS = AGENTS * DIM
LEARNERS = ("sarl", "aware", "blind")
COUPLINGS = np.array([0.0, 0.5, 1.0])
SAMPLES = np.array([24, 40, 60, 93, 116, 157, 180, 206])
# Sizes n of a team whose partner K(n − 1) + 1 for one agent is among SAMPLES.
PAIRS = np.array([24, 40])
# Tasks on which these pairs are compared: how labels are coupled, and how much.
TASKS = {
    "independent": ("mean", 0.0),
    "mean, λ=0.5": ("mean", 0.5),
    "mean, λ=1": ("mean", 1.0),
    "chain, λ=0.8": ("chain", 0.8),
    "sum, λ=1": ("sum", 1.0),
}
SUBTASK_SAMPLES = 60
FINE = np.geomspace(16.0, 260.0, 60)
STRENGTHS = np.geomspace(0.2, 3.0, 40)
WEAK = np.array([1e-6, 1e-5, 1e-4])
TEAMS = (2, 4, 16)


def mixing(coupling: float, agents: int = AGENTS) -> np.ndarray:
    """(I − L)^{-1} of the coupling by means, by inversion: no formula of the theory's."""
    means = np.tri(agents, k=-1) / np.maximum(np.arange(agents), 1)[:, None]
    return np.linalg.inv(np.eye(agents) - coupling * means)


def curves() -> xr.Dataset:
    """Mean risks on a fine and on the simulated grid, and risks by subtask, beside wrong theories."""
    pairs = PAIRS.astype(np.float64)
    # As if a team of K needed a share 1/√K, one agent with K(n − 1) + 1 would be its equal there.
    longer = 1.0 + np.sqrt(AGENTS) * (pairs - 1.0)
    sizes = {
        "curve": FINE,
        "theory": SAMPLES.astype(np.float64),
        "subtask": np.array([float(SUBTASK_SAMPLES)]),
        "pair": pairs,
        "root": longer,
    }
    ends = np.cumsum([len(n) for n in sizes.values()])
    every = np.concatenate(list(sizes.values()))

    def risks(learner: str, kind: str, couplings: list[float], n: np.ndarray) -> jax.Array:
        """(couplings, n, K)."""

        def one(coupling: jax.Array, at: jax.Array) -> jax.Array:
            return theory.regression_risk(at, AGENTS, DIM, NOISE, coupling, learner, kind=kind)

        over_n = jax.vmap(one, in_axes=(None, 0))
        return jax.vmap(over_n, in_axes=(0, None))(jnp.asarray(couplings), jnp.asarray(n))

    @jax.jit
    def table() -> tuple[dict[str, jax.Array], dict[str, jax.Array]]:
        main = {who: risks(who, "mean", COUPLINGS.tolist(), every) for who in LEARNERS}
        rows = [task for task in TASKS.values() if task[0] != "mean"]
        others = {
            who: jnp.concatenate(
                [risks(who, kind, [c], np.concatenate([pairs, longer])) for kind, c in rows]
            )
            for who in LEARNERS[1:]
        }
        return main, others

    found = {}
    main, others = jax.tree.map(np.asarray, table())
    for learner in LEARNERS:
        parts = dict(zip(sizes, np.split(main[learner], ends[:-1], axis=1), strict=True))
        found[f"curve_{learner}"] = parts["curve"].mean(axis=2)
        found[f"theory_{learner}"] = parts["theory"].mean(axis=2)
        found[f"subtask_theory_{learner}"] = parts["subtask"][:, 0]
        if learner == "sarl":
            continue
        beside = np.split(others[learner].mean(axis=2), 2, axis=1)
        found[f"pair_{learner}"] = np.concatenate([parts["pair"].mean(axis=2), beside[0]])
        if learner == "aware":
            found["pair_root"] = np.concatenate([parts["root"].mean(axis=2), beside[1]])
    return _labelled(found | _wrong_risks())


def _wrong_risks() -> dict[str, np.ndarray]:
    inflation = np.stack([(mixing(float(c)) ** 2).sum(axis=1) for c in COUPLINGS])
    noise = NOISE * inflation.mean(axis=1)[:, None]
    missed = noise / NOISE - 1.0
    price = DIM / (SAMPLES - DIM - 1.0)
    before = np.arange(AGENTS)
    # Earlier labels as if they were independent: their mean has the variance σ²/(i − 1).
    fresh = 1.0 + COUPLINGS[:, None] ** 2 * (before > 0) / np.maximum(before, 1)
    return {
        "wrong_sarl": noise * DIM / (SAMPLES - INPUTS - 1.0),
        "wrong_aware": np.broadcast_to(NOISE * price, (len(COUPLINGS), len(SAMPLES))),
        "wrong_blind": missed + noise * price,
        "subtask_wrong": NOISE * fresh * DIM / (SUBTASK_SAMPLES - DIM - 1.0),
    }


def _labelled(found: dict[str, np.ndarray]) -> xr.Dataset:
    dims = {
        "curve": ("regression_coupling", "regression_fine"),
        "theory": ("regression_coupling", "regression_samples"),
        "wrong": ("regression_coupling", "regression_samples"),
        "subtask": ("regression_coupling", "regression_subtask"),
        "pair": ("regression_task", "regression_pair"),
    }
    words = {
        "curve": "mean excess risk on a fine grid",
        "theory": "mean excess risk",
        "wrong": "mean excess risk by a wrong theory",
        "subtask": f"excess risk of a subtask at n = {SUBTASK_SAMPLES}",
        "pair": "mean excess risk that one agent with K(n − 1) + 1 samples would have",
    }
    data = {}
    for name, values in found.items():
        group, _, case = name.partition("_")
        data[f"regression_{name}"] = (
            dims[group],
            values,
            {"long_name": f"{words[group]}: {case.replace('_', ' ')}"},
        )
    coords = {
        "regression_coupling": COUPLINGS,
        "regression_samples": SAMPLES,
        "regression_fine": FINE,
        "regression_subtask": np.arange(1, AGENTS + 1),
        "regression_task": list(TASKS),
        "regression_pair": PAIRS,
    }
    return xr.Dataset(data, coords)


def crossovers() -> xr.Dataset:
    """n* over the coupling, roots of the difference of risks, rival crossovers, weak coupling, V_i(1)."""

    @jax.jit
    def table() -> tuple[jax.Array, jax.Array, jax.Array]:
        def at(coupling: jax.Array) -> jax.Array:
            return theory.regression_crossover(AGENTS, DIM, NOISE, coupling)

        every = np.concatenate([STRENGTHS, COUPLINGS, WEAK])

        def paper(coupling: jax.Array) -> jax.Array:
            accuracy = theory.accuracy_crossover(AGENTS, coupling, "paper")
            return theory.regression_samples(accuracy, AGENTS, DIM, NOISE, coupling, "sarl")

        coupled = np.concatenate([STRENGTHS, COUPLINGS[COUPLINGS > 0.0]])
        return (
            jax.vmap(at)(jnp.asarray(every)),
            jax.vmap(paper)(jnp.asarray(coupled)),
            theory.noise_inflation(AGENTS, 1.0),
        )

    found, paper, inflation = (np.asarray(values) for values in table())
    strong, grid = len(STRENGTHS), len(STRENGTHS) + len(COUPLINGS)
    coupled = COUPLINGS > 0.0
    variance = np.array([(mixing(float(c)) ** 2).sum(axis=1).mean() for c in COUPLINGS[coupled]])
    weak = INPUTS - DIM, NOISE * AGENTS / np.sum(1.0 / np.arange(1, AGENTS))
    places = np.arange(1, AGENTS)
    samples = {"units": "trajectories"}
    dim = "regression_coupled"
    data = {
        "crossover_curve": ("regression_strength", found[:strong], "n* over the coupling", samples),
        "crossover_curve_paper": (
            "regression_strength",
            paper[:strong],
            "one agent's samples at the paper's accuracy crossover",
            samples,
        ),
        "crossover": (dim, found[strong:grid][coupled], "n* in closed form", samples),
        "root": (dim, _roots(COUPLINGS[coupled]), "root of the difference of risks", samples),
        "crossover_noise": (
            dim,
            INPUTS + 1.0 + (INPUTS - DIM) * NOISE / (variance - 1.0),
            "n* if the labels' noise were not handed down",
            samples,
        ),
        "crossover_bias": (
            dim,
            INPUTS + 1.0 + INPUTS * NOISE * variance / (variance - 1.0),
            "n* if the blind team paid for its bias alone",
            samples,
        ),
        "crossover_paper": (
            dim,
            paper[strong:],
            "one agent's samples at the paper's accuracy crossover",
            samples,
        ),
        "weak": (
            "regression_weak_coupling",
            (found[grid:] - INPUTS - 1.0) * WEAK**2,
            "(n* − D − 1)λ²",
            samples,
        ),
        "weak_limit": ((), np.prod(weak), "(D − d)σ²K/H_{K−1}, its limit", samples),
        "weak_slow": (
            "regression_weak_coupling",
            np.prod(weak) * WEAK,
            "the same if n* grew as 1/λ",
            samples,
        ),
        "inflation": ("regression_subtask", inflation, "V_i at λ = 1", {"units": "1"}),
        "inflation_sum": (
            "regression_subtask",
            1.0 + np.concatenate([[0.0], np.cumsum(1.0 / places**2)]),
            "1 + Σ_{j<i} 1/j²",
            {"units": "1"},
        ),
        "inflation_fresh": (
            "regression_subtask",
            1.0 + np.concatenate([[0.0], 1.0 / places]),
            "1 + 1/(i − 1), as of independent labels",
            {"units": "1"},
        ),
    }
    return xr.Dataset(
        {
            f"regression_{name}": (dims, values, {"long_name": text, **units})
            for name, (dims, values, text, units) in data.items()
        },
        coords={
            "regression_strength": STRENGTHS,
            dim: COUPLINGS[coupled],
            "regression_weak_coupling": WEAK,
        },
    )


def _roots(couplings: np.ndarray) -> np.ndarray:
    """Where the two mean risks are equal, by bisection on what least squares costs in NumPy."""
    found = []
    for coupling in couplings:
        variance = (mixing(float(coupling)) ** 2).sum(axis=1).mean()

        def difference(n: float, variance: float = variance) -> float:
            missed = variance - 1.0
            price = (NOISE * variance + missed) * DIM / (n - DIM - 1.0)
            return float(missed + price - NOISE * variance * INPUTS / (n - INPUTS - 1.0))

        found.append(scipy.optimize.brentq(difference, INPUTS + 1.001, 1e6, xtol=1e-12))
    return np.array(found)


def accuracies() -> xr.Dataset:
    """The accuracy at which both take n*, by risk there, beside closed forms and rules."""
    coupled = COUPLINGS[COUPLINGS > 0.0]

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
        rates = jnp.asarray(coupled)
        return [jax.vmap(lambda c, k=agents: one(k, c))(rates) for agents in TEAMS]

    rows = jax.tree.map(np.asarray, table())
    found = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
    share = 1.0 / np.array(TEAMS)
    words = {
        "accuracy": (
            "accuracy above which the blind team needs fewer samples",
            "root of squared error",
        ),
        "accuracy_paper": ("the same by the paper's rule", "root of squared error"),
        "misalignment": ("root mean square of what the blind team misses", "root of squared error"),
        "limit": ("largest d/D at which it needs no more, at that accuracy", "1"),
        "limit_asymptotic": ("the same from sizes without d + 1 and D + 1", "1"),
    }
    dims = ("regression_agents", "regression_coupled")
    data = {
        f"regression_{name}": (dims, found[name], {"long_name": text, "units": units})
        for name, (text, units) in words.items()
    }
    extra = {
        "conservative": (
            2.0 * np.sqrt(1.0 - share) / (1.0 - np.sqrt(share)),
            "2√(1 − 1/K)/(1 − 1/√K)",
        ),
        "centred": (np.sqrt(1.0 - share) / (1.0 - np.sqrt(share)), "√(1 − 1/K)/(1 − 1/√K)"),
        "share": (share, "d/D"),
    }
    data |= {
        f"regression_{name}": ("regression_agents", values, {"long_name": text, "units": "1"})
        for name, (values, text) in extra.items()
    }
    data["regression_paper_ratio"] = (
        dims,
        found["accuracy_paper"] / found["accuracy"],
        {"long_name": "the paper's accuracy crossover over the exact one", "units": "1"},
    )
    return xr.Dataset(data, {"regression_agents": np.array(TEAMS), "regression_coupled": coupled})
