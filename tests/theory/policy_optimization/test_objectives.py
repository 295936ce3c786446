"""Values of the surrogates against numbers computed elsewhere, gradients by finite differences."""

import numpy as np
import pytest

from boundlab.theory.policy_optimization.objectives import loss_gradient, surrogate_loss
from boundlab.theory.policy_optimization.on_policy import token_weights

# A batch that avoids all ties, and the values of the losses on it, from an independent implementation.
OLD = np.array([[-1.2, -0.7, -2.3, -0.1], [-0.5, -1.9, -0.3, -3.0], [-2.0, -0.4, -1.1, -0.8]])
RHO = np.array([[0.05, -0.31, 0.46, -0.02], [0.26, 0.11, -0.15, 0.0], [-0.61, 0.02, 0.33, -0.09]])
MASK = np.array([[1, 1, 1, 1], [1, 1, 1, 0], [1, 1, 0, 0]])
ADVANTAGE = np.tile(np.array([[1.0], [-0.5], [0.75]]), (1, 4))
CLIP = {"epsilon_low": 0.2, "epsilon_high": 0.2}
TEMPERATURES = {"temperature_positive": 1.0, "temperature_negative": 1.05}
FIBER = {"budget_plus": 0.13, "budget_minus": 0.06, "epsilon": 0.04}
DOMAIN = {"budgets": ((0.12, 0.12), (0.15, 0.15), (0.2, 0.1)), "epsilon": 0.11}
NODES = {"group_id": np.array([0, 0, 1]), "domain_id": np.zeros(3, int)}
REFERENCE = [
    ("ppo", "token-mean", CLIP, -0.3889580907),
    ("dual_clip", "token-mean", {**CLIP, "dual_clip": 1.1}, -0.4008029883),
    ("ppo", "seq-mean-token-mean", CLIP, -0.3439695237),
    ("ppo", "token-mean", {"epsilon_low": 0.2, "epsilon_high": 0.28}, -0.3978469796),
    ("ppo", "seq-mean-token-sum-norm", CLIP, -0.2917185680),
    ("gspo", "seq-mean-token-mean", {"epsilon_low": 0.05, "epsilon_high": 0.05}, -0.3554606546),
    ("gmpo", "seq-mean-token-mean", {"epsilon_low": 0.4, "epsilon_high": 0.4}, -0.3502695459),
    ("sapo", "seq-mean-token-mean", TEMPERATURES, -0.8084051760),
    ("apc", "seq-mean-token-mean", {"radius": 0.1}, -0.3969213838),
    ("fiberpo", "seq-mean-token-mean", FIBER, -0.4507493911),
    ("fiberpo", "seq-mean-token-mean", {**FIBER, "budget_minus": 0.07}, -0.4432393854),
    ("fiberpo_pessimistic", "seq-mean-token-mean", FIBER, -0.3391500262),
    ("fiberpo_domain", "seq-mean-token-mean", DOMAIN, -0.4147053282),
]


@pytest.mark.parametrize(("loss", "aggregation", "options", "value"), REFERENCE)
def test_published_values(loss, aggregation, options, value):
    weights = token_weights(MASK, aggregation)
    nodes = NODES if loss == "fiberpo_domain" else {}
    found = surrogate_loss(loss, RHO, ADVANTAGE, weights, **nodes, **options)
    np.testing.assert_allclose(found, value, atol=1e-9)


# On random batches no token lies within a step of a kink.
COUNT, LENGTH, STEP = 5, 6, 1e-6
RNG = np.random.default_rng(11)
BIG_MASK = np.arange(LENGTH) < np.array([[6], [4], [0], [5], [1]])
BIG_NODES = {"group_id": np.array([3, 3, 0, 1, 1]), "domain_id": np.array([2, 2, 0, 2, 2])}
BIG_RHO = RNG.normal(0.0, 0.15, (COUNT, LENGTH))
BIG_ADVANTAGE = RNG.normal(size=(COUNT, LENGTH))
BIG_FACTOR = RNG.uniform(0.5, 2.0, (COUNT, 1))
BIG_LOG_PROB = RNG.uniform(-2.0, 0.0, (COUNT, LENGTH))


@pytest.mark.parametrize(
    ("loss", "options"),
    [
        ("ppo", CLIP),
        ("dual_clip", {**CLIP, "dual_clip": 1.02}),
        ("gmpo", CLIP),
        ("sapo", TEMPERATURES),
        ("apc", {"radius": 0.07}),
        ("fiberpo", {**FIBER, "budget_plus": 0.06, "budget_minus": 0.045}),
        ("fiberpo_pessimistic", {**FIBER, "budget_plus": 0.06}),
        ("fiberpo_domain", {"budgets": ((0.02, 0.03), (0.05, 0.05), (0.04, 0.06)), "epsilon": 0.1}),
    ],
)
def test_gradients_by_finite_differences(loss, options):
    weights = np.asarray(token_weights(BIG_MASK, "seq-mean-token-mean"))
    if loss not in ("gmpo", "fiberpo_domain"):
        weights = weights * BIG_FACTOR
    nodes = BIG_NODES if loss == "fiberpo_domain" else {}

    def value(rho):
        return float(surrogate_loss(loss, rho, BIG_ADVANTAGE, weights, **nodes, **options))

    found = loss_gradient(loss, BIG_RHO, BIG_ADVANTAGE, weights, **nodes, **options)
    expected = np.zeros((COUNT, LENGTH))
    for place in zip(*np.nonzero(BIG_MASK), strict=True):
        step = np.zeros((COUNT, LENGTH))
        step[place] = STEP
        expected[place] = (value(BIG_RHO + step) - value(BIG_RHO - step)) / (2 * STEP)
    np.testing.assert_allclose(found, expected, atol=2e-9)
    assert np.abs(expected).max() > 0.02


def test_gradients_of_scores_by_hand():
    """One token after another, and what GSPO's token form makes of a sequence."""
    weights = np.asarray(token_weights(BIG_MASK, "token-mean"))
    expected = {
        name: np.zeros((COUNT, LENGTH)) for name in ("cispo", "dppo", "dro", "vespo", "gspo")
    }
    for b, t in zip(*np.nonzero(BIG_MASK), strict=True):
        rho, gain = BIG_RHO[b, t], BIG_ADVANTAGE[b, t]
        total, tokens = BIG_RHO[b][BIG_MASK[b]].sum(), BIG_MASK[b].sum()
        moved = np.exp(BIG_LOG_PROB[b, t]) * (1 - np.exp(-rho))
        keep = moved <= 0.03 if gain > 0 else moved >= -0.03
        k, scale = (2, 3) if gain >= 0 else (3, 2)
        phi = np.exp(scale * (1 - np.exp(total))) * np.exp(total) ** k
        shared = np.exp(total / tokens)
        outside = shared > 1.05 if gain > 0 else shared < 0.97
        rows = {
            "cispo": min(max(np.exp(rho), 0.9), 1.2) * gain,
            "dppo": keep * np.exp(rho) * gain,
            "dro": gain - 0.7 * rho,
            "vespo": phi * gain,
            "gspo": (not outside) * shared * gain,
        }
        for name, row in rows.items():
            expected[name][b, t] = -weights[b, t] * row
    options = {
        "cispo": {"epsilon_low": 0.1, "epsilon_high": 0.2},
        "dppo": {"threshold": 0.03, "log_prob": BIG_LOG_PROB},
        "dro": {"beta": 0.7},
        "vespo": {},
        "gspo": {"epsilon_low": 0.03, "epsilon_high": 0.05},
    }
    for name, values in expected.items():
        found = loss_gradient(name, BIG_RHO, BIG_ADVANTAGE, weights, **options[name])
        np.testing.assert_allclose(found, values, rtol=1e-12, atol=1e-15, err_msg=name)
        assert (values[BIG_MASK] == 0).sum() < 12


def test_masked_values_do_not_matter():
    weights = token_weights(MASK, "seq-mean-token-mean")
    junk = np.where(MASK, RHO, np.nan)
    found = surrogate_loss("fiberpo", junk, ADVANTAGE, weights, **FIBER)
    assert float(found) == float(surrogate_loss("fiberpo", RHO, ADVANTAGE, weights, **FIBER))
    nothing = loss_gradient("apc", RHO, ADVANTAGE, 0 * MASK, radius=0.1)
    np.testing.assert_array_equal(nothing, np.zeros((3, 4)))


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("named", "loss", "changed"),
    [
        ("loss", "trpo", {}),
        ("log_ratio", "ppo", {"log_ratio": np.ones(3)}),
        ("advantage", "ppo", {"advantage": np.ones((3, 3))}),
        ("advantage", "ppo", {"advantage": np.full((3, 4), np.nan)}),
        ("weights", "ppo", {"weights": -MASK}),
        ("epsilon_high", "ppo", {"epsilon_high": None}),
        ("radius", "ppo", {"radius": 0.1}),
        ("epsilon_low", "ppo", {"epsilon_low": -0.1}),
        ("group_id", "fiberpo_domain", {}),
    ],
)
def test_bad_input_is_named(named, loss, changed):
    options = DOMAIN if loss == "fiberpo_domain" else CLIP
    arguments = {"log_ratio": RHO, "advantage": ADVANTAGE, "weights": MASK, **options, **changed}
    arguments = {name: value for name, value in arguments.items() if value is not None}
    with pytest.raises(ValueError, match=f"^{named}: "):
        surrogate_loss(loss, **arguments)


def test_more_bad_input_is_named():
    with pytest.raises(ValueError, match=r"^log_prob: "):
        loss_gradient("dppo", RHO, ADVANTAGE, MASK, threshold=0.1)
    with pytest.raises(ValueError, match=r"^loss: "):
        surrogate_loss("cispo", RHO, ADVANTAGE, MASK, **CLIP)
