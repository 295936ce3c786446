"""Policy losses of 40,000 sequences against NumPy in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from boundlab.models.policy_losses import PolicyBatch, group_advantage, policy_loss

B, T = 40_000, 2
RNG = np.random.default_rng(3)
LENGTHS = RNG.choice([0, 1, 2, 2, 2], size=B)
MASK = np.arange(T) < LENGTHS[:, None]
TOKENS, SOME = LENGTHS.clip(1), LENGTHS > 0
RHO = np.where(MASK, 0.15 * RNG.standard_normal((B, T)), 0)
LOG_W = np.where(MASK, 0.3 * RNG.standard_normal((B, T)), 0)
ADVANTAGE = np.where(MASK, RNG.standard_normal((B, T)), 0)
REWARD = RNG.integers(0, 3, size=B) / 2
GROUPS = RNG.integers(0, B // 6, size=B)
DOMAINS = GROUPS % 50
BUDGETS, EPSILON = ((0.12, 0.05), (0.06, 0.03), (0.04, 0.02)), 0.04


def clip_worse(ratio, epsilon):
    """The gate of PPO and where it acts, as the smaller of two surrogates."""
    clipped = np.clip(ratio, 1 - epsilon, 1 + epsilon)
    acts = clipped * ADVANTAGE < ratio * ADVANTAGE
    return np.where(acts, clipped, ratio), acts


def ppo(weight):
    gate, acts = clip_worse(np.exp(RHO), 0.2)
    slope = np.where(acts, 0, np.exp(RHO))
    return [-(weight * x * ADVANTAGE)[MASK] / MASK.sum() for x in (gate, slope)]


def gspo(epsilon):
    ratio = np.broadcast_to(np.exp(RHO.sum(axis=1) / TOKENS)[:, None], (B, T))
    gate, acts = clip_worse(ratio, epsilon)
    scale = (1 / (TOKENS * SOME.sum()))[:, None]
    return [-(x * ADVANTAGE * scale)[MASK] for x in (gate, np.where(acts, 0, ratio))]


def gate(x, budget, k):
    size = np.abs(x)
    back = np.sign(x) * (k + 1) * budget - k * x
    return np.where(size <= budget, x, np.where(size < (1 + 1 / k) * budget, back, 0))


def fiberpo_domain(rho):
    """Value of the loss; means of nodes are over their sequences with tokens."""
    log_weight = np.zeros(B)
    means = {}
    for sign in (1, -1):
        own = np.maximum(sign * rho, 0).sum(axis=1) / TOKENS
        levels = [(own, TOKENS)]
        for ids in (GROUPS, DOMAINS):
            count = np.bincount(ids, weights=SOME, minlength=B).clip(1)
            total = np.bincount(ids, weights=own * SOME, minlength=B)
            tokens = np.bincount(ids, weights=LENGTHS, minlength=B).clip(1)
            levels.append(((total / count)[ids], tokens[ids]))
        above = [value for value, _ in levels[1:]] + [np.zeros(B)]
        for (value, k), higher, pair in zip(levels, above, BUDGETS, strict=True):
            log_weight += sign * gate(value - higher, pair[sign < 0], k)
        means[sign] = own[:, None]
    up = rho >= 0
    same, other = np.where(up, means[1], means[-1]), np.where(up, means[-1], means[1])
    residual = np.abs(rho) - same
    fiber = np.where(up, 1, -1) * (
        np.clip(residual, -EPSILON, EPSILON) - np.clip(-other, -EPSILON, EPSILON)
    )
    gated = np.exp(log_weight[:, None] + fiber)
    return -((gated * ADVANTAGE * MASK).sum(axis=1) / TOKENS).sum() / SOME.sum()


def m2po(threshold):
    """1 for the smallest squares whose mean is below the threshold."""
    squares = np.sort(LOG_W[MASK] ** 2)
    count = np.flatnonzero(np.cumsum(squares) / np.arange(1, len(squares) + 1) < threshold)[-1] + 1
    return (squares[count - 1] >= LOG_W**2) & MASK


@pytest.mark.smoke
def test_many_rows():
    """PPO, its M2PO form and GSPO: value and gradient; FiberPO-Domain: value and one slope."""
    old = np.full((B, T), -1.5)
    batch = PolicyBatch(old + RHO, old, old - LOG_W, ADVANTAGE, MASK, GROUPS, DOMAINS)
    options = {
        "ppo": {},
        "ppo m2po": {"behavior_weight": "m2po", "behavior_threshold": 0.04},
        "gspo": {"epsilon_low": 0.1, "epsilon_high": 0.1},
        "fiberpo_domain": {"budgets": BUDGETS, "epsilon": EPSILON},
    }

    @jax.jit
    def run(batch):
        losses = {name: policy_loss(name.split()[0], **chosen) for name, chosen in options.items()}
        return {
            name: jax.value_and_grad(lambda p, f=f: f(batch._replace(log_prob=p))[0])(
                batch.log_prob
            )
            for name, f in losses.items()
        }, group_advantage(jnp.asarray(REWARD), batch.group_id)

    found, advantage = run(batch)
    # ρ went through a subtraction of −1.5: exact only to 2e-16.
    kept = m2po(0.04)
    assert 0.3 < kept[MASK].mean() < 0.9
    by_numpy = {"ppo": ppo(MASK), "ppo m2po": ppo(kept), "gspo": gspo(0.1)}
    for name, (values, slopes) in by_numpy.items():
        value, gradient = found[name]
        np.testing.assert_allclose(value, values.sum(), rtol=1e-10)
        np.testing.assert_allclose(np.asarray(gradient)[MASK], slopes, atol=1e-15)
        assert not np.asarray(gradient)[~MASK].any()
    value, gradient = found["fiberpo_domain"]
    np.testing.assert_allclose(value, fiberpo_domain(RHO), rtol=1e-10)
    direction, step = np.where(MASK, ADVANTAGE, 0), 1e-7
    slope = (fiberpo_domain(RHO + step * direction) - fiberpo_domain(RHO - step * direction)) / (
        2 * step
    )
    np.testing.assert_allclose((np.asarray(gradient) * direction).sum(), slope, rtol=1e-4)
    np.testing.assert_allclose(advantage, numpy_advantage(), atol=1e-9)


def numpy_advantage():
    count = np.bincount(GROUPS, minlength=B).clip(1)
    centred = REWARD - (np.bincount(GROUPS, weights=REWARD, minlength=B) / count)[GROUPS]
    squares = np.bincount(GROUPS, weights=centred**2, minlength=B)
    return centred / (np.sqrt(squares / (count - 1).clip(1))[GROUPS] + 1e-6)
