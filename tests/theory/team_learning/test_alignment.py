"""Floors by brute force, alignment by least squares and by a dual program, closed forms by both."""

import itertools

import jax
import numpy as np
import pytest
import scipy.optimize

from boundlab.theory.team_learning import (
    anova_alignment,
    bias_floor,
    needle_alignment,
    order_q_alignment,
    parity_alignment,
    sup_alignment,
)

SIZES = [(2, 2), (2, 4), (4, 3)]


def own_rewards(actions, agents, gap):
    return np.tile(np.r_[0.0, np.full(actions - 1, -gap)], (agents, 1))


def additive(actions, agents, gap):
    joint = np.indices((actions,) * agents)
    return joint, -gap * (joint != 0).mean(axis=0)


def parity(actions, agents, gap, coupling):
    joint, own = additive(actions, agents, gap)
    return own + coupling * ((joint.sum(axis=0) - 1) % actions == 0)


def order_q(actions, agents, order, gap, coupling):
    joint, own = additive(actions, agents, gap)
    return own + coupling * (joint[:order] == 1).all(axis=0)


def needle(actions, agents, gap):
    tensor = np.zeros((actions,) * agents)
    tensor[(actions - 1,) * agents] = gap
    return tensor


def floor_by_loops(tensor, own=None):
    """R* − R(ā), ā by plain loops over joint actions."""
    best = []
    for agent in range(tensor.ndim):
        means = []
        for action in range(tensor.shape[0]):
            cells = [
                tensor[a]
                for a in itertools.product(range(tensor.shape[0]), repeat=tensor.ndim)
                if a[agent] == action
            ]
            means.append(np.mean(cells) if own is None else own[agent][action])
        best.append(int(np.argmax(np.round(means, 10))))
    return tensor.max() - tensor[tuple(best)]


def share_by_regression(tensor):
    """R² of least squares on one indicator for each agent's action."""
    joint = np.indices(tensor.shape).reshape(tensor.ndim, -1)
    design = np.concatenate([np.eye(tensor.shape[0])[a] for a in joint], axis=1)
    values = tensor.ravel() - tensor.mean()
    fit = design @ np.linalg.lstsq(design, values, rcond=None)[0]
    return (fit @ fit) / (values @ values)


def sup_by_dual(tensor):
    """Max Σ w R over signed weights with Σ|w| ≤ 1 whose every one-agent marginal is 0."""
    joint = np.indices(tensor.shape).reshape(tensor.ndim, -1)
    marginals = np.concatenate([np.eye(tensor.shape[0])[a] for a in joint], axis=1).T
    values = tensor.ravel()
    found = scipy.optimize.linprog(
        np.r_[-values, values],
        A_ub=np.ones((1, 2 * values.size)),
        b_ub=[1.0],
        A_eq=np.hstack([marginals, -marginals]),
        b_eq=np.zeros(len(marginals)),
        method="highs-ipm",
    )
    return -found.fun


@pytest.mark.parametrize("learner", ["shared", "own"])
@pytest.mark.parametrize("coupling", [0.0, 0.1, 0.35, 1.3])
@pytest.mark.parametrize(("actions", "agents"), SIZES)
def test_parity_floor_by_loops(actions, agents, coupling, learner):
    tensor = parity(actions, agents, 0.6, coupling)
    own = own_rewards(actions, agents, 0.6) if learner == "own" else None
    expected = max(0.0, coupling - 0.6 / agents)
    np.testing.assert_allclose(floor_by_loops(tensor, own), expected, atol=1e-12)
    np.testing.assert_allclose(bias_floor(tensor, learner, own), expected, atol=1e-12)
    forms = parity_alignment(actions, agents, 0.6, coupling)
    np.testing.assert_allclose([forms.own_floor, forms.shared_floor], expected, atol=1e-12)
    assert expected <= 2 * float(forms.sup) + 1e-12


@pytest.mark.parametrize("coupling", [0.05, 0.25, 0.35, 0.5, 0.9, 2.5])
@pytest.mark.parametrize(
    ("actions", "agents", "order"), [(2, 4, 2), (4, 3, 2), (2, 4, 3), (2, 2, 1)]
)
def test_order_q_floors_by_loops(actions, agents, order, coupling):
    """Thresholds at qΔ/K and A^{q−1}Δ/K."""
    tensor = order_q(actions, agents, order, 0.6, coupling)
    own = own_rewards(actions, agents, 0.6)
    forms = order_q_alignment(actions, agents, order, 0.6, coupling)
    for learner, rewards, form in (
        ("own", own, forms.own_floor),
        ("shared", None, forms.shared_floor),
    ):
        expected = floor_by_loops(tensor, rewards)
        np.testing.assert_allclose(bias_floor(tensor, learner, rewards), expected, atol=1e-12)
        np.testing.assert_allclose(form, expected, atol=1e-12)


def test_floor_of_random_tensors_and_of_joint_learners():
    rng = np.random.default_rng(1)
    for _ in range(20):
        tensor = rng.integers(-2, 3, size=(4, 4, 4)).astype(float)
        np.testing.assert_allclose(bias_floor(tensor), floor_by_loops(tensor), atol=1e-12)
        assert float(bias_floor(tensor, "joint")) == 0.0


@pytest.mark.parametrize("power", [1023, -1000])
def test_rewards_near_the_ends_of_the_floats(power):
    """The spread of 2^1023·(±1) exceeds the largest float; no share or distance does."""
    parts = np.array([[-1.0, 0.5, 0.25], [1.0, -0.75, 0.5], [0.25, 1.0, -0.5]])
    tensor = np.ldexp(parts, power)
    np.testing.assert_allclose(anova_alignment(tensor), share_by_regression(parts), rtol=1e-10)
    np.testing.assert_allclose(
        np.ldexp(np.asarray(sup_alignment(tensor)), -power), sup_by_dual(parts), rtol=1e-8
    )
    # Row 2 has the highest mean (1/3 against 1/4 and 0), column 2 too (1/3 against 1/6 and 1/12).
    misled = np.array([[0.0, 0.0, 0.0], [0.0, -0.25, 1.0], [0.5, 0.5, 0.0]])
    assert float(bias_floor(np.ldexp(misled, power))) == np.ldexp(1.0, power)


@pytest.mark.parametrize("offset", [0.0, 1e6, -0.1])
def test_ties_take_the_lowest_index(offset):
    """Marginal means of pure parity are tied, though their sums round differently."""
    tensor = parity(4, 3, 0.0, 0.7) + offset
    np.testing.assert_allclose(bias_floor(tensor), 0.7, rtol=1e-9)
    assert float(bias_floor(np.full((2, 2), 0.1 + offset))) == 0.0


@pytest.mark.parametrize("gap", [0.0, 1e-3, 0.6])
@pytest.mark.parametrize(("actions", "agents"), [*SIZES, (5, 1)])
def test_shares_by_regression(actions, agents, gap):
    cases = [(parity(actions, agents, gap, 0.35), parity_alignment(actions, agents, gap, 0.35))]
    cases += [
        (order_q(actions, agents, q, gap, 0.35), order_q_alignment(actions, agents, q, gap, 0.35))
        for q in {1, min(2, agents), agents}
    ]
    cases.append((needle(actions, agents, gap + 0.1), needle_alignment(actions, agents, gap + 0.1)))
    for tensor, forms in cases:
        expected = share_by_regression(tensor)
        np.testing.assert_allclose(anova_alignment(tensor), expected, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(forms.anova, expected, rtol=1e-10, atol=1e-12)


def test_share_is_one_without_coupling_and_for_constants():
    assert float(anova_alignment(np.full((2, 2), 0.1))) == 1.0
    assert float(anova_alignment(np.zeros((1, 1, 1)))) == 1.0
    np.testing.assert_allclose(anova_alignment(additive(4, 3, 0.6)[1]), 1.0, rtol=1e-12)
    np.testing.assert_allclose(anova_alignment(1e150 * additive(4, 3, 0.6)[1]), 1.0, rtol=1e-12)
    assert float(anova_alignment(parity(4, 3, 0.6, 1e-3))) < 1 - 1e-6


@pytest.mark.parametrize(("actions", "agents"), [(2, 2), (2, 4), (4, 3)])
def test_sup_alignment_by_the_dual(actions, agents):
    rng = np.random.default_rng(2)
    for tensor in (
        rng.standard_normal((actions,) * agents),
        order_q(actions, agents, 2, 0.6, 0.35),
    ):
        np.testing.assert_allclose(sup_alignment(tensor), sup_by_dual(tensor), rtol=1e-7)
    np.testing.assert_allclose(sup_alignment(tensor + 1e3), sup_by_dual(tensor), rtol=1e-6)


@pytest.mark.parametrize(("actions", "agents"), [(2, 2), (3, 4), (4, 6)])
def test_sup_alignment_closed_forms(actions, agents):
    for tensor, forms in (
        (parity(actions, agents, 0.6, 0.35), parity_alignment(actions, agents, 0.6, 0.35)),
        (order_q(actions, agents, 2, 0.6, 0.35), order_q_alignment(actions, agents, 2, 0.6, 0.35)),
        (needle(actions, agents, 0.6), needle_alignment(actions, agents, 0.6)),
    ):
        np.testing.assert_allclose(sup_alignment(tensor), forms.sup, atol=1e-9)


def test_sup_alignment_of_additive_rewards_is_zero():
    for tensor in (
        additive(4, 3, 0.6)[1],
        np.full((3, 3), 0.1),
        np.array([1.0, 5.0]),
        np.ones((1, 1)),
    ):
        assert float(sup_alignment(tensor)) == 0.0
    assert float(parity_alignment(4, 1, 0.6, 0.35).sup) == 0.0


def test_degenerate_tasks():
    assert tuple(map(float, parity_alignment(1, 3, 0.6, 0.35))) == (1.0, 0.0, 0.0, 0.0)
    assert tuple(map(float, needle_alignment(1, 3, 0.6))) == (1.0, 0.0, 0.0, 0.0)
    assert float(parity_alignment(4, 3, 0.0, 0.0).anova) == 1.0
    assert float(parity_alignment(4, 3, 0.0, 0.1).anova) == 0.0
    assert float(parity_alignment(4, 1, 0.6, 0.8).own_floor) == pytest.approx(0.2)
    assert float(needle_alignment(8, 100, 0.6).anova) > 0.0


def test_traced_tensors():
    tensors = np.stack([parity(3, 2, 0.6, w) for w in (0.1, 0.5)])
    np.testing.assert_allclose(jax.vmap(bias_floor)(tensors), [0.0, 0.2], atol=1e-12)
    share = jax.vmap(lambda w: parity_alignment(3, 2, 0.6, w).anova)(np.array([0.1, 0.5]))
    np.testing.assert_allclose(jax.vmap(anova_alignment)(tensors), share, rtol=1e-12)


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("named", "function", "arguments"),
    [
        ("reward", bias_floor, (np.zeros((2, 3)),)),
        ("reward", bias_floor, (np.array([[0.0, np.inf], [0.0, 0.0]]),)),
        ("learner", bias_floor, (np.zeros((2, 2)), "orthogonal")),
        ("own_rewards", bias_floor, (np.zeros((2, 2)), "own")),
        ("own_rewards", bias_floor, (np.zeros((2, 2)), "shared", np.zeros((2, 2)))),
        ("own_rewards", bias_floor, (np.zeros((2, 2)), "own", np.zeros((2, 3)))),
        ("reward", anova_alignment, ("x",)),
        ("reward", anova_alignment, (np.zeros((2, 2), complex),)),
        ("reward", sup_alignment, (np.zeros((65, 65)),)),
        ("order", order_q_alignment, (3, 2, 0, 1.0, 1.0)),
        ("coupling", parity_alignment, (3, 2, 1.0, -1.0)),
        ("gap", needle_alignment, (3, 2, -1.0)),
    ],
)
def test_bad_input_is_named(named, function, arguments):
    with pytest.raises(ValueError, match=rf"^{named}: "):
        function(*arguments)


def test_sup_distance_of_unequal_axes():
    """Two actions against three, one cell apart: a quarter of the alternating sum of a square."""
    reward = np.zeros((2, 3))
    reward[0, 1] = 1.0
    np.testing.assert_allclose(sup_alignment(reward), 0.25, rtol=1e-9)
    np.testing.assert_allclose(
        sup_alignment(np.arange(3.0)[None, :] + np.zeros((2, 1))), 0, atol=1e-12
    )
