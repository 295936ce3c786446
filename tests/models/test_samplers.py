"""Samplers against loops in NumPy with the same noise, against diffrax, and against moments."""

import itertools
import warnings

import diffrax
import jax
import jax.numpy as jnp
import lineax
import numpy as np
import pytest

import boundlab
from boundlab.models import samplers
from boundlab.models import sde as sdes
from boundlab.models.sampler_steps import SCHEMES, coefficients

TIMES = np.array([1.0, 0.7, 0.45, 0.2, 0.05])
VP = sdes.vp(1.0, 9.0)


_coefficients = jax.jit(coefficients, static_argnums=0)


def _score(x: jax.Array, t: jax.Array) -> jax.Array:
    return -x / (1 + jnp.exp(-t)) + jnp.sin(x)


def _numpy_score(x: np.ndarray, t: float) -> np.ndarray:
    return -x / (1 + np.exp(-t)) + np.sin(x)


def _noise(key: jax.Array, shape: tuple[int, ...]) -> np.ndarray:
    return np.asarray(jax.random.normal(key, shape, np.float64))


def _folded(key: jax.Array, *numbers: int) -> jax.Array:
    for number in numbers:
        key = jax.random.fold_in(key, number)
    return key


def _loop(key, sde, shape, scheme, denoise, corrector) -> np.ndarray:
    """The sampler as a loop over the documented keys."""
    table = jax.tree.map(np.asarray, _coefficients(scheme, sde, TIMES))
    x = _noise(_folded(key, 0), shape)
    for k, tau in enumerate(TIMES[:-1]):
        a, b, q, alpha = (
            float(column[k]) for column in (table.linear, table.score, table.noise_std, table.alpha)
        )
        score = _numpy_score(x, tau)
        if corrector is not None:
            for i in range(corrector.num_steps):
                s, z = _numpy_score(x, tau), _noise(_folded(key, 2, k, i), shape)
                norms = [np.sqrt((y.reshape(len(y), -1) ** 2).sum(axis=1)).mean() for y in (z, s)]
                step = 2 * alpha * (corrector.snr * norms[0] / norms[1]) ** 2
                x = x + step * s + np.sqrt(2 * step) * corrector.scale * z
            if scheme != "symmetric_splitting":
                score = _numpy_score(x, tau)
        x = a * x + b * score
        if not (denoise and k == len(TIMES) - 2):
            x = x + q * _noise(_folded(key, 1, k), shape)
    return x


@pytest.mark.parametrize("scheme", SCHEMES)
def test_each_scheme_is_its_loop(scheme: str, key: jax.Array) -> None:
    found = samplers.sample(key, VP, _score, TIMES, (3, 2), scheme)
    np.testing.assert_allclose(found, _loop(key, VP, (3, 2), scheme, False, None), rtol=1e-12)


@pytest.mark.parametrize("scheme", ["euler_maruyama", "symmetric_splitting"])
def test_denoising_and_correction_are_the_loop(scheme: str, key: jax.Array) -> None:
    corrector = samplers.Langevin(0.16, 0.7, 2)
    found = samplers.sample(
        key, VP, _score, TIMES, (3, 2), scheme, denoise=True, corrector=corrector
    )
    expected = _loop(key, VP, (3, 2), scheme, True, corrector)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


class _Increments(diffrax.AbstractPath):
    """A path with given increments over the steps of a grid."""

    increments: jax.Array
    grid: jax.Array
    t0: float = 0.0
    t1: float = 1.0

    def evaluate(self, t0, t1=None, left=True):
        del t1, left
        k = jnp.argmin(jnp.abs(self.grid - t0))
        return self.increments[k]


def test_diffrax_takes_the_same_steps(key: jax.Array) -> None:
    """Euler–Maruyama in diffrax on the reversed clock, with the same start and increments."""
    clock = jnp.asarray(1.0 - TIMES)
    noise = np.stack([_noise(_folded(key, 1, k), (4,)) for k in range(len(TIMES) - 1)])
    steps = -np.diff(TIMES)
    path = _Increments(jnp.asarray(noise * np.sqrt(steps)[:, None]), clock[:-1])

    def drift(s, x, args):
        return -sdes.reverse_drift(VP, x, _score(x, 1.0 - s), 1.0 - s)

    def diffusion(s, x, args):
        return lineax.DiagonalLinearOperator(jnp.full_like(x, VP.diffusion(1.0 - s)))

    terms = diffrax.MultiTerm(diffrax.ODETerm(drift), diffrax.ControlTerm(diffusion, path))
    solved = diffrax.diffeqsolve(
        terms,
        diffrax.Euler(),
        clock[0],
        clock[-1],
        None,
        jnp.asarray(_noise(_folded(key, 0), (4,))),
        stepsize_controller=diffrax.StepTo(ts=clock),
        adjoint=diffrax.DirectAdjoint(),
    )
    found = samplers.sample(key, VP, _score, TIMES, (4,))
    np.testing.assert_allclose(found, solved.ys[-1], rtol=1e-12)


@pytest.mark.parametrize("scheme", ["exponential_integrator", "ancestral"])
def test_variance_of_gaussian_modes(scheme: str, key: jax.Array) -> None:
    """With the score −x/v the variance is u' = (A − B/v)²u + Q, written out for OU."""
    times, modes, count = np.linspace(2.5, 0.05, 21), np.array([0.4, 3.0]), 20_000

    def score(x: jax.Array, t: jax.Array) -> jax.Array:
        return -x / (1 + jnp.asarray(modes - 1)[None, :] * jnp.exp(-2 * t))

    u = np.ones(2)
    for tau, t in itertools.pairwise(times):
        h, v = tau - t, 1 + (modes - 1) * np.exp(-2 * tau)
        kept, grown = np.exp(-2 * h), np.exp(h)
        ratio = -np.expm1(-2 * t) / -np.expm1(-2 * tau)
        a, b, q = {
            "exponential_integrator": (grown, 2 * (grown - 1), grown**2 - 1),
            "ancestral": (grown, (1 - kept) * grown, (1 - kept) * ratio),
        }[scheme]
        u = (a - b / v) ** 2 * u + q
    x = samplers.sample(key, sdes.ou(), score, times, (count, 2), scheme)
    z = (np.mean(np.square(x), axis=0) / u - 1) / np.sqrt(2 / count)
    assert (np.abs(z) < 4.9).all(), z


@pytest.mark.parametrize("name", ["sub_vp", "ve"])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_scheme_converges_for_every_process(name: str, scheme: str, key: jax.Array) -> None:
    """Towards N(0, v(t)), from the right start; the slope of an affine map, so without noise."""
    sde = {"sub_vp": sdes.sub_vp(0.5, 8.0), "ve": sdes.ve(0.1, 2.0)}[name]

    errors = []
    for num_steps in (100, 200):
        # Steps of no length change nothing: both grids are of one size, and compiled once.
        times = np.pad(np.linspace(1.0, 0.02, num_steps + 1), (0, 200 - num_steps), "edge")
        table = [np.asarray(column) for column in coefficients(scheme, sde, jnp.asarray(times))]
        law = np.square(sde.mean_coefficient(times)) * 0.7 + np.asarray(sde.variance(times))
        slope = table[0] - table[1] / law[:-1]
        after = np.append(np.cumprod(slope[::-1])[::-1], 1.0)
        u = after[0] ** 2 * law[0] + (after[1:] ** 2 * table[2] ** 2).sum()
        errors.append(u / law[-1] - 1)
    assert 1.8 < errors[0] / errors[1] < 2.3  # first order …
    assert abs(2 * errors[1] - errors[0]) < 0.003  # … towards 0


def test_start_key_and_precision(key: jax.Array) -> None:
    start = np.full((2, 3), 0.5)
    found = samplers.sample(key, VP, _score, TIMES, (2, 3), "probability_flow", start=start)
    assert np.ptp(found) == 0.0
    single = TIMES.astype(np.float32)
    for times, dtype in ((single, None), (TIMES, jnp.float32), (single, jnp.float64)):
        low = jax.eval_shape(
            lambda k, times=times, dtype=dtype: samplers.sample(
                k, VP, _score, times, (2, 3), dtype=dtype
            ),
            key,
        )
        assert low.dtype == (jnp.float32 if dtype is None else dtype)
    draws = samplers.sample(key, VP, _score, TIMES, (2, 3), draw=lambda k, s, d: jnp.zeros(s, d))
    np.testing.assert_array_equal(draws, np.zeros((2, 3)))


def test_rounding_in_single_precision(key: jax.Array) -> None:
    """The same noise in float32 as in float64, through 200 steps."""
    times = np.linspace(1.0, 1e-3, 201)
    start = np.random.default_rng(0).standard_normal(5)

    def run(dtype):
        return samplers.sample(
            key, VP, lambda x, t: -x, times, (5,), "probability_flow", start=start, dtype=dtype
        )

    np.testing.assert_allclose(run(jnp.float32), run(jnp.float64), rtol=1e-4)


def test_calls_within_transformations(key: jax.Array) -> None:
    """Under jit and vmap, with a traced schedule and traced times; the same numbers."""

    def one(key: jax.Array, high: jax.Array, times: jax.Array) -> jax.Array:
        return samplers.sample(key, sdes.vp(1.0, high), _score, times, (2,))

    keys = jax.random.split(key, 2)
    both = jax.jit(jax.vmap(one, in_axes=(0, None, None)))(keys, jnp.float64(9.0), TIMES)
    np.testing.assert_allclose(both[1], one(keys[1], 9.0, TIMES), rtol=1e-12)
    assert (np.asarray(both[0]) != np.asarray(both[1])).all()


def test_empty_results(key: jax.Array) -> None:
    assert samplers.sample(key, VP, _score, TIMES, ()).shape == ()
    found = samplers.sample(key, VP, _score, TIMES, (0, 3), corrector=samplers.Langevin())
    assert found.shape == (0, 3)


@pytest.mark.parametrize(
    ("sde", "horizon", "bias"),
    [(sdes.vp(0.1, 1.0), 1.0, "0.43 nats"), (sdes.ou(), 1.9, "0.0113 nats")],
)
def test_short_schedules_are_warned_of(sde, horizon, bias, key: jax.Array) -> None:
    """−½ log(1 − e^{−.55}) = .430; for OU −½ log(1 − e^{−3.8}) = .0113."""
    times = np.linspace(horizon, 0.1, 3)
    with pytest.warns(UserWarning, match=bias):
        jax.eval_shape(lambda k: samplers.sample(k, sde, _score, times, (2,)), key)
    with pytest.warns(UserWarning, match=bias):
        samplers.sample(key, sde, _score, times, (2,), "probability_flow")
    for other in ({"start": np.zeros(2)}, {"times": 2 * times, "sde": sdes.ou()}):
        arguments = {"sde": sde, "times": times} | other
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            jax.eval_shape(
                lambda k, a=arguments: samplers.sample(k, score=_score, shape=(2,), **a), key
            )


def test_a_diverging_score_is_an_error(key: jax.Array) -> None:
    def broken(x: jax.Array, t: jax.Array) -> jax.Array:
        return jnp.where(t < 0.5, jnp.nan, -x)

    with pytest.raises(ValueError, match=r"^score: got a sample with values that are NaN.*small"):
        samplers.sample(key, VP, broken, TIMES, (2,), "probability_flow", start=np.ones(2))
    found = jax.jit(
        lambda k: samplers.sample(k, VP, broken, TIMES, (2,), "probability_flow", start=np.ones(2))
    )(key)
    assert np.isnan(found).all()  # documented: nothing is looked at within jit


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"key": 3}, "key"),
        ({"sde": "vp"}, "sde"),
        ({"score": 1.0}, "score"),
        ({"score": lambda x, t: x[:1]}, "score"),
        ({"score": lambda x, t: (x, x)}, "score"),
        ({"times": [1.0]}, "times"),
        ({"times": []}, "times"),
        ({"times": [1.0, 1.0, 0.5]}, "times: got no decrease after entry 0"),
        ({"times": [1.0, 0.5, 0.7]}, "times: got no decrease after entry 1"),
        ({"times": [1.0, -0.1]}, "times"),
        ({"times": [np.inf, 0.1]}, "times"),
        ({"times": np.ones((2, 2))}, "times"),
        ({"shape": 3}, "shape"),
        ({"shape": (2, -1)}, "shape"),
        ({"scheme": "euler_mayurama"}, "scheme.*did you mean 'euler_maruyama'"),
        ({"start": np.zeros(3)}, "start"),
        ({"start": [0.0, np.nan]}, "start"),
        ({"corrector": 0.1}, "corrector"),
        ({"corrector": samplers.Langevin(-1.0)}, "snr"),
        ({"corrector": samplers.Langevin(num_steps=0)}, "num_steps"),
        ({"dtype": int}, "dtype"),
    ],
)
def test_bad_input(changed, named, key: jax.Array, as_users_call) -> None:
    arguments = {
        "key": key,
        "sde": VP,
        "score": _score,
        "times": TIMES,
        "shape": (2,),
        "scheme": "euler_maruyama",
    }
    with pytest.raises(ValueError, match=f"^{named}"):
        samplers.sample(**arguments | changed)


def test_within_a_sweep(key: jax.Array) -> None:
    """NumPy times of single precision stay concrete where a sweep splits its entries over devices."""
    times = np.linspace(1.0, 0.1, 4, dtype=np.float32)

    def one(params: dict, key: jax.Array) -> jax.Array:
        def score(x: jax.Array, t: jax.Array) -> jax.Array:
            return -params["pull"].astype(x.dtype) * x

        return samplers.sample(key, sdes.vp(0.1, 20.0), score, times, (3,)).sum()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = boundlab.sweep(one, {"pull": [1.0]}, jax.random.split(key, 2), progress=False)
    assert np.isfinite(found["value"].values).all()
