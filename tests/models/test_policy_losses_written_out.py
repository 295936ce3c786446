"""Every loss against the same loss written out token by token in theory.

The two share no code: theory loops over tokens in NumPy and differentiates by hand.
"""

import jax
import numpy as np
import pytest

from boundlab.models.policy_aggregation import MODES
from boundlab.models.policy_losses import LOSSES, PolicyBatch, policy_loss
from boundlab.theory.policy_optimization.objectives import SURROGATES, loss_gradient, surrogate_loss
from boundlab.theory.policy_optimization.on_policy import token_weights

CLIP = {"epsilon_low": 0.15, "epsilon_high": 0.25}
FIBER = {"budget_plus": 0.08, "budget_minus": 0.05, "epsilon": 0.06}
# Losses that differ from another by their aggregation and defaults alone are left out.
OPTIONS = {
    "ppo": CLIP,
    "dual_clip": {**CLIP, "dual_clip": 1.1},
    "gspo": {"epsilon_low": 0.02, "epsilon_high": 0.03},
    "gmpo": CLIP,
    "cispo": CLIP,
    "sapo": {"temperature_positive": 1.3, "temperature_negative": 0.8},
    "vespo": {},
    "dppo": {"threshold": 0.03},
    "dro": {"beta": 0.7},
    "apc": {"radius": 0.12},
    "fiberpo": FIBER,
    "fiberpo_pessimistic": FIBER,
    "fiberpo_domain": {
        "budgets": ((0.03, 0.04), (0.05, 0.05), (0.06, 0.07)),
        "epsilon": 0.1,
    },
}
NORM, COUNT, LENGTH = 5.0, 6, 8
RNG = np.random.default_rng(21)
LENGTHS = np.array([8, 0, 5, 1, 3, 7])
MASK = np.arange(LENGTH) < LENGTHS[:, None]
NODES = {"group_id": np.array([5, 0, 5, 2, 2, 3]), "domain_id": np.array([1, 0, 1, 1, 1, 4])}


def drawn(scale):
    old = -RNG.exponential(size=(COUNT, LENGTH))
    moved = old + scale * RNG.normal(size=old.shape)
    # A tenth of the advantages are 0, where signs have nothing to say.
    advantage = RNG.normal(size=old.shape) * (RNG.random(old.shape) > 0.1)
    return PolicyBatch(moved, old, None, advantage, MASK, **NODES)


BATCHES = [drawn(scale) for scale in (0.03, 0.12, 0.4, 1.0)]


def modes_of(row):
    """Two for each loss, in turn: a loss doesn't know of the aggregation that follows it."""
    if LOSSES[row.removesuffix("_pessimistic")].aggregation is None:
        return (None,)
    others = [mode for mode in MODES if mode != "seq-mean-token-mean"]
    return ("seq-mean-token-mean", others[list(OPTIONS).index(row) % len(others)])


def every(batch):
    """Loss and gradient by row and aggregation; gradients of one aggregation alone."""

    def one(row, mode):
        options = OPTIONS[row] if mode is None else {**OPTIONS[row], "aggregation": mode}
        if mode == "seq-mean-token-sum-norm":
            options = {**options, "norm": NORM}
        if row == "fiberpo_pessimistic":
            options = {**options, "pessimistic": True}
        loss = policy_loss(row.removesuffix("_pessimistic"), **options)

        def value(log_prob):
            return loss(batch._replace(log_prob=log_prob))[0]

        if mode in (None, "seq-mean-token-mean"):
            return jax.value_and_grad(value)(batch.log_prob)
        return value(batch.log_prob), None

    return {row: {mode: one(row, mode) for mode in modes_of(row)} for row in OPTIONS}


@pytest.fixture(scope="module")
def found():
    fields = [[getattr(b, name) for b in BATCHES] for name in ("log_prob", "log_prob_old")]
    gains = np.stack([b.advantage for b in BATCHES])

    def one(log_prob, log_prob_old, advantage):
        return every(PolicyBatch(log_prob, log_prob_old, None, advantage, MASK, **NODES))

    return jax.jit(jax.vmap(one))(*(np.stack(field) for field in fields), gains)


def written_out(row, mode, batch):
    """Loss and gradient; a score's value is that of its constant weights."""
    norm = NORM if mode == "seq-mean-token-sum-norm" else None
    weights = np.asarray(token_weights(MASK, mode or "seq-mean-token-mean", norm))
    nodes = NODES if row == "fiberpo_domain" else {}
    log_ratio = batch.log_prob - batch.log_prob_old
    arguments = (row, log_ratio, batch.advantage, weights)
    log_prob = {} if row in SURROGATES else {"log_prob": batch.log_prob}
    gradient = np.asarray(loss_gradient(*arguments, **log_prob, **nodes, **OPTIONS[row]))
    if row in SURROGATES:
        return surrogate_loss(*arguments, **nodes, **OPTIONS[row]), gradient
    if row == "dro":
        penalty = 0.5 * OPTIONS["dro"]["beta"] * log_ratio**2
        return -(weights * (batch.advantage * batch.log_prob - penalty)).sum(), gradient
    return (gradient * batch.log_prob).sum(), gradient


@pytest.mark.parametrize("row", OPTIONS)
def test_values_and_gradients(found, row):
    for mode, (values, gradients) in found[row].items():
        for at, batch in enumerate(BATCHES):
            value, gradient = written_out(row, mode, batch)
            np.testing.assert_allclose(values[at], value, rtol=1e-12, atol=1e-14, err_msg=str(mode))
            if gradients is not None:
                np.testing.assert_allclose(gradients[at], gradient, rtol=1e-11, atol=1e-15)


def test_every_gate_acts_somewhere(found):
    """Or the comparison would say nothing."""
    plain = {row: np.abs(-BATCHES[2].advantage * MASK) for row in OPTIONS}
    for row in OPTIONS:
        gradient = np.abs(np.asarray(found[row][modes_of(row)[0]][1][2]))
        share = gradient / np.where(plain[row] > 0, plain[row], 1)
        assert np.ptp(share * LENGTHS[:, None]) > 0.01, row
