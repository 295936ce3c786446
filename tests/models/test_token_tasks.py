"""Exploring token tasks: shares by enumeration, and bad input."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from boundlab.models.teams import TokenTask, explore_tokens
from boundlab.testing import assert_mean_equal


def enumerated(task, count):
    """Expected shares (step 1, last step, outcome) over every exploration of two steps."""
    cells = list(
        itertools.product(
            *(range(task.num_contexts), range(task.num_actions)) * 2
        )  # context, token, context, token
    )
    shares = []
    for explored in itertools.product(cells, repeat=count):
        first, last, joint = set(), set(), set()
        for x, a, y, b in explored:
            # Token 0 is right for the first context and step, whatever is right for others.
            place = (y, a) if task.dependent else (y,)
            if a == 0:
                first.add(x)
            if b == 0:
                last.add(place)
            if a == b == 0:
                joint.add((x, y))
        seen = task.num_contexts * (task.num_actions if task.dependent else 1)
        size = task.num_contexts
        shares.append((len(first) / size, len(last) / seen, len(joint) / size**2))
    return np.mean(shares, axis=0)


@pytest.mark.parametrize("dependent", [False, True])
def test_shares_by_enumeration(dependent, key):
    task = TokenTask(2, 2, 2, dependent)

    @jax.jit
    def shares(counts):
        def one(k, count):
            return explore_tokens(k, task, count, max_trajectories=3)

        return jax.vmap(jax.vmap(one, (None, 0)), (0, None))(jax.random.split(key, 4096), counts)

    counts = np.array([0, 1, 3])
    found = shares(counts)
    measured = np.concatenate([found.process, found.outcome[..., None]], axis=2)
    expected = np.array([enumerated(task, n) for n in counts])
    assert_mean_equal(measured.reshape(4096, -1), expected.ravel())
    assert (np.diff(measured, axis=1) >= 0).all()


def test_one_cell_in_single_precision(key):
    with jax.enable_x64(False):
        none, one = (
            explore_tokens(key, TokenTask(3, 1, 1), n, max_trajectories=1).outcome for n in (0, 1)
        )
    assert one.dtype == jnp.float32
    assert (float(none), float(one)) == (0.0, 1.0)


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("named", "call"),
    [
        ("num_steps", lambda k, t: TokenTask(0, 2, 2)),
        ("num_contexts", lambda k, t: TokenTask(2, 2.5, 2)),
        ("num_contexts", lambda k, t: TokenTask(30, 2, 2)),
        ("num_actions", lambda k, t: TokenTask(2, 2, 0)),
        ("key", lambda k, t: explore_tokens(3, t, 5)),
        ("task", lambda k, t: explore_tokens(k, None, 5)),
        ("num_trajectories", lambda k, t: explore_tokens(k, t, -1)),
        ("num_trajectories", lambda k, t: explore_tokens(k, t, 6, max_trajectories=5)),
        ("max_trajectories", lambda k, t: explore_tokens(k, t, 6, max_trajectories=2.5)),
        (
            "num_trajectories",
            lambda k, t: jax.jit(lambda n: explore_tokens(k, t, n, max_trajectories=5))(2.0),
        ),
    ],
)
def test_bad_input_is_named(named, call, key):
    with pytest.raises(ValueError, match=rf"^{named}: "):
        call(key, TokenTask(2, 2, 2))
