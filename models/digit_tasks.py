"""Handwritten digits as a prediction task of K subtasks whose labels depend through a carry.

Subtask k shows an image whose digit lies in group k of K disjoint groups; its position in the group is
u_k = 0 … B − 1. As in an adder, position k hands a carry on: c_0 = 0, c_k = 1 if u_k + c_{k−1} ≥ B − 1
(B − 1 generates a carry, B − 2 passes one on), and the label is y_k = u_k + λ c_{k−1}. The inputs x_k are
principal components of the pixels. Nothing is Gaussian here, and y_k is no linear function of the inputs.
Symbols: d components an image, D = Kd, n training examples (trajectories: each shows all K subtasks).
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Shaped

from boundlab.checks import check_integer, check_key, check_number, check_shape, fail
from boundlab.models.nearest_neighbors import digits
from boundlab.precision import is_traced
from boundlab.typing import Count, Numbers, Scalar

GROUPS = ((0, 1, 2), (3, 4, 5), (6, 7, 8))
HELD_OUT = 4
"""One image in so many is kept for measuring the risk."""
MOST_COMPONENTS = 61
"""Pixels that vary at all; the others are blank in every image."""


class DigitTask(NamedTuple):
    """Inputs and positions of the K groups, cut to as many images as the smallest has."""

    inputs: Float[np.ndarray, "K images d"]
    """Principal components, each of mean 0 and variance 1 over all digits, the leading one first."""
    positions: Float[np.ndarray, "K images"]
    """u_k, the digit's place in its group, 0 … B − 1."""
    base: int
    """B, digits a group."""

    @property
    def num_train(self) -> int:
        """Images of each group from which training examples are drawn; the others are held out."""
        return self.inputs.shape[1] - self.inputs.shape[1] // HELD_OUT


class DigitRisks(NamedTuple):
    """Mean squared error on held-out examples of each learner, by coupling and subtask."""

    sarl: Float[Array, "L K"]
    """One agent regresses each label on all D inputs."""
    aware: Float[Array, "L K"]
    """A team that knows the carry: teacher forced in training, rolled out on its own predictions."""
    blind: Float[Array, "L K"]
    """A team that regresses each label on the subtask's own d inputs, as if there were no carry."""


def digit_task(dim: Count = 16, groups: Any = GROUPS) -> DigitTask:
    """The task on the 1,797 shipped digits; deterministic.

    Args:
        dim: d, 1 to 61 components of the pixels of an image.
        groups: K ≥ 1 disjoint groups of B ≥ 2 digits each, in the order of their positions.

    Raises:
        ValueError: naming the argument.

    Conventions: components and scales are those of all images, held-out ones too: they use no label.
    Source: data [alpaydin1998cascading]; the task is made for docs/team_learning.md#digits.
    """
    size = check_integer("dim", dim, 1, MOST_COMPONENTS)
    table = _check_groups(groups)
    graph = digits(0)
    assert graph.features is not None
    assert graph.labels is not None
    pixels = graph.features.astype(np.float64)
    centred = pixels - pixels.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    # An axis's sign is free: its largest entry is made positive, whatever the linear algebra did.
    largest = np.argmax(np.abs(axes), axis=1, keepdims=True)
    axes = axes * np.sign(np.take_along_axis(axes, largest, axis=1))
    components = centred @ axes[:size].T
    components /= components.std(axis=0)
    members = [np.flatnonzero(np.isin(graph.labels, group)) for group in table]
    least = min(len(nodes) for nodes in members)
    nodes = np.stack([nodes[:least] for nodes in members])
    places = [
        np.argmax(graph.labels[own][:, None] == group[None, :], axis=1)
        for own, group in zip(nodes, table, strict=True)
    ]
    return DigitTask(components[nodes], np.stack(places).astype(np.float64), table.shape[1])


def incoming_carries(positions: Numbers, base: Count) -> Float[Array, "... K"]:
    """c_{k−1} of every subtask: c_0 = 0, c_k = 1 if u_k + c_{k−1} ≥ B − 1, rounded to the nearest.

    Args:
        positions: (…, K) u; predictions as well, which carry from B − 1½ on. May be traced.
        base: B ≥ 2.

    Raises:
        ValueError: naming the argument.

    """
    top = check_integer("base", base, 2) - 1
    check_number("positions", positions)
    u = jnp.asarray(positions)
    if not u.ndim or not u.shape[-1]:
        raise fail("positions", f"shape {u.shape}", "at least one subtask on the last axis")
    u = u.astype(jnp.float64) if not jnp.issubdtype(u.dtype, jnp.floating) else u

    carries = [jnp.zeros_like(u[..., 0])]
    for k in range(u.shape[-1] - 1):
        carries.append((u[..., k] + carries[-1] >= top - 0.5).astype(u.dtype))
    return jnp.stack(carries, axis=-1)


def digit_risks(
    key: jax.Array,
    task: DigitTask,
    num_samples: Scalar,
    couplings: Numbers,
    dim: Scalar | None = None,
) -> DigitRisks:
    """Held-out risks of the three learners, trained by least squares on the same n examples.

    The images of each group are shuffled; example i shows the i-th of each group, so that no image is
    seen twice, and a quarter of each group is never trained on. Every learner has an intercept. The team
    that knows the carry fits y_k − λ c_{k−1} with the true carry, and predicts with that of its own
    rounded predictions, û_k + λ ĉ_{k−1}.

    Args:
        key: typed key of this run: the shuffles.
        task: of `digit_task`.
        num_samples: n, from D + 3 to `task.num_train` examples (trajectories). May be traced.
        couplings: (L,) values λ of the coupling. May be traced.
        dim: use the d leading components only; by default all of the task's. May be traced.

    Returns:
        DigitRisks of (L, K): mean squared error over the held-out examples (no ½, with what no learner
        can predict), rewards being the subtasks' own labels.

    Raises:
        ValueError: naming the argument.

    """
    check_key("key", key)
    agents, _, most = task.inputs.shape
    used = most if dim is None else dim
    if not is_traced(used):
        used = check_integer("dim", used, 1, most)
    if not is_traced(num_samples):
        least = agents * (most if is_traced(used) else int(used)) + 3
        check_integer("num_samples", num_samples, least, task.num_train)
    check_shape("couplings", couplings, (None,), "one value a coupling")
    check_number("couplings", couplings)
    return _risks(
        key,
        jnp.asarray(task.inputs),
        jnp.asarray(task.positions),
        jnp.asarray(num_samples),
        jnp.asarray(couplings).astype(jnp.float64),
        jnp.asarray(used),
        task.base,
        task.num_train,
    )


@partial(jax.jit, static_argnames=("base", "train"))
def _risks(
    key: jax.Array,
    components: Float[Array, "K images d"],
    positions: Float[Array, "K images"],
    num_samples: Shaped[Array, ""],
    couplings: Float[Array, " L"],
    dim: Shaped[Array, ""],
    base: int,
    train: int,
) -> DigitRisks:
    agents, images, most = components.shape
    keys = jax.vmap(lambda k: jax.random.fold_in(key, k))(jnp.arange(agents))
    order = jax.vmap(lambda own: jax.random.permutation(own, images))(keys)
    inputs = jnp.moveaxis(jnp.take_along_axis(components, order[:, :, None], axis=1), 0, 1)
    u = jnp.take_along_axis(positions, order, axis=1).T
    inputs = jnp.where((jnp.arange(most) < dim)[None, None, :], inputs, 0.0)
    carry = incoming_carries(u, base)
    seen = (jnp.arange(train) < num_samples).astype(components.dtype)
    labels = jnp.concatenate([u, carry], axis=1)  # every learner is linear in what it is trained on
    joint = _predict(inputs.reshape(images, agents * most), labels[:train], seen)
    pairs = jnp.stack([u, carry], axis=2)[:train]
    own = jax.vmap(_predict, in_axes=(1, 1, None), out_axes=1)(inputs, pairs, seen)
    own_u, own_carry = own[..., 0], own[..., 1]
    held_u, held_carry, rates = u[train:], carry[train:], couplings[:, None, None]

    def risk(predicted_u: Array, predicted_carry: Array) -> Array:
        error = (predicted_u - held_u)[None] + rates * (predicted_carry - held_carry)[None]
        return jnp.mean(error**2, axis=1)

    return DigitRisks(
        risk(joint[:, :agents], joint[:, agents:]),
        risk(own_u, incoming_carries(own_u, base)),
        risk(own_u, own_carry),
    )


def _predict(
    inputs: Float[Array, "images p"], labels: Float[Array, "train o"], seen: Float[Array, " train"]
) -> Float[Array, "held o"]:
    """Predictions for the held-out rows of least squares with an intercept on the rows `seen`."""
    train = len(labels)
    ones = jnp.ones((len(inputs), 1), inputs.dtype)
    rows = jnp.concatenate([inputs, ones], axis=1)
    weighted = rows[:train] * seen[:, None]
    gram = weighted.T @ rows[:train]
    # Components that aren't used are columns of zeros, and get the coefficient 0.
    gram = gram + jnp.diag((jnp.diag(gram) == 0.0).astype(gram.dtype))
    factor = jax.scipy.linalg.cho_factor(gram)
    return rows[train:] @ jax.scipy.linalg.cho_solve(factor, weighted.T @ labels)


def _check_groups(groups: Any) -> np.ndarray:
    accepted = "K groups of the same number ≥ 2 of digits 0 … 9, no digit twice"
    try:
        table = np.asarray(groups)
    except ValueError as error:
        raise fail("groups", repr(groups), accepted) from error
    if table.ndim != 2 or table.dtype.kind not in "iu" or not len(table) or table.shape[1] < 2:
        raise fail("groups", repr(groups), accepted)
    if table.min() < 0 or table.max() > 9 or len(np.unique(table)) < table.size:
        raise fail("groups", repr(groups), accepted)
    return table
