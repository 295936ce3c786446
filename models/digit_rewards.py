"""Choosing the sizes of K models together: a team task whose episodes are trainings on digits.

Agent k chooses how many components d_k of its images its model sees; an episode shuffles the images,
trains the K models on n examples and pays the *team* the share of held-out examples on which all are
right. Too few components can't tell the digits apart, too many don't fit n examples. Symbols as in
`digit_tasks`.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Shaped

from boundlab.checks import check_integer, check_key, check_number, check_shape, fail
from boundlab.models.digit_tasks import DigitTask
from boundlab.precision import is_traced
from boundlab.typing import Numbers, Scalar


def digit_rewards(
    key: jax.Array, task: DigitTask, num_samples: Scalar, dims: Numbers
) -> Float[Array, "*actions"]:
    """Rewards of one shuffle for every joint choice of sizes (A, …, A), axis k agent k:

        share of held-out examples with round(û_k) = u_k for all k,

    û_k by least squares with an intercept on the d_k leading components. Where all positions are right,
    so are the labels and the carries.

    Args:
        key: typed key of this episode: the shuffles, as in `digit_risks`.
        task: of `digit_task`.
        num_samples: n training examples, from max(dims) + 2 to `task.num_train`. May be traced.
        dims: (A,) numbers of components that an agent may choose, each from 1 to the task's.

    Returns:
        A tensor of shares in [0, 1]. Its entries share the shuffle: an episode sees one of them.

    Raises:
        ValueError: naming the argument.

    """
    check_key("key", key)
    most = task.inputs.shape[2]
    check_shape("dims", dims, (None,), "one number an action")
    check_number("dims", dims, 1, most)
    sizes = np.asarray(dims)
    if sizes.dtype.kind not in "iu":
        raise fail("dims", f"values of type {sizes.dtype}", "integers")
    if not is_traced(num_samples):
        check_integer("num_samples", num_samples, int(sizes.max()) + 2, task.num_train)
    chosen = np.arange(most + 1)[None, :] < sizes[:, None]
    chosen[:, most] = True  # the intercept
    arrays = (jnp.asarray(array) for array in (task.inputs, task.positions))
    count, used = jnp.asarray(num_samples), jnp.asarray(chosen.astype(np.float64))
    return _rewards(key, *arrays, count, used, task.base, task.num_train)


@partial(jax.jit, static_argnames=("base", "train"))
def _rewards(
    key: jax.Array,
    components: Float[Array, "K images d"],
    positions: Float[Array, "K images"],
    num_samples: Shaped[Array, ""],
    chosen: Float[Array, "A p"],
    base: int,
    train: int,
) -> Float[Array, "*actions"]:
    agents, images, _ = components.shape
    keys = jax.vmap(lambda k: jax.random.fold_in(key, k))(jnp.arange(agents))
    order = jax.vmap(lambda own: jax.random.permutation(own, images))(keys)
    u = jnp.take_along_axis(positions, order, axis=1)
    inputs = jnp.take_along_axis(components, order[:, :, None], axis=1)
    rows = jnp.concatenate([inputs, jnp.ones((agents, images, 1), inputs.dtype)], axis=2)
    seen = (jnp.arange(train) < num_samples).astype(rows.dtype)
    weighted = rows[:, :train] * seen[None, :, None]
    gram = jnp.einsum("knp,knq->kpq", weighted, rows[:, :train])
    moments = jnp.einsum("knp,kn->kp", weighted, u[:, :train])
    # Components that an action leaves out get the coefficient 0.
    blank = jax.vmap(jnp.diag)(1.0 - chosen)
    both = chosen[:, :, None] * chosen[:, None, :]
    systems = gram[:, None] * both[None] + blank[None]
    sides = (moments[:, None] * chosen[None])[..., None]
    weights = jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(systems), True), sides)[..., 0]
    predicted = jnp.einsum("khp,kap->kah", rows[:, train:], weights)
    rounded = jnp.clip(jnp.round(predicted), 0.0, base - 1.0)
    right = (rounded == u[:, None, train:]).astype(rows.dtype)
    together = right[0]
    for k in range(1, agents):
        mine = right[k].reshape((1,) * k + right[k].shape)
        together = together[..., None, :] * mine
    return jnp.mean(together, axis=-1)
