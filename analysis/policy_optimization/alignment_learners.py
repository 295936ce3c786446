"""Learners of the part on alignment: fresh, stale, stale with control, stale with a short step."""

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from boundlab.analysis.policy_optimization.config import Config
from boundlab.experiment import Repeat
from boundlab.models.delayed_descent import delayed_descent
from boundlab.models.gac import MOST_SKIPS, gac
from boundlab.models.softmax_bandit import stale_bandit
from boundlab.theory.policy_optimization import alignment as theory
from boundlab.theory.policy_optimization import staleness

LEARNERS = ("fresh", "stale", "controlled", "short")
LOW = 0.05
# The bandit: actions, weight of the entropy, actions a step, delay, step in units of the limit.
ACTIONS, WEIGHT, BATCH, DELAY, BANDIT_STEP = 20, 1.0, 64, 8, 1.5
# Of its gradients' cosines the first are taken: later, fresh ones are rounding.
EARLY = 500
BANDIT_TAIL = 500
# Some stale learners end at one wrong action, where a batch has no contrast: a gap of 1 and more. The
# mean of capped gaps is below that of gaps.
CAP = 0.1
# The quadratic: curvatures, noise, delays, steps in units of the limit.
CURVATURE = np.linspace(0.05, 1.0, 64)
NOISE, DELAYS, LONG_STEP, STABLE_STEP, SHORT_STEP = 0.3, (8, 16), 1.3, 0.9, 0.5
TAIL = 1000
GROWN = 1500
BINS = np.linspace(-1.0, 1.0, 81)
EVERY = 50
# Skipping: threshold, and how far the start is in standard deviations of the others' starts.
HIGH, FAR = 0.3, 10.0
# A threshold that every cosine passes: no control, in one program with those who have it.
OFF = 1.0
# Runs of the quadratic, a column each: first the learners, then those at a stable step of which cosines
# are shown, then three that start far away and skip without end, five times in a row, or never.
LONG, STABLE, SKIPPING = slice(0, 4), slice(4, 7), slice(7, 10)
RUNS = {
    "old": np.array([0, 1, 1, 1, 0, 1, 1, 1, 1, 1]),
    "factor": np.array([LONG_STEP] * 3 + [SHORT_STEP] + [STABLE_STEP] * 3 + [SHORT_STEP] * 3),
    "low": np.array([OFF, OFF, LOW, OFF, OFF, OFF, LOW, LOW, LOW, LOW]),
    "high": np.array([OFF] * 7 + [HIGH, HIGH, OFF]),
    "skips": np.array([5] * 7 + [MOST_SKIPS, 5, 5]),
    "start": np.array([1.0] * 7 + [FAR] * 3),
}


def run(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Learning curves, what is left at the end, and cosines of consecutive gradients."""
    bandit_key, quadratic_key = jax.random.split(key)
    return xr.merge(
        [_bandits(config, bandit_key, repeat), _quadratics(config, quadratic_key, repeat)]
    )


def generator(key: jax.Array) -> np.random.Generator:
    """A generator on the host: small draws that would take longer to compile than to use."""
    return np.random.default_rng(np.asarray(jax.random.key_data(key)))


def _bandits(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """The entropic bandit at 1.5 of its limit; a reward a seed."""
    reward_key, run_key = jax.random.split(key)
    seeds, steps = config.alignment_rewards, config.alignment_steps
    # Row by row, so that more seeds keep the rewards of fewer.
    rewards = generator(reward_key).standard_normal((seeds, ACTIONS))
    # One after another: batches of eigenvalues can hang on CPU.
    limits = np.asarray(
        jax.lax.map(lambda r: theory.bandit_step_limit(r, WEIGHT, DELAY), jnp.asarray(rewards))
    )

    def one(params: dict[str, jax.Array], key: jax.Array) -> dict[str, jax.Array]:
        place = params["reward"]
        reward, limit = jnp.asarray(rewards)[place], jnp.asarray(limits)[place]
        own_key = jax.random.fold_in(key, place)

        def learn(delay: jax.Array, factor: jax.Array, low: jax.Array) -> dict[str, jax.Array]:
            path = stale_bandit(
                own_key,
                reward,
                WEIGHT,
                factor * limit,
                delay,
                BATCH,
                steps,
                max_delay=DELAY,
                transform=gac(low),
            )
            return {
                "gap": path.gap[::EVERY],
                "tail": jnp.mean(path.gap[-BANDIT_TAIL:]),
                "cosine": path.cosine[1 : EARLY + 1],
            }

        delays = jnp.array([0, DELAY, DELAY, DELAY])
        factors = jnp.array([BANDIT_STEP, BANDIT_STEP, BANDIT_STEP, SHORT_STEP])
        return jax.vmap(learn)(delays, factors, jnp.array([OFF, OFF, LOW, OFF]))

    found = repeat(
        "alignment-bandits", one, {"reward": np.arange(seeds)}, jax.random.split(run_key, 1)
    )
    gap, tail, cosine = (found[n].isel(seed=0).values for n in ("gap", "tail", "cosine"))
    seed, learner = "alignment_bandit_seed", "alignment_learner"
    words = "share of cosines of consecutive gradients in the first steps, bandit"
    return xr.Dataset(
        {
            "alignment_gap": (
                (seed, learner, "alignment_step"),
                gap,
                {"long_name": "distance from the best value, bandit", "units": "reward"},
            ),
            "alignment_gap_tail": (
                (seed, learner),
                tail,
                {"long_name": "its mean over the last steps", "units": "reward"},
            ),
            "alignment_gap_capped": (
                (seed, learner),
                np.minimum(tail, CAP),
                {"long_name": f"that mean, {CAP:g} where it is more", "units": "reward"},
            ),
            "alignment_bandit_cosine": (
                (seed, learner),
                cosine.mean(axis=-1),
                {"long_name": "mean cosine of consecutive gradients, bandit, first steps"},
            ),
            "alignment_bandit_histogram": (
                (learner, "alignment_bin"),
                _histogram(cosine.swapaxes(0, 1)),
                {"long_name": words},
            ),
            "alignment_low": ((), LOW, {"long_name": "c_low"}),
        },
        coords={
            learner: list(LEARNERS),
            "alignment_step": np.arange(0, steps, EVERY),
            "alignment_bin": (BINS[1:] + BINS[:-1]) / 2,
        },
    )


def _histogram(values: np.ndarray) -> np.ndarray:
    """Shares of the bins, one row for each entry of the first axis."""
    rows = values.reshape(len(values), -1)
    return np.array([np.histogram(row, BINS)[0] / row.size for row in rows])


def _quadratics(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Noisy quadratics: losses above the limit, cosines below it."""
    steps = config.alignment_steps
    limits = np.array([float(staleness.delayed_sgd_limit(d)) for d in DELAYS])
    limits /= CURVATURE.max()

    def one(params: dict[str, jax.Array], key: jax.Array) -> dict[str, jax.Array]:
        start_key, run_key = jax.random.split(key)
        curvature = jnp.asarray(CURVATURE)
        start = jax.random.normal(start_key, curvature.shape, jnp.float64)
        limit = jnp.asarray(limits)[params["delay"]]
        delay = jnp.asarray(DELAYS)[params["delay"]]

        def gradient(key: jax.Array, x: jax.Array) -> jax.Array:
            return curvature * x + NOISE * jax.random.normal(key, x.shape, jnp.float64)

        def learn(row: dict[str, jax.Array]) -> dict[str, jax.Array]:
            path = delayed_descent(
                run_key,
                gradient,
                row["start"] * start,
                row["factor"] * limit,
                row["old"] * delay,
                steps,
                max_delay=max(DELAYS),
                transform=gac(row["low"], row["high"], max_skips=row["skips"]),
                observe=lambda x: 0.5 * jnp.sum(curvature * x**2),
                watch=lambda state: state.regime,
            )
            loss = path.observed
            return {
                "loss": loss[::EVERY],
                "tail": jnp.mean(loss[-TAIL:]),
                "left": loss[-1] / loss[0],
                "cosine": path.cosine[-TAIL:],
                "skipped": jnp.sum(path.watched == 2).astype(jnp.float64),
            }

        return jax.vmap(learn)({name: jnp.asarray(v) for name, v in RUNS.items()})

    found = repeat(
        "alignment-quadratics",
        one,
        {"delay": np.arange(len(DELAYS))},
        jax.random.split(key, config.alignment_seeds),
    )
    # Dims after these two: the runs, then what is recorded of each.
    found = found.transpose("seed", "delay", ...)
    values = {str(name): found[name].values for name in found.data_vars}
    skipped = values["skipped"] / (steps - 1)
    loss, tail = values["loss"][:, :, LONG], values["tail"][:, :, LONG]
    cosine = values["cosine"][:, :, STABLE]
    seed, delay, learner = "alignment_seed", "alignment_delay", "alignment_learner"
    skipping = (seed, delay, "alignment_skipping")
    step = np.arange(0, steps, EVERY)
    settled = np.array(
        [
            0.5
            * (factor_limit * NOISE) ** 2
            * float(
                np.sum(
                    CURVATURE
                    * np.asarray(staleness.parameter_variance(factor_limit * CURVATURE, 0))
                )
            )
            for factor_limit in LONG_STEP * limits
        ]
    )
    mixtures = [
        [
            float(staleness.mixture_cosine(CURVATURE, STABLE_STEP * limit, age))
            for age in (0, delay_steps)
        ]
        for limit, delay_steps in zip(limits, DELAYS, strict=True)
    ]
    return xr.Dataset(
        {
            "alignment_loss": (
                (seed, delay, learner, "alignment_step"),
                loss,
                {"long_name": "loss of the quadratic", "units": "loss"},
            ),
            "alignment_log_tail": (
                (seed, delay, learner),
                np.log10(tail),
                {"long_name": "log10 of the mean loss over the last steps", "units": "log10 loss"},
            ),
            "alignment_log_grown": (
                (seed, delay, learner),
                np.log10(loss[..., step.tolist().index(GROWN)]),
                {"long_name": f"log10 of the loss at step {GROWN}", "units": "log10 loss"},
            ),
            "alignment_excess": (
                (seed, delay, learner),
                tail / settled[None, :, None],
                {
                    "long_name": "mean loss over the last steps / that of fresh gradients, in closed form"
                },
            ),
            "alignment_long_cosine": (
                (seed, delay),
                values["cosine"][:, :, 0].mean(axis=-1),
                {"long_name": "mean cosine of consecutive fresh gradients, quadratic, long step"},
            ),
            "alignment_histogram": (
                (delay, "alignment_kind", "alignment_bin"),
                np.array([_histogram(c.swapaxes(0, 1)) for c in cosine.swapaxes(0, 1)]),
                {"long_name": "share of cosines of consecutive gradients, quadratic, stable step"},
            ),
            "alignment_skipped": (
                skipping,
                skipped[:, :, SKIPPING],
                {"long_name": "share of updates skipped, of all after the first"},
            ),
            "alignment_frozen": (
                (seed, delay),
                skipped[:, :, SKIPPING.start],
                {"long_name": "that share where skips have no end"},
            ),
            "alignment_all": (delay, np.ones(len(DELAYS)), {"long_name": "all of them"}),
            "alignment_start_only": (
                delay,
                np.array(DELAYS) / (steps - 1),
                {"long_name": "those whose gradients are of the start"},
            ),
            "alignment_left": (
                skipping,
                values["left"][:, :, SKIPPING],
                {"long_name": "loss at the end / at the start"},
            ),
            "alignment_mixture": (
                (delay, "alignment_age"),
                np.array(mixtures),
                {"long_name": "predicted cosine of consecutive gradients"},
            ),
        },
        coords={
            delay: list(DELAYS),
            "alignment_kind": ["fresh", "stale", "controlled"],
            "alignment_age": ["fresh", "stale"],
            "alignment_skipping": ["no end", "five in a row", "projections alone"],
        },
    )
