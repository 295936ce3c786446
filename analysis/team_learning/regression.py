"""The paper's regression task: excess risk of one agent and of two teams, and where they cross.

Expected risks, the crossover in samples and in accuracy, and exact PAC sizes on fixed inputs, beside
simulations. n counts trajectories, each of which shows all K subtasks; labels are the agents' own.
"""

import jax
import jax.numpy as jnp
import numpy as np
import scipy.stats
import xarray as xr

from boundlab.analysis.datasets import describe
from boundlab.analysis.team_learning.config import Config
from boundlab.analysis.team_learning.regression_claims import CLAIMS as CLAIMS
from boundlab.analysis.team_learning.regression_crossovers import accuracies, crossovers, inflations
from boundlab.analysis.team_learning.regression_curves import (
    AGENTS,
    COUPLINGS,
    DIM,
    LEARNERS,
    NOISE,
    PAIRS,
    SAMPLES,
    SUBTASK_SAMPLES,
    TASKS,
    curves,
)
from boundlab.experiment import Repeat
from boundlab.models import teams
from boundlab.theory import team_learning as theory

PAC_DIM, PAC_ACCURACY, PAC_FAILURE = 5, 0.5, 0.05
CRITERIA = ("mean", "worst")


def run(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Risks, crossovers and rates of failure as one dataset."""
    parts = [
        curves(),
        crossovers(),
        inflations(),
        accuracies(),
        _risks(config, jax.random.fold_in(key, 0), repeat),
        _failures(config, jax.random.fold_in(key, 1), repeat),
    ]
    return describe(xr.merge(parts), "squared error")


def _risks(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Excess risks of all learners at every size and coupling, on common draws."""
    partners = AGENTS * (PAIRS - 1) + 1
    of_pairs = np.concatenate([PAIRS, partners])
    kinds = list(enumerate(kind for kind, _ in TASKS.values()))
    main = [(place, n) for place, kind in kinds if kind == "mean" for n in SAMPLES]
    others = [(place, n) for place, kind in kinds if kind != "mean" for n in of_pairs]
    table = np.array(main + others, np.int32)
    matrices = np.stack([teams.coupling_matrix(AGENTS, c, kind) for kind, c in TASKS.values()])
    most = int(table[:, 1].max())

    def one(params: dict[str, jax.Array], key: jax.Array) -> jax.Array:
        del params

        def at(row: jax.Array) -> jax.Array:
            matrix = jnp.asarray(matrices)[row[0]]
            found = teams.simulate_learners(key, row[1], matrix, DIM, NOISE, max_samples=most)
            return jnp.stack([found[learner] for learner in LEARNERS])

        # Row after row, so that the draws, the same for all, are made once.
        return jax.lax.map(at, jnp.asarray(table))

    keys = jax.random.split(key, config.regression_seeds)
    found = repeat("regression-risks", one, {}, keys)["value"].values
    coupled = found[:, : len(main)].reshape(len(found), len(COUPLINGS), len(SAMPLES), 3, AGENTS)
    dims = ("regression_seed", "regression_coupling", "regression_samples")
    data = {}
    at = list(SAMPLES).index(SUBTASK_SAMPLES)
    for place, learner in enumerate(LEARNERS):
        data[f"regression_risk_{learner}"] = (
            dims,
            coupled[..., place, :].mean(axis=-1),
            {"long_name": f"mean excess risk of a run, {learner}"},
        )
        data[f"regression_subtask_{learner}"] = (
            (*dims[:2], "regression_subtask"),
            coupled[:, :, at, place],
            {"long_name": f"excess risk of a subtask at n = {SUBTASK_SAMPLES}, {learner}"},
        )
    of_partners = [list(SAMPLES).index(n) for n in partners]
    last = found[:, len(main) :].reshape(len(found), -1, len(of_pairs), 3, AGENTS)
    single = np.concatenate([coupled[:, :, of_partners, 0], last[:, :, len(PAIRS) :, 0]], axis=1)
    data["regression_single"] = (
        ("regression_seed", "regression_task", "regression_pair"),
        single.mean(axis=-1),
        {"long_name": "mean excess risk of one agent with K(n − 1) + 1 samples"},
    )
    return xr.Dataset(data)


def _failures(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Rates of failure at the exact PAC sizes, rounded up, on fixed inputs."""
    cases = [(criterion, learner) for criterion in CRITERIA for learner in ("sarl", "marl")]
    exact = np.concatenate(
        [
            theory.chi_square_samples(AGENTS, PAC_DIM, 1.0, PAC_ACCURACY, PAC_FAILURE, criterion)
            for criterion in CRITERIA
        ]
    )
    sizes = np.ceil(exact).astype(int)

    def one(params: dict[str, jax.Array], key: jax.Array) -> jax.Array:
        del params

        def failed(risks: jax.Array) -> jax.Array:
            return jnp.mean((risks > PAC_ACCURACY**2).astype(risks.dtype))

        def both(n: jax.Array, learner: str) -> jax.Array:
            risks = teams.simulate_fixed_design(
                key,
                n,
                AGENTS,
                PAC_DIM,
                1.0,
                learner,
                config.regression_pac_trials,
                max_samples=int(sizes.max()),
            )
            return jnp.stack([failed(risks.mean(axis=1)), failed(risks.max(axis=1))])

        # Size after size, so that the draws, the same for all, are made once.
        shares = [
            jax.lax.map(lambda n, who=learner: both(n, who), jnp.asarray(sizes[place::2]))
            for place, learner in enumerate(("sarl", "marl"))
        ]
        # Each criterion at the size that is its own.
        return jnp.stack([jnp.diagonal(share) for share in shares], axis=1).reshape(-1)

    keys = jax.random.split(key, config.regression_pac_seeds)
    shares = repeat("regression-failures", one, {}, keys)["value"].values

    def tail(n: np.ndarray, *, averaged: bool = True) -> np.ndarray:
        """P(failure) at n by the χ² law; `averaged` False: of the other criterion."""
        found = []
        for (criterion, learner), size in zip(cases, n, strict=True):
            inputs = PAC_DIM * (AGENTS if learner == "sarl" else 1)
            if (criterion == "mean") == averaged:
                shared = AGENTS * inputs
                found.append(scipy.stats.chi2.sf(AGENTS * size * PAC_ACCURACY**2, shared))
            else:
                each = scipy.stats.chi2.sf(size * PAC_ACCURACY**2, inputs)
                found.append(-np.expm1(AGENTS * np.log1p(-each)))
        return np.array(found)

    # Where the expected risk is ε².
    expected = np.array([PAC_DIM * (AGENTS if who == "sarl" else 1) for _, who in cases])
    dim = "regression_size"
    described = {
        "failure": (("regression_pac_seed", dim), shares, "rate of failure of the trials", "1"),
        "failure_theory": (dim, tail(sizes), "probability of failure", "1"),
        "failure_swapped": (dim, tail(sizes, averaged=False), "that of the other criterion", "1"),
        "failure_before": (dim, tail(sizes - 1), "probability of failure with one less", "1"),
        "failure_expected": (
            dim,
            tail(expected / PAC_ACCURACY**2),
            "probability of failure where the expected risk is ε²",
            "1",
        ),
        "delta": ((), PAC_FAILURE, "allowed probability of failure", "1"),
        "pac_samples": (dim, exact, "exact PAC size", "trajectories"),
    }
    return xr.Dataset(
        {
            f"regression_{name}": (dims, values, {"long_name": text, "units": units})
            for name, (dims, values, text, units) in described.items()
        },
        coords={dim: [", ".join(case) for case in cases]},
    )
