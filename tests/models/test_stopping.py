"""First hits against plain loops; censoring; NaN."""

import jax
import numpy as np
import pytest

from boundlab.models.training import first_hit, held


def by_loop(losses, target, window):
    for t in range(len(losses) - window + 1):
        if all(value <= target for value in losses[t : t + window]):
            return t + 1, False
    return len(losses), True


@pytest.mark.parametrize("window", [1, 2, 5])
def test_against_a_loop(window):
    rng = np.random.default_rng(0)
    losses = rng.standard_normal((200, 12))
    losses[rng.random(losses.shape) < 0.1] = np.nan
    found = jax.vmap(lambda row: held(row, 0.3, window))(losses)
    expected = [by_loop(row, 0.3, window) for row in losses]
    np.testing.assert_array_equal(found.iterations, [t for t, _ in expected])
    np.testing.assert_array_equal(found.censored, [c for _, c in expected])
    if window == 1:
        first = jax.vmap(lambda row: first_hit(row, 0.3))(losses)
        jax.tree.map(np.testing.assert_array_equal, first, found)


def test_counts_from_one_and_reports_censoring():
    assert first_hit([0.5, 2.0], 0.5) == (1, False)
    assert first_hit([3.0, 2.0, 1.0], 1.0) == (3, False)
    assert first_hit([3.0, 2.0, 1.0], 0.9) == (3, True)
    assert first_hit([np.nan, np.nan], 9.0) == (2, True)
    assert first_hit([np.inf, -np.inf], 0.0) == (2, False)
    assert first_hit([1, 0], 0) == (2, False)
    assert held([0.0, 5.0, 0.0, 0.0], 1.0, 2) == (3, False)
    assert held([5.0, 0.0, 0.0], 1.0, 3) == (3, True)


def test_float32_losses_are_compared_with_the_target_itself():
    """0.1 in float32 is above 0.1 in float64."""
    assert first_hit(np.array([0.1, 0.0], np.float32), 0.1) == (2, False)


def test_traced_target_and_losses():
    found = jax.jit(jax.vmap(first_hit, in_axes=(None, 0)))(
        np.array([3.0, 2.0, 1.0]), np.array([2.5, 0.5])
    )
    np.testing.assert_array_equal(found.iterations, [2, 3])
    np.testing.assert_array_equal(found.censored, [False, True])


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("losses", ([], 1.0, 1)),
        ("losses", (1.0, 1.0, 1)),
        ("losses", (np.ones((2, 2)), 1.0, 1)),
        ("losses", (["a"], 1.0, 1)),
        ("target", ([1.0], np.nan, 1)),
        ("target", ([1.0], [1.0, 2.0], 1)),
        ("window", ([1.0], 1.0, 2)),
        ("window", ([1.0], 1.0, 0)),
    ],
)
def test_bad_input_names_the_argument(as_users_call, name, arguments):
    with pytest.raises(ValueError, match=f"^{name}: got "):
        held(*arguments)
