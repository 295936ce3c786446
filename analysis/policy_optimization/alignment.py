"""Gradient alignment control on problems that can be solved: a bandit, a quadratic, random valleys.

What control does to one gradient beside its closed form, the bound on projected descent beside runs, and
learners whose gradients are old beside fresh ones: at a step that is too long for the delay, with and
without control, and at half the longest step that is stable.
"""

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from boundlab.analysis.datasets import describe
from boundlab.analysis.policy_optimization import alignment_learners as learners
from boundlab.analysis.policy_optimization.alignment_claims import CLAIMS as CLAIMS
from boundlab.analysis.policy_optimization.config import Config
from boundlab.experiment import Repeat
from boundlab.models.delayed_descent import delayed_descent
from boundlab.models.gac import gac
from boundlab.models.softmax_bandit import stale_bandit, surrogate_gradient
from boundlab.theory.policy_optimization import alignment as theory
from boundlab.theory.policy_optimization.staleness import delayed_sgd_limit

LOW = learners.LOW
# Control of one gradient is looked at with a threshold that is easier to see.
SHOWN_LOW = 0.2
KAPPAS = ("ratio", "exact")
COSINES = np.array([-0.6, 0.1, 0.19, 0.21, 0.4, 0.7, 0.95, 0.999])
# Draws, actions and weight of the entropy of the identity of stale gradients.
DRAWS, ACTIONS, WEIGHT = 12, 5, 0.5
# The limit of the bandit's step: delays, factors on both sides of it, steps a unit of delay.
DELAYS, FACTORS, LIMIT_STEPS = (0, 1, 4, 16), (0.97, 1.03), 1500
REWARDS = np.array([[0.0, 0.25, 0.5, 0.75, 1.0], [0.0, 0.0, 0.0, 0.0, 1.0]])
NEAR_START = 0.01
# From here on an iterate counts as away from the optimum, up to there as converged.
AWAY, CONVERGED = 1e-3, 1e-12
# Random valleys: dimensions, the largest delay, and the shares of the smallest and largest depth.
VALLEYS, MOST_DELAY, DEPTHS = 8, 9, (0.05, 1.0)


def run(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """All of the part: identities first, then the bound, then learners."""
    keys = jax.random.split(key, 6)
    parts = [
        _stale_gradients(keys[0]),
        _step_limits(keys[1]),
        _one_gradient(keys[2]),
        _bounds(config, keys[3]),
        learners.run(config, keys[4], repeat),
    ]
    return describe(xr.merge(parts), "1")


def _stale_gradients(key: jax.Array) -> xr.Dataset:
    """Policy gradients from old actions by automatic differentiation, and in closed form."""
    names = ("logits", "old", "reward")
    drawn = learners.generator(key).standard_normal((3, DRAWS, ACTIONS))
    given = dict(zip(names, drawn, strict=True))

    @jax.jit
    @jax.vmap
    def compared(logits: jax.Array, old: jax.Array, reward: jax.Array) -> dict[str, jax.Array]:
        gradient, exact = surrogate_gradient, theory.stale_policy_gradient
        return {
            "uncorrected": gradient(logits, old, reward, WEIGHT),
            "at_old": exact(old, reward, WEIGHT),
            "at_new": exact(logits, reward, WEIGHT),
            "corrected": gradient(logits, old, reward, corrected=True),
            "plain_at_old": exact(old, reward, 0.0),
            "plain_at_new": exact(logits, reward, 0.0),
        }

    words = {
        "uncorrected": "policy gradient from old actions, uncorrected",
        "at_old": "gradient of the objective at the old logits",
        "at_new": "gradient of the objective at the new logits",
        "corrected": "policy gradient from old actions, weighted by the ratio, no entropy bonus",
        "plain_at_old": "gradient of the expected reward at the old logits",
        "plain_at_new": "gradient of the expected reward at the new logits",
    }
    found = compared(**given)
    dims = ("alignment_draw", "alignment_action")
    return xr.Dataset(
        {
            f"alignment_{name}": (dims, np.asarray(values), {"long_name": words[name]})
            for name, values in found.items()
        }
    )


def _step_limits(key: jax.Array) -> xr.Dataset:
    """Whether exact stale ascent on the entropic bandit stays, on both sides of the limit."""
    limits = np.array(
        [[float(theory.bandit_step_limit(r, WEIGHT, d)) for d in DELAYS] for r in REWARDS]
    )
    best = np.array([np.asarray(theory.entropic_optimum(r, WEIGHT).policy) for r in REWARDS])
    # λ_max of diag π alone, as if logits moved one at a time.
    diagonal = np.array(
        [[float(delayed_sgd_limit(d)) / (WEIGHT * p.max()) for d in DELAYS] for p in best]
    )
    steps = LIMIT_STEPS * (max(DELAYS) + 1)

    noise = learners.generator(key).standard_normal(REWARDS.shape)
    starts = REWARDS / WEIGHT + NEAR_START * noise

    @jax.jit
    def reached(
        reward: jax.Array, start: jax.Array, limit: jax.Array, delay: jax.Array, factor: jax.Array
    ) -> jax.Array:
        path = stale_bandit(
            key,
            reward,
            WEIGHT,
            factor * limit,
            delay,
            None,
            steps,
            initial=start,
            max_delay=max(DELAYS),
            every=20,
        )
        # Near the optimum this is the distance in the norm of its Hessian.
        return jnp.sqrt(2.0 * jnp.max(path.gap[-steps // 400 :]) / WEIGHT)

    along_factors = jax.vmap(reached, (None, None, None, None, 0))
    along_delays = jax.vmap(along_factors, (None, None, 0, 0, None))
    along_rewards = jax.vmap(along_delays, (0, 0, 0, None, None))
    distance = np.asarray(
        along_rewards(REWARDS, starts, limits, np.array(DELAYS), np.array(FACTORS))
    )
    left = np.where(distance > AWAY, 1.0, np.where(distance < CONVERGED, 0.0, 0.5))
    sizes = np.array(FACTORS) * limits[:, :, None]
    dims = ("alignment_reward", "alignment_limit_delay", "alignment_factor")
    words = {
        "distance": (distance, "largest distance from the optimum in the last steps"),
        "leaves": (left, "whether iterates leave the optimum (½: neither)"),
        "predicted": (np.where(sizes > limits[:, :, None], 1.0, 0.0), "whether η > η_c"),
        "diagonal": (
            np.where(sizes > diagonal[:, :, None], 1.0, 0.0),
            "whether η is above the limit of diag π alone",
        ),
    }
    return xr.Dataset(
        {f"alignment_{n}": (dims, v, {"long_name": w}) for n, (v, w) in words.items()},
        coords={"alignment_limit_delay": list(DELAYS), "alignment_factor": list(FACTORS)},
    )


def _pairs(key: jax.Array) -> tuple[np.ndarray, np.ndarray]:
    """References (C, 27) and gradients of other lengths at the cosines to them that are looked at."""
    drawn = learners.generator(key).standard_normal((2, len(COSINES), 27))
    first = drawn[0] / np.linalg.norm(drawn[0], axis=1, keepdims=True)
    second = drawn[1] - (first * drawn[1]).sum(axis=1, keepdims=True) * first
    second /= np.linalg.norm(second, axis=1, keepdims=True)
    cosine = COSINES[:, None]
    lengths = np.geomspace(0.01, 100.0, len(COSINES))[:, None]
    return first / lengths, 3.0 * (cosine * first + np.sqrt(1 - cosine**2) * second)


def _leaves(vector: jax.Array) -> dict[str, jax.Array]:
    """27 numbers as leaves of unequal sizes."""
    return {"bias": vector[:3], "weight": vector[3:].reshape(4, 6)}


def _one_gradient(key: jax.Array) -> xr.Dataset:
    """Cosine, norm and the part across the reference of what control emits."""
    references, gradients = _pairs(key)

    def emitted(kappa: str, reference: jax.Array, gradient: jax.Array) -> tuple[jax.Array, ...]:
        control = gac(SHOWN_LOW, kappa=kappa)
        first = _leaves(reference)
        _, state = control.update(first, control.init(first))
        update, state = control.update(_leaves(gradient), state)
        return jnp.concatenate([leaf.ravel() for leaf in jax.tree.leaves(update)]), state.cosine

    program = jax.jit(jax.vmap(lambda p, g: [emitted(kappa, p, g) for kappa in KAPPAS]))
    columns: dict[str, list[np.ndarray]] = {}
    for kappa, pair in zip(KAPPAS, program(references, gradients), strict=True):
        updates, cosine = (np.asarray(v) for v in pair)
        norms = [np.linalg.norm(v, axis=1) for v in (references, gradients, updates)]
        along = (gradients * references).sum(axis=1) / norms[0]
        across = gradients - (along / norms[0])[:, None] * references
        across /= np.linalg.norm(across, axis=1, keepdims=True)
        per_leaf = [
            (a * b).sum(axis=1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
            for a, b in (
                (references[:, :3], gradients[:, :3]),
                (references[:, 3:], gradients[:, 3:]),
            )
        ]
        norm = np.asarray(theory.projected_norm(COSINES, SHOWN_LOW, kappa))
        rest = np.asarray(theory.projected_norm(COSINES, 0.0, "zero"))
        rest = np.where(COSINES > 0.0, rest, np.sqrt(1 - COSINES**2))
        share = np.asarray(theory.kept_share(COSINES, SHOWN_LOW, kappa))
        values = {
            "cosine": (updates * references).sum(axis=1) / norms[2] / norms[0],
            "cosine_theory": theory.projected_cosine(COSINES, SHOWN_LOW, kappa),
            "cosine_low": np.minimum(COSINES, SHOWN_LOW),
            "norm": norms[2] / norms[1],
            "norm_theory": norm,
            "norm_added": 1.0 - (1.0 - share) * np.abs(COSINES),
            "across": (updates * across).sum(axis=1) / norms[1],
            "across_theory": rest,
            "across_scaled": rest / norm,
            "seen": cosine,
            "wanted": COSINES,
            "leaf_mean": np.mean(per_leaf, axis=0),
        }
        for name, found in values.items():
            columns.setdefault(name, []).append(np.asarray(found))
    words = {
        "cosine": "cosine of the update with the reference",
        "cosine_theory": "its closed form",
        "cosine_low": "the threshold, where it is exceeded",
        "norm": "norm of the update / of the gradient",
        "norm_theory": "its closed form",
        "norm_added": "as if lengths of the parts added",
        "across": "part of the update across the reference / norm of the gradient",
        "across_theory": "that of the gradient",
        "across_scaled": "that of an update scaled back to the gradient's norm",
        "seen": "cosine that control measures",
        "wanted": "cosine of all leaves as one vector",
        "leaf_mean": "mean of the cosines of the leaves",
    }
    dims = ("alignment_kappa", "alignment_cosine_in")
    return xr.Dataset(
        {
            f"alignment_{n}": (dims, np.array(v), {"long_name": words[n]})
            for n, v in columns.items()
        },
        coords={"alignment_kappa": list(KAPPAS), "alignment_cosine_in": COSINES},
    )


def _valley(x: jax.Array, normal: jax.Array, depth: jax.Array) -> jax.Array:
    """Σ d_i h(y_i) of y = x mirrored, h = y²/(1 + y²): −½ ≤ h″ ≤ 2, and the least value is 0."""
    turned = x - 2.0 * jnp.sum(normal * x) * normal
    return jnp.sum(depth * turned**2 / (1.0 + turned**2))


def _bounds(config: Config, key: jax.Array) -> xr.Dataset:
    """Least squared gradients of delayed descent at the longest step, and the bounds on them."""
    runs, steps = config.alignment_runs, config.alignment_bound_steps
    rng = learners.generator(key)
    normal = rng.standard_normal((runs, VALLEYS))
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    depth = rng.uniform(*DEPTHS, (runs, VALLEYS))
    start = 2.0 * rng.standard_normal((runs, VALLEYS))
    most = rng.integers(0, MOST_DELAY + 1, runs)
    ages = rng.integers(0, most[:, None] + 1, (runs, steps))
    smoothness = 2.0 * depth.max(axis=1)
    # The longest step of the theorem: ηL + (ηLs)² = 1.
    s = np.maximum(most, 1)
    scaled = np.where(most == 0, 1.0, (np.sqrt(1.0 + 4.0 * s**2) - 1.0) / (2.0 * s**2))
    step_size = scaled / smoothness

    def squared(
        start: jax.Array,
        normal: jax.Array,
        depth: jax.Array,
        step_size: jax.Array,
        ages: jax.Array,
        low: jax.Array,
    ) -> jax.Array:
        slope = jax.grad(_valley)
        path = delayed_descent(
            key,
            lambda _, x: slope(x, normal, depth),
            start,
            step_size,
            ages,
            steps,
            max_delay=MOST_DELAY,
            transform=gac(low),
            observe=lambda x: jnp.sum(slope(x, normal, depth) ** 2),
        )
        return path.observed

    each_run = jax.vmap(squared, (0, 0, 0, 0, 0, None))
    program = jax.jit(jax.vmap(each_run, (None, None, None, None, None, 0)))
    lows = np.array([LOW, learners.OFF])
    least = np.asarray(program(start, normal, depth, step_size, ages, lows))
    least = np.minimum.accumulate(least, axis=-1)
    # Where the bound, which falls as 1/T, is nearest.
    counts = (least * np.arange(1, steps + 1)).argmax(axis=-1) + 1
    least = np.take_along_axis(least, counts[..., None] - 1, axis=-1)[..., 0]
    turned = start - 2.0 * (normal * start).sum(axis=1, keepdims=True) * normal
    gap = (depth * turned**2 / (1.0 + turned**2)).sum(axis=1)

    def bounds(place: int, kappa: float) -> np.ndarray:
        rows = zip(gap, step_size, smoothness, most, counts[place], strict=True)
        return np.array(
            [
                float(theory.projection_bound(f, eta, smooth, int(s), kappa, int(count)))
                for f, eta, smooth, s, count in rows
            ]
        )

    controlled = bounds(0, LOW)
    words = {
        "least": (least[0], "least squared gradient, where the bound is nearest"),
        "bound": (controlled, "bound on it"),
        "bound_dropped": (LOW * controlled, "the bound without κ"),
        "plain_least": (least[1], "least squared gradient without control"),
        "plain_bound": (bounds(1, 1.0), "bound on it"),
    }
    return xr.Dataset(
        {f"alignment_{n}": ("alignment_run", v, {"long_name": w}) for n, (v, w) in words.items()}
    )
