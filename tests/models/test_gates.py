"""Gates of FiberPO and its hierarchy, against loops over single tokens."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from boundlab.models.gates import aggregate_gate, fiber_gate, hierarchy_gate

LENGTHS = (6, 4, 1, 0, 5, 6)
MASK = np.arange(6)[None] < np.array(LENGTHS)[:, None]
BUDGETS = (0.12, 0.05, 0.04)
# Two groups of sequences and one node that nothing points to; the domain above has one, too.
GROUPS, DOMAINS = np.array([0, 0, 2, 2, 2, 0]), np.array([1, 0, 1])
PAIRS = ((0.1, 0.06), (0.08, 0.05), (0.12, 0.07))
LIMIT = 0.04

fiber = jax.jit(fiber_gate)
hierarchy = jax.jit(hierarchy_gate)
aggregate = jax.jit(aggregate_gate)


def g_by_hand(x, budget, count):
    if abs(x) <= budget:
        return x, 0
    if abs(x) < (1 + 1 / count) * budget:
        return np.sign(x) * (count + 1) * budget - count * x, 1
    return 0.0, 2


def by_hand(ratio, mask, ancestors, budgets, epsilon):
    """Log G by loops; `ancestors` holds for each level the node of every sequence."""
    channel = np.zeros((2, len(ratio)))
    for b, kept in enumerate(mask):
        for place, sign in enumerate((1, -1)):
            channel[place, b] = sum(max(sign * r, 0) for r in ratio[b][kept]) / max(kept.sum(), 1)
    log_gate = np.zeros(ratio.shape)
    levels = [np.arange(len(ratio)), *ancestors]
    for b, kept in enumerate(mask):
        base = 0.0
        for place, sign in enumerate((1, -1)):
            means, counts = [], []
            for nodes in levels:
                same = [c for c in range(len(ratio)) if nodes[c] == nodes[b] and mask[c].any()]
                means.append(np.mean(channel[place, same]) if same else 0.0)
                counts.append(max(mask[same].sum(), 1))
            above = [*means[1:], 0.0]
            for mean, parent, count, pair in zip(means, above, counts, budgets, strict=True):
                base += sign * g_by_hand(mean - parent, pair[place], count)[0]
        for t in np.flatnonzero(kept):
            up = ratio[b, t] >= 0
            own, other = channel[0 if up else 1, b], channel[1 if up else 0, b]
            u, v = abs(ratio[b, t]) - own, -other
            part = np.clip(u, -epsilon, epsilon) - np.clip(v, -epsilon, epsilon)
            log_gate[b, t] = base + (part if up else -part)
    return log_gate


def ratios(scale, seed=0):
    drawn = scale * np.random.default_rng(seed).standard_normal(MASK.shape)
    return np.where(MASK, drawn, np.nan)


def ancestors():
    return [GROUPS, DOMAINS[GROUPS]]


def test_published_values_of_the_aggregate_gate():
    x = np.array([0.1, 0.2, 0.25, 0.2999, 0.31, -0.25, -0.5, 0.0])
    expected = [0.1, 0.2, 0.1, 0.0002, 0.0, -0.1, 0.0, 0.0]
    np.testing.assert_allclose(aggregate(x, 0.2, 2), expected, atol=1e-15)
    budgets, counts = np.linspace(0.05, 0.3, 8), np.arange(1.0, 9.0)
    by_loop = [g_by_hand(*case)[0] for case in zip(x, budgets, counts, strict=True)]
    np.testing.assert_allclose(aggregate(x, budgets, counts), by_loop, atol=1e-15)
    found = aggregate(np.array([np.nan, np.inf, -np.inf, 0, 0, 0, 0, 0]), 0.0, 2)
    np.testing.assert_array_equal(found, [np.nan, 0, 0, 0, 0, 0, 0, 0])
    slopes = jax.jit(jax.vmap(jax.grad(lambda v: aggregate_gate(v, 0.2, 2.0))))(x)
    np.testing.assert_array_equal(slopes, [1.0, 1.0, -2.0, -2.0, 0.0, -2.0, 0.0, 1.0])


@pytest.mark.parametrize("scale", [0.02, 0.1, 0.3, 3.0])
def test_gates_by_loops(scale):
    ratio = ratios(scale)
    log_gate, info = fiber(ratio, MASK, *BUDGETS)
    expected = by_hand(ratio, MASK, [], [BUDGETS[:2]], BUDGETS[2])
    np.testing.assert_allclose(log_gate, expected, atol=1e-15)
    log_gate, info = hierarchy(ratio, MASK, (GROUPS, DOMAINS), PAIRS, LIMIT)
    expected = by_hand(ratio, MASK, ancestors(), PAIRS, LIMIT)
    np.testing.assert_allclose(log_gate, expected, atol=1e-15)
    assert len(info.levels) == 2
    kept = [b for b in range(6) if DOMAINS[GROUPS[b]] == 1 and LENGTHS[b]]
    mean = np.mean([np.maximum(ratio[b][MASK[b]], 0).mean() for b in kept])
    np.testing.assert_allclose(info.levels[1].log_s_plus[1], mean, rtol=1e-14)
    assert float(info.levels[0].log_s_plus[1]) == 0.0


def test_diagnostics_by_hand():
    """The specification's batch at (.13, .07, .04), where a channel is in rollback."""
    ratio, mask = np.full((6, 6), 9.0), np.arange(6)[None] < np.array([4, 3, 2, 0, 0, 0])[:, None]
    ratio[0, :4], ratio[1, :3] = (0.05, -0.31, 0.46, -0.02), (0.26, 0.11, -0.15)
    ratio[2, :2] = -0.61, 0.02
    log_gate, info = jax.tree.map(
        lambda leaf: np.array(leaf)[:3], fiber(ratio, mask, 0.13, 0.07, 0.04)
    )
    np.testing.assert_allclose(info.log_s_plus, [0.1275, 0.37 / 3, 0.01], rtol=1e-14)
    np.testing.assert_allclose(info.log_s_minus, [0.0825, 0.05, 0.305], rtol=1e-14)
    np.testing.assert_array_equal(info.regime_plus, [0, 0, 0])
    np.testing.assert_array_equal(info.regime_minus, [1, 0, 2])
    base = [0.1275 - (5 * 0.07 - 4 * 0.0825), 0.37 / 3 - 0.05, 0.01]
    np.testing.assert_allclose(info.log_base_weight, base, rtol=1e-13)
    np.testing.assert_allclose(info.u[2], [0.305, 0.01, 0, 0, 0, 0], atol=1e-15)
    np.testing.assert_allclose(info.v[2], [-0.01, -0.305, 0, 0, 0, 0], atol=1e-15)
    gate = np.exp(log_gate)
    expected = [1.1134908635, 1.0278816212, 1.2062302494, 1.1134908635]
    np.testing.assert_allclose(gate[0, :4], expected, atol=1e-9)


def gradient_of(gate, *args):
    """Compiled gradient of the sum of G·A with advantages of mixed signs."""
    weight = np.cos(np.arange(MASK.size)).reshape(MASK.shape)

    def total(ratio, mask):
        gated = jnp.exp(gate(ratio, mask, *args)[0])
        return jnp.sum(jnp.where(mask, gated * weight, 0.0))

    return jax.jit(jax.value_and_grad(total))


@pytest.fixture(scope="module")
def gradients():
    return {
        "fiber": gradient_of(fiber_gate, *BUDGETS),
        "hierarchy": gradient_of(hierarchy_gate, (GROUPS, DOMAINS), PAIRS, LIMIT),
    }


@pytest.mark.parametrize("name", ["fiber", "hierarchy"])
def test_gradients_are_central_differences(gradients, name):
    ratio = np.nan_to_num(ratios(0.1, seed=4))
    value = gradients[name]
    gradient = np.array(value(ratio, MASK)[1])
    assert np.abs(gradient).max() > 0.5
    for place in np.ndindex(MASK.shape):
        step = np.zeros(MASK.shape)
        step[place] = 1e-6
        slope = (float(value(ratio + step, MASK)[0]) - float(value(ratio - step, MASK)[0])) / 2e-6
        np.testing.assert_allclose(gradient[place], slope, atol=1e-7)


@pytest.mark.parametrize("name", ["fiber", "hierarchy"])
def test_padding_never_matters(gradients, name):
    ratio = ratios(0.1)
    expected = gradients[name](np.where(MASK, ratio, 0.0), MASK)
    for held in (np.nan, np.inf, -np.inf, 1e300):
        value, gradient = gradients[name](np.where(MASK, ratio, held), MASK)
        np.testing.assert_array_equal(value, expected[0])
        np.testing.assert_array_equal(gradient, expected[1])
    assert not np.array(expected[1])[~MASK].any()


@pytest.mark.parametrize("name", ["fiber", "hierarchy"])
def test_on_policy_the_gradient_is_that_of_the_ratio(gradients, name):
    """At ρ = 0 the signs of zero decide: with l = 0 there, every token would get the mean."""
    weight = np.cos(np.arange(MASK.size)).reshape(MASK.shape)
    for zero in (0.0, -0.0):
        _, gradient = gradients[name](np.full(MASK.shape, zero), MASK)
        np.testing.assert_allclose(gradient, np.where(MASK, weight, 0.0), atol=1e-15)


@pytest.mark.parametrize("name", ["fiber", "hierarchy"])
def test_extremes_are_finite(gradients, name):
    signs = np.where(np.arange(MASK.size).reshape(MASK.shape) % 3, 1.0, -1.0)
    for size in (1e4, 1e-300, 0.0):
        found = gradients[name](size * signs, MASK)
        assert all(np.isfinite(part).all() for part in found)
    value, gradient = gradients[name](np.full(MASK.shape, np.nan), np.zeros_like(MASK))
    assert float(value) == 0.0
    assert not np.array(gradient).any()


def test_sequences_without_tokens_count_for_nothing():
    """Removing them changes neither their groups nor their domains, and they are not gated."""
    ratio = ratios(0.1)
    log_gate, info = hierarchy(ratio, MASK, (GROUPS, DOMAINS), PAIRS, LIMIT)
    some = np.flatnonzero(MASK.any(axis=1))
    less, other = hierarchy(ratio[some], MASK[some], (GROUPS[some], DOMAINS), PAIRS, LIMIT)
    np.testing.assert_allclose(np.array(log_gate)[some], less, atol=1e-16)
    assert float(info.log_base_weight[3]) == int(info.regime_plus[3]) == 0
    for one, two in zip(info.levels[0], other.levels[0], strict=True):
        np.testing.assert_allclose(one, two, atol=1e-16)


def test_no_level_is_the_fiber_gate_bit_for_bit():
    ratio = ratios(0.3)
    found = hierarchy(ratio, MASK, (), (BUDGETS[:2],), BUDGETS[2])
    expected = fiber(ratio, MASK, *BUDGETS)
    for one, two in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("scale", [0.1, 0.3])
def test_singleton_levels_change_nothing(scale):
    """A level whose nodes hold one node each, the budgets of the level that it takes the place of."""
    ratio = ratios(scale)
    expected, _ = hierarchy(ratio, MASK, (GROUPS, DOMAINS), PAIRS, LIMIT)
    alone = np.arange(6)[::-1].copy()
    budgets = (PAIRS[0], PAIRS[0], *PAIRS[1:])
    found, _ = hierarchy(ratio, MASK, (alone, GROUPS[alone], DOMAINS), budgets, LIMIT)
    np.testing.assert_allclose(found, expected, atol=1e-15)


def test_sequences_may_be_permuted():
    ratio, order = ratios(0.2), np.array([4, 2, 0, 5, 3, 1])
    expected, _ = hierarchy(ratio, MASK, (GROUPS, DOMAINS), PAIRS, LIMIT)
    found, _ = hierarchy(ratio[order], MASK[order], (GROUPS[order], DOMAINS), PAIRS, LIMIT)
    np.testing.assert_allclose(found, np.array(expected)[order], atol=1e-16)


def test_types_and_traced_numbers():
    """float32 is kept, narrower types are widened, one program serves all budgets."""
    ratio = np.nan_to_num(ratios(0.1))
    exact = fiber(ratio, MASK, *BUDGETS)[0]
    single = fiber(ratio.astype(np.float32), MASK, *BUDGETS)[0]
    assert single.dtype == jnp.float32
    # Rollback multiplies the rounding of the aggregate by T.
    np.testing.assert_allclose(single, exact, atol=6 * 2e-8)
    narrow = jnp.asarray(ratio).astype(jnp.bfloat16)
    log_gate, info = fiber(narrow, MASK.astype(np.float32), *BUDGETS)
    assert log_gate.dtype == info.u.dtype == jnp.float32
    np.testing.assert_array_equal(
        log_gate, fiber(np.array(narrow.astype(jnp.float32)), MASK, *BUDGETS)[0]
    )
    before = fiber._cache_size()
    for factor in (0.5, 2.0):
        fiber(ratio, MASK, *(factor * part for part in BUDGETS))
    assert fiber._cache_size() == before


def test_budgets_have_gradients():
    """Of log G's sum by C± and ε: central differences."""
    ratio = np.nan_to_num(ratios(0.12, seed=2))
    total = jax.jit(lambda parts: jnp.sum(fiber_gate(ratio, MASK, *parts)[0]))
    gradient = jax.jit(jax.grad(total))(np.array(BUDGETS))
    for place, step in enumerate(1e-7 * np.eye(3)):
        slope = float(total(np.array(BUDGETS) + step) - total(np.array(BUDGETS) - step)) / 2e-7
        np.testing.assert_allclose(gradient[place], slope, atol=1e-6)


ZEROS, ONES = np.zeros((2, 3)), np.ones((2, 3))


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("named", "arguments"),
    [
        ("log_ratio", (np.zeros(3), ONES, 0.1, 0.1, 0.1)),
        ("log_ratio", (np.full((2, 3), np.nan), ONES, 0.1, 0.1, 0.1)),
        ("log_ratio", (np.full((2, 3), np.inf), ONES, 0.1, 0.1, 0.1)),
        ("mask", (ZEROS, np.ones((3, 2)), 0.1, 0.1, 0.1)),
        ("mask", (ZEROS, 0.5 * ONES, 0.1, 0.1, 0.1)),
        ("mask", (ZEROS, 2 * ONES, 0.1, 0.1, 0.1)),
        ("mask", (ZEROS, np.full((2, 3), np.nan), 0.1, 0.1, 0.1)),
        ("budget_plus", (ZEROS, ONES, -0.1, 0.1, 0.1)),
        ("budget_minus", (ZEROS, ONES, 0.1, np.nan, 0.1)),
        ("budget_minus", (ZEROS, ONES, 0.1, np.ones(2), 0.1)),
        ("epsilon", (ZEROS, ONES, 0.1, 0.1, 0.0)),
        ("epsilon", (ZEROS, ONES, 0.1, 0.1, np.ones(2))),
    ],
)
def test_bad_input_is_named(named, arguments):
    with pytest.raises(ValueError, match=rf"^{named}: "):
        fiber_gate(*arguments)


def test_on_the_edge_of_the_identity_box_rounding_decides():
    """The mean of 25 times 0.1 comes out at 0.1 or an ulp above; either way the gate hardly moves."""
    rows = np.full((1, 25), 0.1)
    log_gate, info = fiber_gate(rows, np.ones((1, 25)), 0.1, 0.1, 0.1)
    assert int(info.regime_plus[0]) == int(info.log_s_plus[0] > 0.1)
    np.testing.assert_allclose(log_gate, rows, atol=1e-14)
    _, inside = fiber_gate(rows * (1 - 1e-14), np.ones((1, 25)), 0.1, 0.1, 0.1)
    assert int(inside.regime_plus[0]) == 0


ONE = ((0.1, 0.1),)


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("named", "parents", "budgets", "epsilon"),
    [
        ("parents", np.zeros(2, int), ONE * 2, 0.1),
        ("parents", (np.zeros(3, int),), ONE * 2, 0.1),
        ("parents", (np.zeros(2),), ONE * 2, 0.1),
        ("parents", (np.array([0, 2]),), ONE * 2, 0.1),
        ("parents", (np.array([-1, 0]),), ONE * 2, 0.1),
        ("parents", (np.array([0, 1]), np.zeros(1, int)), ONE * 3, 0.1),
        ("parents", (np.array([0, 1]), np.zeros((2, 1), int)), ONE * 3, 0.1),
        ("budgets", (np.zeros(2, int),), ONE, 0.1),
        ("budgets", (), ((0.1, 0.1, 0.1),), 0.1),
        ("budgets", (), (0.1,), 0.1),
        ("budgets", (), ((0.1, -0.1),), 0.1),
        ("budgets", (), 0.1, 0.1),
        ("budgets", (), np.ones((2, 2)), 0.1),
        ("epsilon", (), ONE, -1.0),
    ],
)
def test_bad_hierarchies_are_named(named, parents, budgets, epsilon):
    with pytest.raises(ValueError, match=rf"^{named}: "):
        hierarchy_gate(ZEROS, ONES, parents, budgets, epsilon)


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("named", "arguments"),
    [
        ("x", (np.nan, 0.1, 1)),
        ("budget", (0.1, -1.0, 1)),
        ("k", (0.1, 0.1, 0)),
        ("budget", (np.zeros(2), np.zeros(3), 1)),
        ("k", (np.zeros(2), np.zeros(2), np.ones(3))),
        ("k", (np.zeros(2), 0.1, np.ones(0))),
    ],
)
def test_bad_aggregates_are_named(named, arguments):
    with pytest.raises(ValueError, match=rf"^{named}: "):
        aggregate_gate(*arguments)


@pytest.mark.usefixtures("as_users_call")
def test_empty_levels_and_narrow_types():
    no_nodes = (np.array([0, 0]), np.zeros(0, int))
    with pytest.raises(
        ValueError, match=r"^parents: got the id 0 at level 0, expected a level 1 with"
    ):
        hierarchy_gate(ZEROS, ONES, no_nodes, ONE * 3, 0.1)
    assert aggregate_gate(np.full(2, 0.1, np.float16), 0.2, 1).dtype == np.float32


def test_traced_parents_out_of_range_give_nan():
    """A gather would read another node without a word."""
    budgets = ((0.12, 0.05),) * 3

    @jax.jit
    @jax.value_and_grad
    def total(ratio, *parents):
        return jnp.sum(hierarchy_gate(ratio, MASK, parents, budgets, 0.04)[0])

    ratio = np.full(MASK.shape, 0.01)
    low, high = np.zeros(len(MASK), int), np.array([0, 1])
    low[-1] = 1
    assert np.isfinite(total(ratio, low, high)[0])
    for parents in ((low + 1, high), (low - 1, high), (low, high + 1), (low, high - 2)):
        value, gradient = total(ratio, *parents)
        assert np.isnan(value)
        assert np.isnan(np.asarray(gradient)[np.asarray(MASK, bool)]).all()
