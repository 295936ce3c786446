"""Gradient alignment control against a loop over flat vectors, and inside optax."""

import functools

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import optax
import pytest

from boundlab.models.gac import GacState, gac
from boundlab.precision import standard_promotion

RNG = np.random.default_rng(3)
LOW, HIGH = 0.1, 0.7


def tree(vector):
    """Ten numbers as three leaves, one of them a scalar."""
    return {"a": vector[:3], "b": (vector[3:9].reshape(2, 3), vector[9])}


def flat(leaves):
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(leaves)])


def by_hand(gradients, kappa, reference, limit):
    """Emitted updates, cosines, regimes and counts, one vector after another."""
    previous, skips, rows = np.zeros(10), 0, []
    for g in gradients:
        norms = np.linalg.norm(g) * np.linalg.norm(previous)
        c = g @ previous / norms if norms > 0 else 0.0
        regime, update = 0, g
        if c > HIGH and skips < limit:
            regime, update = 2, np.zeros(10)
        elif c > LOW:
            along = (g @ previous) / (previous @ previous) * previous
            shares = {
                "ratio": LOW / c,
                "exact": LOW / c * np.sqrt((1 - c * c) / (1 - LOW * LOW)),
                "zero": 0.0,
            }
            regime, update = 1, g - (1 - shares[kappa]) * along
        skips = skips + 1 if regime == 2 else 0
        rows.append((update, c, regime, skips))
        if reference == "raw":
            previous = g
        elif regime != 2:
            previous = update
    return [np.array(column) for column in zip(*rows, strict=True)]


def walk():
    """Gradients with cosines of all regimes, negative ones and a zero among them."""
    steps = [RNG.standard_normal(10)]
    for mix in (0.0, 0.4, 0.95, 0.95, 0.95, 0.95, -0.5, 0.99, 0.99, 0.3, 0.3):
        steps.append(mix * steps[-1] + np.sqrt(1 - mix**2) * RNG.standard_normal(10))
    steps.insert(8, np.zeros(10))
    return np.array(steps)


WALK = walk()


@functools.cache
def program(params=None, **options):
    """Last state, and updates and states of every step, of gradients stacked along the first axis.

    `params`: type of the parameters, where it isn't that of the gradients.
    """
    transform = gac(**options)

    def step(state, gradient):
        update, state = transform.update(gradient, state)
        return state, (update, state._replace(previous=None))

    def run(gradients):
        first = jax.tree.map(lambda leaf: leaf[0].astype(params or leaf.dtype), gradients)
        return jax.lax.scan(step, transform.init(first), gradients)

    return jax.jit(run)


@pytest.mark.parametrize(
    ("kappa", "reference", "limit"),
    [("ratio", "raw", 2), ("exact", "raw", 0), ("zero", "raw", 9), ("ratio", "applied", 2)],
)
def test_walk_by_hand(kappa, reference, limit):
    stacked = jax.vmap(tree)(WALK)
    last, (updates, states) = program(
        low=LOW, high=HIGH, kappa=kappa, reference=reference, max_skips=limit
    )(stacked)
    update, cosine, regime, skips = by_hand(WALK, kappa, reference, limit)
    rows = [np.asarray(u).reshape(len(WALK), -1) for u in jax.tree.leaves(updates)]
    found = np.concatenate(rows, axis=1)
    np.testing.assert_allclose(found, update, atol=1e-13)
    np.testing.assert_allclose(states.cosine, cosine, atol=1e-14)
    np.testing.assert_array_equal(states.regime, regime)
    np.testing.assert_array_equal(states.num_skips, skips)
    assert set(regime) == ({0, 1, 2} if limit else {0, 1})
    if reference == "raw":
        np.testing.assert_array_equal(flat(last.previous), WALK[-1])


def pair(cosine):
    basis = np.linalg.qr(RNG.standard_normal((10, 2)))[0].T
    return 3.0 * basis[0], 0.2 * (cosine * basis[0] + np.sqrt(1 - cosine**2) * basis[1])


def once(previous, gradient, **options):
    """The update that follows `previous`, and the state after it."""
    _, (updates, states) = program(**options)(np.stack([previous, gradient]))
    return np.asarray(updates)[1], jax.tree.map(lambda s: np.asarray(s)[1], states)


@pytest.mark.parametrize("cosine", [0.11, 0.5, 0.999, 1 - 1e-8])
def test_exact_share_gives_the_low_cosine(cosine):
    previous, gradient = pair(cosine)
    update, _ = once(previous, gradient, low=LOW, kappa="exact")
    norms = np.linalg.norm(update) * np.linalg.norm(previous)
    np.testing.assert_allclose(update @ previous / norms, LOW, atol=1e-11)
    assert np.linalg.norm(update) <= np.linalg.norm(gradient)


def test_what_passes_is_not_touched():
    for cosine in (-0.9, 0.0, 0.0999):
        previous, gradient = pair(cosine)
        update, state = once(previous, gradient, low=LOW)
        assert int(state.regime) == 0
        np.testing.assert_array_equal(update, gradient)


def test_one_never_skips():
    """The default `high` is 1: the same gradient again, with a cosine that may round above 1."""
    for _ in range(5):
        gradient = RNG.standard_normal(10)
        _, state = once(gradient, 7.0 * gradient)
        assert (int(state.regime), int(state.num_skips)) == (1, 0)
        assert 1 - 1e-15 <= float(state.cosine) <= 1.0


def test_thresholds_may_be_traced():
    previous, gradient = pair(0.5)

    def emitted(low):
        transform = gac(low, 0.6)
        _, state = transform.update(jnp.asarray(previous), transform.init(jnp.asarray(previous)))
        update, state = transform.update(jnp.asarray(gradient), state)
        return update, state.regime

    updates, regimes = jax.jit(jax.vmap(emitted))(np.array([0.2, 0.55]))
    np.testing.assert_array_equal(regimes, [1, 0])
    expected = gradient - (1 - 0.2 / 0.5) * (gradient @ previous) / (previous @ previous) * previous
    np.testing.assert_allclose(updates[0], expected, atol=1e-14)


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_size_does_not_matter(size):
    """Squares of these would vanish or overflow in float32."""
    previous, gradient = (v.astype(np.float32) for v in pair(0.5))
    plain, state = once(previous, gradient, low=LOW)
    scaled, other = once(previous / np.float32(size), np.float32(size) * gradient, low=LOW)
    assert state.cosine.dtype == np.float32
    np.testing.assert_allclose(other.cosine, state.cosine, rtol=1e-6)
    np.testing.assert_allclose(scaled / np.float32(size), plain, atol=1e-6)


def test_half_precision_leaves_keep_their_type():
    """bfloat16 leaves beside float32 ones: sums are float32, updates and state as they came."""
    half = ml_dtypes.bfloat16
    rows = np.stack(pair(0.6)).astype(np.float32)
    leaves = {"h": jnp.asarray(rows[:, :8], half), "f": jnp.asarray(rows[:, 8:])}
    last, (updates, states) = program(low=LOW)(leaves)
    assert (updates["h"].dtype, updates["f"].dtype) == (half, np.float32)
    assert (last.previous["h"].dtype, last.cosine.dtype) == (half, np.float32)
    rounded = np.concatenate([np.asarray(leaves["h"], np.float64), rows[:, 8:]], axis=1)
    expected = rounded[0] @ rounded[1] / np.prod(np.linalg.norm(rounded, axis=1))
    np.testing.assert_allclose(states.cosine[1], expected, atol=1e-6)
    with np.errstate(invalid="ignore"):
        along = (rounded[0] @ rounded[1]) / (rounded[0] @ rounded[0]) * rounded[0]
    update = rounded[1] - (1 - LOW / expected) * along
    np.testing.assert_allclose(np.asarray(updates["h"][1], np.float64), update[:8], rtol=2**-7)


def test_state_keeps_the_types_of_parameters():
    """Gradients wider than the parameters, and the other way round, in one compiled loop."""
    for params, gradients in ((np.float32, np.float64), (np.float64, np.float32)):
        stacked = WALK.astype(gradients)
        last, (updates, _) = program(params)(stacked)
        assert (last.previous.dtype, updates.dtype) == (params, gradients)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("reference", ["raw", "applied"])
def test_not_finite_is_marked_and_not_kept(bad, reference):
    rows = WALK[:3].copy()
    rows[1, 4] = bad
    _, (updates, states) = program(low=LOW, reference=reference)(rows)
    np.testing.assert_array_equal(updates[1], rows[1])
    assert np.isnan(states.cosine[1])
    assert int(states.regime[1]) == 0
    expected = rows[0] @ rows[2] / np.linalg.norm(rows[0]) / np.linalg.norm(rows[2])
    np.testing.assert_allclose(states.cosine[2], expected, atol=1e-14)


def test_a_zero_gradient_is_a_reference_like_any_other():
    rows = np.stack([WALK[0], np.zeros(10), WALK[0]])
    _, (updates, states) = program(low=LOW)(rows)
    np.testing.assert_array_equal(states.cosine, 0.0)
    np.testing.assert_array_equal(updates, rows)


def test_nothing_to_control():
    transform = gac()

    @jax.jit
    def both(empty):
        none, some = transform.init({}), transform.init(empty)
        return transform.update({}, none), transform.update(empty, some)

    (update, state), (_, other) = both(np.zeros((0, 3)))
    assert update == {}
    assert isinstance(state, GacState)
    assert float(state.cosine) == float(other.cosine) == 0.0
    assert int(state.regime) == int(other.regime) == 0


@pytest.mark.parametrize("kappa", ["ratio", "exact", "zero"])
def test_the_largest_and_smallest_numbers_have_a_cosine(kappa):
    """Nothing overflows, nor does what a compiler divides by become 0."""
    transform = gac(0.5, np.inf, kappa=kappa)
    first, second = np.array([1.0, 1.1]), np.array([1.1, -0.1])
    aligned = np.array([1.0, 1.0])
    update = jax.jit(transform.update)
    for dtype, sizes in (
        (np.float32, (1.0, 9e37, 3e38, 1.3e-38)),
        (np.float64, (1.0, 1e308, 1.6e308, 2.5e-308)),
    ):
        for size in sizes:
            rows = [(row * dtype(size)).astype(dtype) for row in (aligned, first, second)]
            state = update(rows[0], transform.init(rows[0]))[1]
            emitted, state = update(rows[1], state)
            by_hand = first @ aligned / np.linalg.norm(first) / np.linalg.norm(aligned)
            np.testing.assert_allclose(state.cosine, by_hand, rtol=1e-6)
            assert int(state.regime) == 1
            assert np.isfinite(emitted).all()
            if size >= 1.0:
                kept = np.asarray(emitted).astype(np.float64) / size
                np.testing.assert_allclose(
                    kept, by_scale(first, aligned, by_hand, kappa), atol=1e-6
                )
    # Subnormal numbers count as 0 where they are flushed.
    for row in (first.astype(np.float32) * np.float32(1e-39), first * 1e-309):
        emitted, state = update(row, update(row, transform.init(row))[1])
        assert np.isclose(state.cosine, 1.0, rtol=1e-2) or float(state.cosine) == 0.0


def by_scale(gradient, before, cosine, kappa):
    """The emitted update by the module's formula, c_low = ½."""
    along = gradient @ before / (before @ before) * before
    share = {
        "ratio": 0.5 / cosine,
        "exact": 0.5 / cosine * np.sqrt((1 - cosine**2) / 0.75),
        "zero": 0.0,
    }[kappa]
    return gradient - along + share * along


def test_an_infinite_limit_never_skips():
    for high in (np.inf, np.float32(np.inf), jnp.asarray(np.inf)):
        transform = gac(0.1, high)
        update, ones = jax.jit(transform.update), np.ones(2)
        assert int(update(ones, update(ones, transform.init(ones))[1])[1].regime) == 1


def test_derivatives_are_finite():
    """Through zero gradients and references, for those who differentiate their optimizer."""
    transform = gac(LOW, kappa="exact")

    def total(previous, gradient):
        _, state = transform.update(previous, transform.init(previous))
        return jnp.sum(transform.update(gradient, state)[0])

    zero, one = np.zeros(10), WALK[0]
    pairs = np.stack([zero, one, zero, one]), np.stack([zero, zero, one, one])
    for slopes in jax.jit(jax.vmap(jax.grad(total, (0, 1))))(*pairs):
        assert np.isfinite(slopes).all()


def test_inside_other_transformations():
    """In a chain, over averaged micro-batches, and behind a guard against NaN."""
    rows = np.repeat(WALK[:4], 2, axis=0)
    with standard_promotion():
        chain = optax.chain(gac(LOW), optax.scale(-0.5))
        _, (plain, _) = _many(chain, WALK[:4])
        averaged = optax.MultiSteps(chain, 2)
        _, (every, _) = _many(averaged, rows)
        # MultiSteps averages with float32 weights.
        np.testing.assert_allclose(every[1::2], plain, atol=1e-6)
        np.testing.assert_array_equal(every[::2], 0.0)
        guarded = optax.apply_if_finite(chain, 3)
        broken = np.insert(WALK[:4], 2, np.full(10, np.nan), axis=0)
        _, (safe, _) = _many(guarded, broken)
        np.testing.assert_array_equal(np.delete(safe, 2, axis=0), plain)
        np.testing.assert_array_equal(safe[2], 0.0)


def _many(transform, rows):
    def step(state, gradient):
        update, state = transform.update(gradient, state, jnp.zeros(10))
        return state, (update, jnp.zeros(()))

    rows = jnp.asarray(rows)
    return jax.jit(lambda s, g: jax.lax.scan(step, s, g))(transform.init(rows[0]), rows)


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("named", "options"),
    [
        ("low", {"low": -0.1}),
        ("low", {"low": 1.0}),
        ("low", {"low": np.nan}),
        ("low", {"low": [0.1, 0.2]}),
        ("high", {"low": 0.5, "high": 0.5}),
        ("high", {"high": -np.inf}),
        ("high", {"high": np.nan}),
        ("high", {"high": np.ones(2)}),
        ("kappa", {"kappa": "ratios"}),
        ("reference", {"reference": None}),
        ("max_skips", {"max_skips": -1}),
        ("max_skips", {"max_skips": 1.5}),
    ],
)
def test_bad_options_are_named(named, options):
    with pytest.raises(ValueError, match=rf"^{named}: "):
        gac(**options)


@pytest.mark.usefixtures("as_users_call")
def test_bad_trees_are_named():
    transform = gac()
    for bad in (np.arange(3), np.zeros(2, complex), {"a": 0.5}):
        with pytest.raises(ValueError, match=r"^params: "):
            transform.init(bad)
    state = transform.init({"a": np.zeros(3)})
    for bad in ({"b": np.zeros(3)}, {"a": np.zeros(4)}, {"a": np.zeros(3, int)}):
        with pytest.raises(ValueError, match=r"^updates: "):
            transform.update(bad, state)
