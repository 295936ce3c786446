"""Times of discovery: one law for one agent, another for a team, on the same trajectories."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from boundlab.models.teams import simulate_discovery

TRIALS, SAMPLES = 20_000, 40


def within(found, expected, trials=TRIALS):
    error = np.sqrt(expected * (1 - expected) / trials)
    return np.abs(np.mean(found) - expected) < 4.9 * error


def test_laws_of_both():
    times = simulate_discovery(jax.random.key(0), 3, 2, SAMPLES, TRIALS)
    joint, separate = (np.asarray(time) for time in times)
    for n in (1, 5, 12):
        assert within(joint <= n, scipy.stats.geom.cdf(n, 1 / 9))
        assert within(separate <= n, scipy.stats.geom.cdf(n, 1 / 3) ** 2)
    assert within(joint == SAMPLES + 1, scipy.stats.geom.sf(SAMPLES, 1 / 9))
    # What shows the best joint action shows every agent its own.
    assert (separate <= joint).all()
    assert (joint > separate).mean() > 0.5


def test_one_agent_and_traced_actions():
    draw = jax.jit(lambda a: simulate_discovery(jax.random.key(2), a, 1, 8, 100))
    plain = simulate_discovery(jax.random.key(2), 3, 1, 8, 100)
    np.testing.assert_array_equal(plain.joint, plain.separate)
    for found, expected in zip(draw(jnp.int32(3)), plain, strict=True):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(draw(jnp.int32(1)).joint, 1)
    with pytest.raises(ValueError, match=r"^num_actions: "):
        draw(jnp.float32(3.0))


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("named", "arguments"),
    [
        ("key", (0, 2, 2, 3, 4)),
        ("num_actions", (jax.random.key(0), 0, 2, 3, 4)),
        ("num_actions", (jax.random.key(0), 2.5, 2, 3, 4)),
        ("num_agents", (jax.random.key(0), 2, 0, 3, 4)),
        ("num_samples", (jax.random.key(0), 2, 2, 0, 4)),
        ("num_trials", (jax.random.key(0), 2, 2, 3, 0)),
    ],
)
def test_bad_input_is_named(named, arguments):
    with pytest.raises(ValueError, match=rf"^{named}: "):
        simulate_discovery(*arguments)
