"""Arguments of the theory of policy optimisation that are no numbers: each is named."""

import numpy as np
import pytest

import boundlab.theory.policy_optimization as theory

TWO, HALF = np.ones(2), np.full((2, 2), 0.5)
TOKENS = np.full((2, 3), 0.1)
RATIO = {"log_ratio": TOKENS, "mask": np.ones((2, 3))}
BUDGETS = {"budget_plus": 0.1, "budget_minus": 0.1, "epsilon": 0.1}
STEP = {"step": TWO / 10, "delay": 1}
SIZES = {"improvement": 0.1, "advantage_max": 1.0}
GAIN = {"surrogate_gain": 0.1, "advantage_max": 1.0, "divergence": 0.1}
EXPECTED = {"surrogate_gain": 0.1, "expected_advantage_max": 1.0, "discount": 0.5}
LOSS = {"log_ratio": TOKENS, "advantage": TOKENS, "weights": np.ones((2, 3))}
SAMPLES = {"ratio": TWO, "radius": 0.1, "state_id": np.array([0, 1])}
DESCENT = {"initial_gap": 1.0, "step_size": 0.1, "smoothness": 1.0, "delay": 1, "num_steps": 3}


# A mask of booleans is one.
ALLOWED = [("bool", "mask")]


def ppo_loss(**arguments):
    return theory.surrogate_loss("ppo", **arguments)


def fiber_loss_gradient(**arguments):
    return theory.loss_gradient("fiberpo", **arguments)


def kept_ratio(cosine, low):
    return theory.kept_share(cosine, low, "ratio")


def norm_weights(mask, norm):
    return theory.token_weights(mask, "seq-mean-token-sum-norm", norm)


def mean_gradient(advantage, mask):
    return theory.on_policy_gradient(advantage, mask, "token-mean")


TABLE = [
    (theory.bandit_step_limit, {"reward": TWO, "entropy_weight": 0.1, "delay": 1}),
    (theory.drift_length, {"cosine": 0.1, "num_steps": 3, "step_length": 1.0}),
    (theory.entropic_optimum, {"reward": TWO, "entropy_weight": 0.1}),
    (kept_ratio, {"cosine": TWO, "low": 0.1}),
    (theory.projection_bound, DESCENT | {"kappa": 0.5}),
    (
        theory.stale_policy_gradient,
        {"behavior_logits": TWO, "reward": TWO, "entropy_weight": 0.1},
    ),
    (theory.achiam_bound, EXPECTED | {"mean_divergence": 0.1}),
    (theory.kakade_langford_bound, EXPECTED | {"mixture": 0.1}),
    (theory.improvement_bound_discounted, GAIN | {"discount": 0.5}),
    (theory.improvement_bound_finite, GAIN | {"horizon": 3}),
    (theory.censored_aggregate, {"x": TWO, "budget": 0.1}),
    (theory.fiber_log_gate, RATIO | BUDGETS),
    (theory.fiber_jacobian, RATIO | BUDGETS),
    (theory.fiber_gradient, RATIO | BUDGETS | {"advantage": TOKENS}),
    (theory.gate_bounds, BUDGETS),
    (theory.gate_lipschitz, {"num_tokens": 3}),
    (theory.hierarchy_bounds, {"budgets": HALF, "epsilon": 0.1}),
    (theory.identity_box, {"budgets": HALF, "epsilon": 0.1}),
    (theory.expected_single_visits, {"reach": TWO, "num_sequences": 3}),
    (
        theory.length_weighted_gradient,
        {"policy": HALF, "reach": TWO, "advantage": HALF, "weight": HALF},
    ),
    (ppo_loss, LOSS | {"epsilon_low": 0.1, "epsilon_high": 0.1}),
    (fiber_loss_gradient, LOSS | BUDGETS),
    (norm_weights, {"mask": np.ones((2, 3)), "norm": 3.0}),
    (mean_gradient, {"mask": np.ones((2, 3)), "advantage": TOKENS}),
    (theory.autocovariance, STEP | {"lag": 1}),
    (theory.delayed_sgd_limit, {"delay": 1}),
    (theory.oscillation_limit, {"delay": 1}),
    (theory.gradient_autocorrelation, STEP),
    (theory.gradient_second_moment, STEP),
    (theory.parameter_variance, STEP),
    (theory.mixture_cosine, {"curvature": TWO / 10, "step_size": 0.1, "delay": 1}),
    (theory.apc_gate, SAMPLES),
    (theory.apc_objective, SAMPLES | {"advantage": TWO}),
    (theory.retraction, {"deviation": TWO, "counts": TWO, "radius": 0.1}),
    (theory.guaranteed_gain, SIZES | {"discount": 0.5}),
    (theory.trust_region_radius, SIZES | {"discount": 0.5}),
    (theory.guaranteed_gain_finite, SIZES | {"horizon": 3}),
    (theory.trust_region_radius_finite, SIZES | {"horizon": 3}),
    (theory.tv_trpo_step, {"policy": HALF, "advantage": HALF, "weights": TWO, "radius": 0.1}),
]


def of_kind(kind, good):
    """What is no number, in the place of a good argument."""
    shape = np.shape(good)
    if kind == "masked":
        return np.ma.array(good, mask=np.ones(shape, bool))
    if kind == "ragged":
        return [[1.0], [1.0, 2.0]]
    if kind == "huge":
        return 10**5000
    if isinstance(good, int):
        return {"text": "a", "objects": None, "bool": True}[kind]
    fill = {"text": "a", "objects": None, "bool": True}[kind]
    return np.full(shape, fill, {"text": str, "objects": object, "bool": bool}[kind])


def cases(table):
    for function, good in table:
        for name in good:
            yield pytest.param(function, good, name, id=f"{function.__name__}-{name}")


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(("function", "good", "name"), [*cases(TABLE)])
def test_what_is_no_number_is_named(function, good, name):
    for kind in ("text", "objects", "bool", "ragged", "huge", "masked"):
        if (kind, name) in ALLOWED:
            continue
        with pytest.raises(ValueError, match=rf"^{name}\b"):
            function(**{**good, name: of_kind(kind, good[name])})
