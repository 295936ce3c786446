"""Arguments of the models of policy optimisation that are no numbers: each is named."""

import inspect

import numpy as np
import pytest

from boundlab.models.delayed_descent import delayed_descent
from boundlab.models.delayed_sgd import delayed_sgd, delayed_sgd_moments
from boundlab.models.gac import gac
from boundlab.models.gates import aggregate_gate, fiber_gate, hierarchy_gate
from boundlab.models.softmax_bandit import bandit_objective, stale_bandit, surrogate_gradient
from boundlab.models.tabular import (
    ended_sequences,
    prefix_total_variation,
    sample_ended_sequences,
    sample_sequences,
    sequence_log_probs,
    sequence_table,
    solve_ended_tree,
    solve_tree,
    tree_surrogate_gain,
)
from boundlab.models.tabular_mdp import random_mdp, simulate_returns, solve_mdp

HALVES, THIRDS, TWO = np.log(np.full((3, 2), 0.5)), np.log(np.full((3, 3), 1 / 3)), np.ones(2)
RATIO = {"log_ratio": np.full((2, 3), 0.1), "mask": np.ones((2, 3))}
BUDGETS = {"budget_plus": 0.1, "budget_minus": 0.1, "epsilon": 0.1}
MDP = {
    "transition": np.full((2, 2, 2), 0.5),
    "reward": np.ones((2, 2)),
    "policy": np.full((2, 2), 0.5),
    "discount": 0.5,
    "initial": np.full(2, 0.5),
}
SGD = {
    "curvature": TWO,
    "step_size": 0.1,
    "delay": 1,
    "noise_std": 0.1,
    "num_steps": 3,
    "initial": TWO,
}
BANDIT = {"reward": TWO, "entropy_weight": 0.1}
STALE = {"step_size": 0.1, "delay": 1, "batch_size": 2, "num_steps": 2, "max_delay": 2, "every": 1}


# A mask of booleans, and None for what may be left out.
ALLOWED = [("bool", "mask"), ("objects", "max_delay"), ("objects", "batch_size")]


def doubled_descent(key, **arguments):
    return delayed_descent(key, lambda _, x: x, **arguments)


def one_level(log_ratio, mask, budgets, epsilon):
    return hierarchy_gate(log_ratio, mask, (), budgets, epsilon)


TABLE = [
    (aggregate_gate, {"x": TWO, "budget": 0.1, "k": 3.0}),
    (fiber_gate, RATIO | BUDGETS),
    (one_level, RATIO | {"budgets": np.ones((1, 2)), "epsilon": 0.1}),
    (gac, {"low": 0.1, "high": 0.5, "max_skips": 3}),
    (solve_tree, {"log_policy": HALVES, "leaf_reward": np.ones(4)}),
    (
        tree_surrogate_gain,
        {"log_policy": HALVES, "new_log_policy": HALVES, "leaf_reward": np.ones(4)},
    ),
    (prefix_total_variation, {"log_policy": HALVES, "new_log_policy": HALVES}),
    (sequence_table, {"num_tokens": 2, "horizon": 2}),
    (sequence_log_probs, {"log_policy": HALVES, "horizon": 2}),
    (sample_sequences, {"log_policy": HALVES, "horizon": 2, "num_sequences": 3}),
    (solve_ended_tree, {"log_policy": THIRDS, "reward": np.ones(7)}),
    (ended_sequences, {"num_tokens": 3, "horizon": 2}),
    (sample_ended_sequences, {"log_policy": THIRDS, "horizon": 2, "num_sequences": 3}),
    (solve_mdp, MDP),
    (random_mdp, {"num_states": 2, "num_actions": 2}),
    (simulate_returns, MDP | {"num_episodes": 2, "num_steps": 2}),
    (delayed_sgd, SGD),
    (delayed_sgd_moments, SGD | {"burn_in": 0}),
    (
        doubled_descent,
        {"initial": TWO, "step_size": 0.1, "delay": 1, "num_steps": 3, "max_delay": 2},
    ),
    (bandit_objective, BANDIT | {"logits": TWO}),
    (surrogate_gradient, BANDIT | {"logits": TWO, "behavior_logits": TWO}),
    (stale_bandit, BANDIT | STALE | {"initial": TWO}),
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
def test_what_is_no_number_is_named(function, good, name, key):
    given = {"key": key} if "key" in inspect.signature(function).parameters else {}
    for kind in ("text", "objects", "bool", "ragged", "huge", "masked"):
        if (kind, name) in ALLOWED:
            continue
        with pytest.raises(ValueError, match=rf"^{name}\b"):
            function(**{**given, **good, name: of_kind(kind, good[name])})
