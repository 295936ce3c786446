"""Digits as K subtasks with a carry: one agent, a team that knows the carry, a team that doesn't.

Held-out risks of `boundlab.models.digit_tasks` beside the theory of the Gaussian regression task, which
takes three numbers of the data: S, the residual variance of a label given all inputs (σ²V of the theory);
S + F, given the subtask's own; and the sizes d and D = Kd. With an intercept, as here,

    g_p(n) = (n + 1)/n · (1 + p/(n − p − 2)),   sarl S g_D(n),   blind (S + F) g_d(n),

equal at n* = D + 2 + (D − d) S/F. No part of the data is Gaussian, and the labels aren't linear in it.
"""

import jax
import numpy as np
import xarray as xr

from boundlab.analysis.datasets import describe
from boundlab.analysis.team_learning.config import Config
from boundlab.analysis.team_learning.digits_claims import CLAIMS as CLAIMS
from boundlab.analysis.team_learning.digits_episodes import SIZES, episodes
from boundlab.experiment import Repeat
from boundlab.models.digit_tasks import DigitTask, digit_risks, digit_task, incoming_carries
from boundlab.theory.team_learning import regression_risk

DIMS = (8, 16)
COUPLINGS = np.array([0.0, 0.5, 1.0])
LEARNERS = ("sarl", "aware", "blind")
# Pairings of the images over which the residual variances are averaged.
PAIRINGS = 16
CELLS = ("digits_dim", "digits_coupling")
RISK = "squared error of a label"


def run(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Held-out risks against n, the theory's at measured variances, and both at its crossover."""
    whole_task = digit_task(max(SIZES))
    task = whole_task._replace(inputs=whole_task.inputs[..., : max(DIMS)])
    variances = np.array([residual_variances(task, dim, COUPLINGS) for dim in DIMS])
    least = len(task.inputs) * max(DIMS) + 3
    agents = len(task.inputs)
    crossover = np.array(
        [
            [crossing(agents, dim, *pair) for pair in zip(*cell, strict=True)]
            for dim, cell in zip(DIMS, variances, strict=True)
        ]
    )
    crossover[:, COUPLINGS == 0.0] = np.inf  # where the measured F is noise about 0
    tried = np.isfinite(crossover) & (crossover >= least) & (crossover <= task.num_train)
    whole = np.where(tried, np.round(np.where(tried, crossover, 0.0)), 0.0).astype(int)
    counts = np.unique([*config.digits_samples, *whole[tried]])

    def one(params: dict[str, jax.Array], key: jax.Array) -> dict[str, jax.Array]:
        risks = digit_risks(key, task, params["samples"], COUPLINGS, params["dim"])
        return {learner: getattr(risks, learner).mean(axis=1) for learner in LEARNERS}

    keys = jax.random.split(jax.random.fold_in(key, 0), config.digits_seeds)
    grid = {"dim": np.array(DIMS), "samples": counts}
    found = repeat("digits-risks", one, grid, keys)
    # (dim, samples, seed, coupling) -> (dim, coupling, samples, seed)
    risks = {name: np.moveaxis(found[name].values, -1, 1) for name in LEARNERS}
    shown = np.searchsorted(counts, config.digits_samples)
    places = [(i, j, np.searchsorted(counts, whole[i, j])) for i, j in np.argwhere(tried)]
    at_crossover = {name: np.stack([values[at] for at in places]) for name, values in risks.items()}
    theory = _theory(agents, variances, np.array(config.digits_samples))
    unneglected = [
        (_growth(1, DIMS[i], whole[i, [j]]) / _growth(agents, DIMS[i], whole[i, [j]])).item()
        for i, j, _ in places
    ]
    samples = (*CELLS, "digits_samples", "digits_seed")
    dataset = xr.Dataset(
        {
            **{
                f"digits_{name}": (
                    samples,
                    risks[name][:, :, shown],
                    {"long_name": f"held-out risk, mean over subtasks, {name}"},
                )
                for name in LEARNERS
            },
            **{
                f"digits_{name}": (samples[:-1], values, {"long_name": text})
                for name, (values, text) in theory.items()
            },
            "digits_ratio_at_crossover": (
                ("digits_crossing", "digits_seed"),
                at_crossover["blind"] / at_crossover["sarl"],
                {"long_name": "risk of the blind team over one agent's at n*", "units": "1"},
            ),
            "digits_ratio_unneglected": (
                "digits_crossing",
                np.array(unneglected),
                {"long_name": "g_d/g_D at n*, the ratio if F were 0", "units": "1"},
            ),
            "digits_crossover": (
                CELLS,
                crossover,
                {"long_name": "n* at measured variances", "units": "trajectories"},
            ),
            "digits_residual": (
                (*CELLS, "digits_known"),
                np.moveaxis(variances, 1, -1),
                {"long_name": "residual variance of a label, mean over subtasks"},
            ),
        },
        coords={
            "digits_dim": np.array(DIMS),
            "digits_coupling": COUPLINGS,
            "digits_samples": np.array(config.digits_samples),
            "digits_crossing": [f"d = {DIMS[i]}, λ = {COUPLINGS[j]:g}" for i, j, _ in places],
            "digits_known": ["all inputs", "own inputs"],
        },
    )
    told = episodes(
        whole_task, config.digits_pool, config.digits_trials, jax.random.fold_in(key, 1), repeat
    )
    return describe(xr.merge([dataset, told]), RISK)


def residual_variances(
    task: DigitTask, dim: int, couplings: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """S and S + F by coupling: residual variances of the labels, linear in all inputs and in the own.

    Least squares on all images, divided by the degrees of freedom left; means over subtasks and over
    fixed random pairings of the groups' images.
    """
    agents, images, _ = task.inputs.shape
    rng = np.random.default_rng(0)
    joint, own = np.zeros(len(couplings)), np.zeros(len(couplings))
    for _ in range(PAIRINGS):
        order = [rng.permutation(images) for _ in range(agents)]
        x = [task.inputs[k, order[k], :dim] for k in range(agents)]
        u = np.stack([task.positions[k, order[k]] for k in range(agents)], axis=1)
        labels = np.concatenate([u, np.asarray(incoming_carries(u, task.base))], axis=1)
        joint += _residual(np.hstack(x), labels, couplings)
        for k in range(agents):
            own += _residual(x[k], labels[:, k::agents], couplings) / agents
    return joint / PAIRINGS, own / PAIRINGS


def crossing(num_agents: int, dim: int, joint: float, own: float) -> float:
    """n* at which (S + F) g_d(n) = S g_D(n), +inf where F isn't positive."""
    size, neglected = num_agents * dim, own - joint
    return size + 2.0 + (size - dim) * joint / neglected if neglected > 0.0 else np.inf


def _residual(inputs: np.ndarray, labels: np.ndarray, couplings: np.ndarray) -> np.ndarray:
    """Residual variance of u + λ·carry, whose columns `labels` holds in this order, by coupling."""
    rows = np.hstack([inputs, np.ones((len(inputs), 1))])
    residual = labels - rows @ np.linalg.solve(rows.T @ rows, rows.T @ labels)
    u, carry = np.split(residual, 2, axis=1)
    both = u[None] + couplings[:, None, None] * carry[None]
    return np.mean(np.sum(both**2, axis=1), axis=1) / (len(rows) - rows.shape[1])


def _growth(num_agents: int, dim: int, num_samples: np.ndarray) -> np.ndarray:
    """g_p(n) at p = Kd: the intercept takes one example, and its own estimate adds 1/n."""
    n = np.asarray(num_samples, dtype=np.float64)
    price = [regression_risk(value - 1.0, num_agents, dim, 1.0, 0.0, "sarl")[0] for value in n]
    return (1.0 + 1.0 / n) * (1.0 + np.array(price))


def _theory(
    num_agents: int, variances: np.ndarray, num_samples: np.ndarray
) -> dict[str, tuple[np.ndarray, str]]:
    joint, own = (variances[:, place, :, None] for place in (0, 1))
    all_inputs = np.stack([_growth(num_agents, dim, num_samples) for dim in DIMS])[:, None, :]
    own_inputs = np.stack([_growth(1, dim, num_samples) for dim in DIMS])[:, None, :]
    return {
        "sarl_theory": (joint * all_inputs, "risk by S and D, one agent"),
        "sarl_hardest": (joint * own_inputs, "risk of one agent at the size d of the hardest task"),
        "blind_theory": (own * own_inputs, "risk by S + F and d, blind team"),
        "blind_unneglected": (joint * own_inputs, "risk of a team that neglects nothing"),
    }
