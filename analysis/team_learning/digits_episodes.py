"""The advice on a real team task: choosing model sizes for digits, one training an episode.

The rewards of a pool of shuffles are the population; its mean R and its noise σ are what `advise` is
told. Both learners of the advice are then run on episodes drawn from the pool, and how often their choice
is worse than the accuracy is held against the laws behind the advice. Episodes aren't Gaussian, and their
noise isn't equal: models that are too large are noisier, and one agent takes them for good more often. So
its failures are held against the law with each joint action's own noise, too.
"""

import jax
import numpy as np
import xarray as xr
from jaxtyping import Float
from scipy.special import log_ndtr

from boundlab.analysis.team_learning.advice import decide, known_task, laws_of
from boundlab.experiment import Repeat
from boundlab.models.digit_rewards import digit_rewards
from boundlab.models.digit_tasks import DigitTask

SIZES = (4, 8, 16, 24)
EXAMPLES = 40
ACCURACY, FAILURE = 0.02, 0.1
# Trajectories at which the learners are run: one, two and four of each joint action.
BUDGETS = (64, 128, 256)


def episodes(task: DigitTask, pool: int, trials: int, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Failures of both learners on drawn episodes, the laws at the pool's mean and noise, the advice."""
    dims = np.array(SIZES)

    def one(params: dict[str, jax.Array], key: jax.Array) -> jax.Array:
        return digit_rewards(key, task, EXAMPLES, dims)

    drawing, shuffling = jax.random.split(key)
    found = repeat("digits-episodes", one, {}, jax.random.split(shuffling, pool))
    rewards = found["value"].values
    mean = rewards.mean(axis=0)
    spread = rewards.std(axis=0)
    noise = float(np.sqrt((spread**2).mean()))
    known = known_task(mean, None, None, noise)
    laws = laws_of(known, ACCURACY, FAILURE)
    advice = decide(known, laws)
    rng = np.random.default_rng(np.asarray(jax.random.key_data(drawing)))
    failed = np.empty((2, len(BUDGETS), trials))
    for place, budget in enumerate(BUDGETS):
        failed[0, place] = laws.bad.ravel()[_joint(rng, rewards, budget, trials)]
        failed[1, place] = laws.bad[_team(rng, rewards, budget, trials)]
    alone = laws_of(known._replace(teammates_variance=np.zeros(mean.ndim)), ACCURACY, FAILURE)
    expected = [
        [law(float(budget)) for budget in BUDGETS]
        for law in (laws.joint_failure, laws.shared_failure, alone.shared_failure)
    ]
    cells = ("digits_learner", "digits_budget")
    return xr.Dataset(
        {
            "digits_failed": (
                (*cells, "digits_trial"),
                failed,
                {"long_name": "whether the choice is worse than the accuracy", "units": "1"},
            ),
            "digits_failure": (
                cells,
                np.array(expected[:2]),
                {"long_name": "probability of that, by the laws of the advice", "units": "1"},
            ),
            "digits_failure_alone": (
                "digits_budget",
                np.array(expected[2]),
                {"long_name": "the team's, without the teammates' variance", "units": "1"},
            ),
            "digits_failure_unequal": (
                "digits_budget",
                np.array(
                    [
                        _chosen(mean.ravel(), spread.ravel() * np.sqrt(mean.size / budget))[
                            laws.bad.ravel()
                        ].sum()
                        for budget in BUDGETS
                    ]
                ),
                {"long_name": "one agent's, each joint action with its own noise", "units": "1"},
            ),
            "digits_needed": (
                "digits_learner",
                np.array([advice.sarl_samples, advice.marl_samples]),
                {"long_name": "budget by the advice", "units": "trajectories"},
            ),
            "digits_alignment": (
                (),
                advice.alignment,
                {"long_name": "alignment A₁ of the pool's mean reward", "units": "1"},
            ),
        },
        coords={"digits_learner": ["one agent", "team"], "digits_budget": np.array(BUDGETS)},
    )


def _chosen(
    mean: Float[np.ndarray, " cells"], deviation: Float[np.ndarray, " cells"]
) -> Float[np.ndarray, " cells"]:
    """Chance that each of independent normals is the largest, ∫ φ(z) Π_{h≠i} Φ((x_i − v_h)/τ_h) dz."""
    z = np.linspace(-9.0, 9.0, 1201)
    x = mean[:, None] + deviation[:, None] * z
    below = log_ndtr((x[:, None, :] - mean[None, :, None]) / deviation[None, :, None])
    others = below.sum(axis=1) - below[np.arange(len(mean)), np.arange(len(mean))]
    return np.trapezoid(np.exp(others - z**2 / 2), z, axis=1) / np.sqrt(2 * np.pi)


def _joint(rng: np.random.Generator, rewards: np.ndarray, budget: int, trials: int) -> np.ndarray:
    """Joint actions chosen by the best mean of budget/C episodes each."""
    flat = rewards.reshape(len(rewards), -1)
    cells = flat.shape[1]
    shuffles = rng.integers(0, len(flat), (trials, budget // cells, cells))
    return np.argmax(flat[shuffles, np.arange(cells)].mean(axis=1), axis=1)


def _team(
    rng: np.random.Generator, rewards: np.ndarray, budget: int, trials: int
) -> tuple[np.ndarray, ...]:
    """Each agent's action of the best mean, all actions of each agent equally often."""
    agents, actions = rewards.ndim - 1, rewards.shape[1]
    balanced = np.repeat(np.arange(actions), budget // actions)
    taken = tuple(rng.permuted(np.tile(balanced, (trials, 1)), axis=1) for _ in range(agents))
    seen = rewards[(rng.integers(0, len(rewards), (trials, budget)), *taken)]
    sums = [np.stack([(seen * (own == a)).sum(axis=1) for a in range(actions)]) for own in taken]
    return tuple(np.argmax(by_action, axis=0) for by_action in sums)
