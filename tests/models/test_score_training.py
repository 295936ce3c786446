"""Denoising loss and descent: by hand in NumPy, resumed to the same bits, clear errors."""

from functools import partial
from pathlib import Path
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from boundlab.long_runs import advance
from boundlab.models import sde
from boundlab.models.sampler_noise import graph_noise
from boundlab.models.score_networks import FeatureScore, GraphModel, StructureScore
from boundlab.models.score_training import Descent, descend, graph_loss, train_scores

GRAPHS, PLACES, FEATURES = 5, 4, 2


class Scaled(nn.Module):
    """Network that returns one of its inputs times its only parameter; keeps what is masked at 0."""

    structure: bool

    @nn.compact
    def __call__(self, x: jax.Array, adjacency: jax.Array, mask: jax.Array) -> jax.Array:
        weight = self.param("w", nn.initializers.constant(0.5), (), x.dtype)
        if self.structure:
            nodes = mask[:, None] & mask[None, :] & ~np.eye(len(mask), dtype=bool)
            return jnp.where(nodes, weight * adjacency, 0)
        return jnp.where(mask[:, None], weight * x, 0)


LINEAR = GraphModel(Scaled(False), Scaled(True), sde.vp(0.1, 4.0), sde.ve(0.2, 1.0))


@pytest.fixture(scope="module")
def graphs() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    mask = np.arange(PLACES)[None, :] < np.array([4, 3, 2, 1, 4])[:, None]
    pairs = mask[:, :, None] & mask[:, None, :]
    upper = np.triu(rng.random((GRAPHS, PLACES, PLACES)) < 0.6, 1) & pairs
    adjacency = (upper | upper.swapaxes(1, 2)).astype(np.float64)
    return rng.standard_normal((GRAPHS, PLACES, FEATURES)) * mask[:, :, None], adjacency, mask


def test_loss_by_hand(key: jax.Array, graphs: tuple[np.ndarray, ...]) -> None:
    """The same draws, graph by graph and pair by pair; VP features, VE structure."""
    size, first = 8, 0.05
    loss = jax.jit(graph_loss(LINEAR, size, first_time=first, horizon=0.9))
    params = {
        name: {"params": {"w": np.array(w)}} for name, w in (("features", 0.7), ("structure", -0.3))
    }
    found = loss(params, key, *graphs)
    x, adjacency, mask = graphs
    keys = [jax.random.fold_in(key, i) for i in range(3)]
    chosen = np.asarray(jax.random.randint(keys[0], (size,), 0, GRAPHS, jnp.int32))
    t = first + 0.85 * np.asarray(jax.random.uniform(keys[1], (size,), jnp.float64))
    z_x, z_a = map(np.asarray, graph_noise(keys[2], size, PLACES, FEATURES, jnp.float64))
    nodes = edges = 0.0
    for k, g in enumerate(chosen):
        rate = 0.1 * t[k] + 3.9 * t[k] ** 2 / 2
        std_x, std_a = np.sqrt(1 - np.exp(-rate)), 0.2 * 5.0 ** t[k]
        for i in np.flatnonzero(mask[g]):
            noised = np.exp(-rate / 2) * x[g, i] + std_x * z_x[k, i]
            nodes += (((-0.7 * noised) + z_x[k, i]) ** 2).sum() / 2
            for j in range(i + 1, PLACES):
                if mask[g, j]:
                    noised_pair = adjacency[g, i, j] + std_a * z_a[k, i, j]
                    edges += (std_a * -0.3 * noised_pair + z_a[k, i, j]) ** 2 / 2
    np.testing.assert_allclose(float(found["features"]), nodes / size, rtol=1e-10)
    np.testing.assert_allclose(float(found["structure"]), edges / size, rtol=1e-10)


def _quadratic(params: Any, key: jax.Array, target: jax.Array) -> dict[str, jax.Array]:
    noise = jax.random.normal(key, (3,), jnp.float64)
    return {
        "a": jnp.sum((params["a"]["w"] - target - noise) ** 2) / 2,
        "b": jnp.sum(params["b"] ** 2),
    }


START = {"a": {"w": np.array([4.0, -2.0, 0.1])}, "b": np.array([[1e-3]])}
TARGET = np.array([1.0, 2.0, 3.0])


@pytest.mark.parametrize("chunk_steps", [None, 3])
def test_descent_by_hand(key: jax.Array, chunk_steps: int | None) -> None:
    """Clipping, weight decay, Adam, staircase decay and running mean, in NumPy."""
    descent = Descent(0.1, 0.5, 2, 0.01, 1.5, 0.3)
    found = descend(
        key,
        _quadratic,
        START,
        num_steps=6,
        data=(TARGET,),
        descent=descent,
        chunk_steps=chunk_steps,
    )
    w, b = START["a"]["w"].copy(), START["b"].copy()  # type: ignore[index,attr-defined]
    mean = [w.copy(), b.copy()]
    moments = [[np.zeros_like(v), np.zeros_like(v)] for v in (w, b)]
    losses = []
    for step in range(6):
        own = jax.random.fold_in(jax.random.fold_in(key, 1), step)
        noise = np.asarray(jax.random.normal(own, (3,), jnp.float64))
        losses.append([((w - TARGET - noise) ** 2).sum() / 2, (b**2).sum()])
        rate = 0.1 * 0.5 ** (step // 2)
        for block, (value, slope) in enumerate(((w, w - TARGET - noise), (b, 2 * b))):
            slope = slope / max(np.linalg.norm(slope) / 1.5, 1.0) + 0.01 * value
            first, second = moments[block]
            first[:] = 0.9 * first + 0.1 * slope
            second[:] = 0.999 * second + 0.001 * slope**2
            corrected = first / (1 - 0.9 ** (step + 1))
            scale = np.sqrt(second / (1 - 0.999 ** (step + 1))) + 1e-8
            value -= rate * corrected / scale
            decay = min(0.3, (2 + step) / (11 + step))
            mean[block] += (1 - decay) * (value - mean[block])
    np.testing.assert_allclose(found.losses, losses, rtol=1e-6)
    np.testing.assert_allclose(found.params["a"]["w"], w, rtol=1e-6)
    np.testing.assert_allclose(found.params["b"], b, rtol=1e-6)
    np.testing.assert_allclose(found.average_params["a"]["w"], mean[0], rtol=1e-6)
    np.testing.assert_allclose(found.average_params["b"], mean[1], rtol=1e-6)


def test_interrupted_and_resumed_to_the_same_bits(key: jax.Array, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"num_steps": 40, "data": (TARGET,), "chunk_steps": 10}
    whole = descend(key, _quadratic, START, **settings)
    path = tmp_path / "run"

    def interrupted(*args: Any, inspect: Any, **kwargs: Any) -> Any:
        def stop(record: Any, place: int) -> None:
            inspect(record, place)
            if place == 2:
                raise KeyboardInterrupt

        return advance(*args, inspect=stop, checkpoint=path, **kwargs)

    with pytest.raises(KeyboardInterrupt):
        descend(key, _quadratic, START, advance=interrupted, **settings)
    resumed = descend(key, _quadratic, START, advance=partial(advance, checkpoint=path), **settings)
    for one, other in zip(jax.tree.leaves(whole), jax.tree.leaves(resumed), strict=True):
        np.testing.assert_array_equal(one, other)
    other_key = jax.random.fold_in(key, 1)
    with pytest.raises(ValueError, match=r"^checkpoint: "):
        descend(other_key, _quadratic, START, advance=partial(advance, checkpoint=path), **settings)


def _breaking(params: Any, key: jax.Array) -> dict[str, jax.Array]:
    """0/0 once the parameter has fallen to 1.25, in steps of a tenth."""
    value = params["a"]
    return {"a": jnp.where(value < 1.25, jnp.sqrt(value - 1.25), value)}


def test_divergence_is_named_and_the_last_good_chunk_kept(key: jax.Array, tmp_path: Path) -> None:
    """Adam's first steps are of size 0.1: from 2.0 the loss breaks at step 8, in chunk 4."""
    path, start = tmp_path / "run", {"a": np.array(2.0)}
    settings: dict[str, Any] = {
        "descent": Descent(learning_rate=0.1, decay=1.0, weight_decay=0.0),
        "chunk_steps": 2,
        "advance": partial(advance, checkpoint=path),
    }
    with pytest.raises(ValueError, match=r"^loss: got nan of a at step 8, expected finite"):
        descend(key, _breaking, start, num_steps=20, **settings)
    kept = descend(key, _breaking, start, num_steps=8, **settings)
    np.testing.assert_allclose(kept.losses[:, 0], 2.0 - 0.1 * np.arange(8), rtol=1e-5)
    with pytest.raises(ValueError, match=r"^checkpoint: .* with 4 chunks"):
        descend(key, _breaking, start, num_steps=4, **settings)

    def steep(params: Any, key: jax.Array) -> dict[str, jax.Array]:
        return {"a": jnp.sqrt(jnp.abs(params["a"]))}

    with pytest.raises(ValueError, match=r"^loss: got parameters that are not finite after step 0"):
        descend(key, steep, {"a": np.array(0.0)}, num_steps=1)


def test_networks_learn_whatever_stands_in_the_padding(
    key: jax.Array, graphs: tuple[np.ndarray, ...]
) -> None:
    """Loss of small networks in single precision falls; NaN outside the graphs is never handed on."""
    x, adjacency, mask = graphs
    model = GraphModel(
        FeatureScore(FEATURES, 1, 4), StructureScore(1, 4, 1, 1, 2, 2), sde.vp(0.1, 8.0), sde.ou()
    )
    settings: dict[str, Any] = {"num_steps": 60, "batch_size": 32, "chunk_steps": 60}
    handed_on = []

    def recorded(*args: Any, constants: Any, **kwargs: Any) -> Any:
        handed_on.append(constants)
        return advance(*args, constants=constants, **kwargs)

    def stopped(*args: Any, constants: Any, **kwargs: Any) -> Any:
        handed_on.append(constants)
        raise KeyboardInterrupt

    pairs = mask[:, :, None] & mask[:, None, :]
    holes = (np.where(mask[:, :, None], x, np.nan), np.where(pairs, adjacency, np.inf))
    found = train_scores(key, model, *holes, mask, **settings, advance=recorded)
    with pytest.raises(KeyboardInterrupt):
        train_scores(
            *(key, model, x, adjacency, mask),
            **settings,
            initial_params=found.params,
            advance=stopped,
        )
    for one, other in zip(*handed_on, strict=True):  # all that training sees of the graphs
        np.testing.assert_array_equal(one, other)
    assert {leaf.dtype for leaf in jax.tree.leaves(found)} == {np.dtype(np.float32)}
    assert set(found.params) == {"features", "structure"}
    first, last = found.losses[:15].mean(axis=0), found.losses[-15:].mean(axis=0)
    assert (last < 0.8 * first).all()


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("key", {"key": 3}),
        ("model", {"model": None}),
        ("x", {"x": np.zeros((GRAPHS, PLACES))}),
        ("x", {"x": np.full((GRAPHS, PLACES, FEATURES), np.nan)}),
        ("adjacency", {"adjacency": np.zeros((GRAPHS, PLACES, PLACES + 1))}),
        ("adjacency", {"adjacency": np.triu(np.ones((GRAPHS, PLACES, PLACES)))}),
        ("mask", {"mask": np.ones((GRAPHS, PLACES))}),
        ("batch_size", {"batch_size": 0}),
        ("num_steps", {"num_steps": 0}),
        ("first_time", {"first_time": 0.0}),
        ("horizon", {"horizon": 1e-6}),
        ("dtype", {"dtype": np.int32}),
        ("chunk_steps", {"chunk_steps": 4}),
        ("descent", {"descent": "adam"}),
        ("initial_params", {"initial_params": 3}),
        ("initial_params", {"initial_params": {"features": np.zeros(2)}}),
    ],
)
def test_bad_input_is_named(
    name: str, change: dict[str, Any], key: jax.Array, graphs: tuple[np.ndarray, ...]
) -> None:
    x, adjacency, mask = graphs
    params = {block: {"params": {"w": np.array(0.5)}} for block in ("features", "structure")}
    given: dict[str, Any] = {
        "key": key,
        "model": LINEAR,
        "x": x,
        "adjacency": adjacency,
        "mask": mask,
        "num_steps": 6,
        "initial_params": params,
    }
    with pytest.raises(ValueError, match=rf"^{name}: "):
        train_scores(**(given | change))


@pytest.mark.usefixtures("as_users_call")
def test_bad_losses_and_settings_are_named(key: jax.Array) -> None:
    for loss in (3, lambda params, key: {"a": params["b"]}, lambda params, key: params["b"]):
        with pytest.raises(ValueError, match=r"^loss: "):
            descend(key, loss, {"b": np.zeros(())}, num_steps=1)  # type: ignore[arg-type]
    mixed = {"a": np.zeros(2), "b": np.zeros(2, np.float32)}
    with pytest.raises(ValueError, match=r"^params: .*one floating type"):
        descend(
            key, lambda params, key: {"a": jnp.zeros(()), "b": jnp.zeros(())}, mixed, num_steps=1
        )
    for name in ("learning_rate", "clip", "decay"):
        with pytest.raises(ValueError, match=rf"^{name}: "):
            Descent(**{name: 0.0})
    with pytest.raises(ValueError, match=r"^average: "):
        Descent(average=1.0)
