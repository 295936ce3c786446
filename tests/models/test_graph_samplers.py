"""The sampler of graphs against loops in NumPy; symmetry, relabelling, padding, and bad input."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from boundlab.models import samplers
from boundlab.models import sde as sdes
from boundlab.models.sampler_noise import graph_noise, mirrored, normal_noise, symmetric_noise
from boundlab.models.sampler_steps import coefficients

TIMES = np.array([1.0, 0.6, 0.3, 0.05])
FEATURES, STRUCTURE = sdes.vp(1.0, 9.0), sdes.ve(0.1, 1.0)
B, N, F = 2, 5, 3
# A fourth node that is none in the first graph; the second has all.
MASK = np.array([[True, True, True, False, True], [True] * 5])


def _score(x, adjacency, t):
    """Equivariant, coupled, polynomial; the second result with a diagonal that must be dropped."""
    mixed = adjacency @ x
    pairs = x @ x.swapaxes(1, 2)
    return -x + 0.2 * mixed - 0.1 * t * x**3, -adjacency + 0.1 * pairs - 0.05 * adjacency**3


def _folded(key, *numbers):
    for number in numbers:
        key = jax.random.fold_in(key, number)
    return key


_noise = jax.jit(lambda key: graph_noise(key, B, N, F, jnp.float64))
_coefficients = jax.jit(coefficients, static_argnums=0)


def _normal(key):
    return tuple(np.asarray(z) for z in _noise(key))


def _loop(key, scheme, order, corrector, denoise) -> tuple[np.ndarray, np.ndarray]:
    """Both blocks step by step, with masks and symmetry by hand."""
    tables = [_coefficients(scheme, s, TIMES) for s in (FEATURES, STRUCTURE)]
    tables = [jax.tree.map(np.asarray, table) for table in tables]
    off = MASK[:, :, None] * MASK[:, None, :] * (1 - np.eye(N))

    def score(x, a, t):
        s, r = _score(x, a, t)
        return s * MASK[:, :, None], r * off

    def both(x, a, t, move, known=None):
        s, r = score(x, a, t) if known is None else known
        new = move(0, x, s)
        if order == "gauss_seidel" and known is None:
            r = score(new, a, t)[1]
        return new, move(1, a, r), (s, r)

    x, a = _normal(_folded(key, 0))
    x, a = x * MASK[:, :, None], a * off
    for k, t in enumerate(TIMES[:-1]):
        shared = None
        for i in range(corrector.num_steps if corrector else 0):
            noises = _normal(_folded(key, 2, k, i))
            noises = (noises[0] * MASK[:, :, None], noises[1] * off)

            def correct(b, y, s, noises=noises, k=k):
                norm = [np.sqrt((v.reshape(B, -1) ** 2).sum(axis=1)).mean() for v in (noises[b], s)]
                step = 2 * float(tables[b].alpha[k]) * (corrector.snr * norm[0] / norm[1]) ** 2
                return y + step * s + np.sqrt(2 * step) * corrector.scale * noises[b]

            x, a, used = both(x, a, t, correct)
            shared = used if shared is None else shared
        kicks = _normal(_folded(key, 1, k))
        kicks = (kicks[0] * MASK[:, :, None], kicks[1] * off)
        last = denoise and k == len(TIMES) - 2

        def advance(b, y, s, kicks=kicks, k=k, last=last):
            table = [float(column[k]) for column in tables[b][:3]]
            return table[0] * y + table[1] * s + (0 if last else table[2]) * kicks[b]

        known = shared if scheme == "symmetric_splitting" else None
        x, a, _ = both(x, a, t, advance, known)
    return x, a


@pytest.mark.parametrize(
    ("scheme", "order", "corrector", "denoise"),
    [
        ("euler_maruyama", "jacobi", None, True),
        ("exponential_integrator", "gauss_seidel", None, False),
        ("ancestral", "gauss_seidel", samplers.Langevin(0.16, 0.7, 2), True),
        ("symmetric_splitting", "jacobi", samplers.Langevin(0.16, 0.7), False),
    ],
)
def test_the_sampler_is_its_loop(scheme, order, corrector, denoise, key: jax.Array) -> None:
    found = samplers.sample_graphs(
        *(key, FEATURES, STRUCTURE, _score, TIMES, B, N, F, scheme),
        order=order,
        corrector=corrector,
        denoise=denoise,
        mask=MASK,
    )
    for got, expected in zip(found, _loop(key, scheme, order, corrector, denoise), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-11, atol=1e-13)


def test_relabelling_the_noise_relabels_the_graphs(key: jax.Array) -> None:
    noise = samplers.Langevin(0.16, 0.7)

    @jax.jit
    def run(order):
        def relabelled(key, batch, nodes, features, dtype):
            x, a = graph_noise(key, batch, nodes, features, dtype)
            return x[:, order], a[:, order][:, :, order]

        return samplers.sample_graphs(
            *(key, FEATURES, STRUCTURE, _score, np.linspace(1, 0.01, 31), B, N, F),
            order="gauss_seidel",
            corrector=noise,
            mask=jnp.asarray(MASK)[:, order],
            draw=relabelled,
        )

    order = np.array([3, 0, 4, 2, 1])
    x, a = (np.asarray(block) for block in run(np.arange(N)))
    y, b = run(order)
    assert np.isfinite(x).all()
    assert np.isfinite(a).all()
    np.testing.assert_allclose(y, x[:, order], rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(b, a[:, order][:, :, order], rtol=1e-10, atol=1e-10)


@pytest.mark.smoke
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_symmetric_to_the_last_bit(dtype, key: jax.Array) -> None:
    """Whatever the score's rounding, and however lopsided it is."""
    tilt = np.random.default_rng(0).standard_normal((1, N, N)).astype(dtype)

    def lopsided(x, adjacency, t):
        return -x, -adjacency * (1 + tilt)

    x, a = samplers.sample_graphs(
        key, FEATURES, STRUCTURE, lopsided, TIMES, B, N, F, dtype=dtype, mask=MASK
    )
    assert x.dtype == a.dtype == dtype
    np.testing.assert_array_equal(a, np.swapaxes(a, 1, 2))
    assert not np.asarray(a)[:, np.arange(N), np.arange(N)].any()
    assert not np.asarray(a)[~MASK].any()
    assert not np.asarray(x)[~MASK].any()
    assert (np.asarray(a)[1][np.triu_indices(N, 1)] != 0).all()


def test_padding_changes_nothing(key: jax.Array) -> None:
    """Three nodes by themselves and within five, with the same noise."""
    mask = np.array([[True] * 3 + [False] * 2] * B)

    def padded(key, batch, nodes, features, dtype):
        x, a = graph_noise(key, batch, 3, features, dtype)
        fill = (0, nodes - 3)
        x = jnp.pad(x, ((0, 0), fill, (0, 0)), constant_values=jnp.nan)
        return x, jnp.pad(a, ((0, 0), fill, fill), constant_values=jnp.nan)

    alone = samplers.sample_graphs(key, FEATURES, STRUCTURE, _score, TIMES, B, 3, F)
    within = samplers.sample_graphs(
        key, FEATURES, STRUCTURE, _score, TIMES, B, N, F, mask=mask, draw=padded
    )
    x, a = map(np.asarray, within)
    np.testing.assert_allclose(x[:, :3], alone[0], rtol=1e-12)
    np.testing.assert_allclose(a[:, :3, :3], alone[1], rtol=1e-12)


def test_one_draw_a_pair(key: jax.Array) -> None:
    """Unit variance of features and pairs, uncorrelated, mirrored with zero diagonal."""
    count, n = 4000, 4
    draw = jax.jit(graph_noise, static_argnums=(1, 2, 3, 4))
    x, a = (np.asarray(z) for z in draw(key, count, n, 2, jnp.float64))
    np.testing.assert_array_equal(a, a.swapaxes(1, 2))
    assert not a[:, np.arange(n), np.arange(n)].any()
    flat = np.concatenate([x.reshape(count, -1), a[:, *np.triu_indices(n, 1)]], axis=1)
    covariance = flat.T @ flat / count
    expected = np.eye(flat.shape[1])
    z = (covariance - expected) * np.sqrt(count / (1 + expected))
    assert np.abs(z).max() < 4.9
    again = jax.jit(lambda key: symmetric_noise(key, 3, n, jnp.float32))(key)
    assert again.shape == (3, n, n)
    assert again.dtype == jnp.float32
    np.testing.assert_array_equal(again, np.swapaxes(again, 1, 2))


def test_many_normals_at_once(key: jax.Array) -> None:
    """The generator of large draws: its law, moments, neighbours and halves; never infinite."""
    count = 400_001
    many = jax.jit(lambda key: normal_noise(key, (count,), jnp.float32))
    z = np.asarray(many(key), np.float64)
    assert stats.kstest(z, "norm").pvalue > 1e-6
    again = np.asarray(many(jax.random.fold_in(key, 1)))
    half = (count + 1) // 2
    for other in (np.roll(z, 1), np.roll(z, half), again):
        assert abs((z * other).mean()) * np.sqrt(count) < 4.9
        assert abs(((z * other) ** 2).mean() - 1) * np.sqrt(count / 8) < 4.9
    assert abs((z**4).mean() - 3) * np.sqrt(count / 96) < 4.9
    assert np.isfinite(z).all()
    shaped = jax.eval_shape(lambda k: normal_noise(k, (100, 100), jnp.float32), key)
    assert shaped.shape == (100, 100)
    assert shaped.dtype == jnp.float32
    few = normal_noise(key, (3,), jnp.float32)
    np.testing.assert_array_equal(few, jax.random.normal(key, (3,), jnp.float32))


def test_mirroring_by_hand() -> None:
    mirror = jax.jit(mirrored, static_argnums=1)
    found = mirror(np.array([[1.0, 2.0, 3.0]]), 3)
    np.testing.assert_array_equal(found, [[[0, 1, 2], [1, 0, 3], [2, 3, 0]]])
    np.testing.assert_array_equal(mirror(np.zeros((2, 0)), 1), np.zeros((2, 1, 1)))


def test_the_least_graphs(key: jax.Array) -> None:
    """No graph, and graphs of one node."""
    x, a = samplers.sample_graphs(key, FEATURES, STRUCTURE, _score, TIMES, 0, N, F)
    assert x.shape == (0, N, F)
    assert a.shape == (0, N, N)
    x, a = samplers.sample_graphs(
        key, FEATURES, STRUCTURE, _score, TIMES, 2, 1, F, corrector=samplers.Langevin()
    )
    assert np.isfinite(x).all()
    np.testing.assert_array_equal(a, np.zeros((2, 1, 1)))


def test_start(key: jax.Array) -> None:
    start = (np.ones((B, N, F)), np.ones((B, N, N)) - np.eye(N))
    x, a = samplers.sample_graphs(
        *(key, FEATURES, FEATURES, lambda x, a, t: (-x, -a), TIMES, B, N, F, "probability_flow"),
        start=start,
    )
    factor = np.asarray(x)[0, 0, 0]
    np.testing.assert_allclose(x, np.full((B, N, F), factor), rtol=1e-14)
    np.testing.assert_allclose(a, start[1] * factor, rtol=1e-14)


def test_short_schedules_are_warned_of(key: jax.Array) -> None:
    """Of each block by name."""
    short = sdes.vp(0.1, 1.0)
    for pair, named in (((short, FEATURES), "sde_features"), ((FEATURES, short), "sde_structure")):
        with pytest.warns(UserWarning, match=f"^{named}.*0.43 nats"):
            jax.eval_shape(
                lambda k, pair=pair: samplers.sample_graphs(k, *pair, _score, TIMES, B, N, F), key
            )


def test_a_diverging_score_is_an_error(key: jax.Array) -> None:
    def broken(x, adjacency, t):
        return -x, jnp.full_like(adjacency, jnp.nan)

    with pytest.raises(ValueError, match=r"^score"):
        samplers.sample_graphs(key, FEATURES, STRUCTURE, broken, TIMES, B, N, F)


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"key": 1}, "key"),
        ({"sde_features": None}, "sde_features"),
        ({"sde_structure": _score}, "sde_structure"),
        ({"score": lambda x, a, t: x}, "score"),
        ({"score": lambda x, a, t: (a, x)}, "score"),
        ({"times": [0.5]}, "times"),
        ({"times": [0.5, 0.6]}, "times"),
        ({"batch": -1}, "batch"),
        ({"num_nodes": 0}, "num_nodes"),
        ({"num_features": 0}, "num_features"),
        ({"scheme": "s4"}, "scheme"),
        ({"order": "seidel"}, "order"),
        ({"mask": np.ones((B, N))}, "mask"),
        ({"mask": np.ones((B, N + 1), bool)}, "mask"),
        ({"start": np.zeros((B, N, F))}, "start"),
        ({"start": (np.zeros((B, N, F)), np.zeros((B, N, F)))}, "start"),
        ({"corrector": "langevin"}, "corrector"),
    ],
)
def test_bad_input(changed, named, key: jax.Array, as_users_call) -> None:
    arguments = {
        "key": key,
        "sde_features": FEATURES,
        "sde_structure": STRUCTURE,
        "score": _score,
        "times": TIMES,
        "batch": B,
        "num_nodes": N,
        "num_features": F,
    }
    with pytest.raises(ValueError, match=f"^{named}"):
        samplers.sample_graphs(**arguments | changed)
