"""Theory of the part on regression: its tasks and grids, risks on them, and what wrong theories say."""

import jax
import jax.numpy as jnp
import numpy as np
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
