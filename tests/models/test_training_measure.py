"""What `train` measures besides its losses: any function of the outputs of all nodes."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from boundlab.models.gnn import GraphSAGE
from boundlab.models.graphs import from_edges
from boundlab.models.training import train

NODES, FEATURES, CLASSES = 12, 3, 2
RING = from_edges([(i, (i + 1) % NODES) for i in range(NODES)], NODES)
RNG = np.random.default_rng(4)
X = RNG.standard_normal((NODES, FEATURES))
Y = np.eye(CLASSES)[RNG.integers(CLASSES, size=NODES)]
CHOSEN = np.arange(0, NODES, 3)


def squared_error(outputs: jax.Array) -> jax.Array:
    """The mean-square loss of the chosen nodes, over again."""
    return jnp.square(outputs[CHOSEN] - Y[CHOSEN]).sum(axis=1).mean() / 2


@pytest.mark.parametrize("layers", [1, 2])
def test_measured_loss_is_the_recorded_loss(layers: int) -> None:
    network = GraphSAGE(CLASSES, num_layers=layers, hidden=4)
    run = train(
        jax.random.key(0),
        RING,
        X,
        Y,
        np.arange(8),
        network=network,
        optimizer="adam",
        step_size=0.01,
        batch_size=4,
        fan_out=1,
        num_steps=6,
        validation_nodes=CHOSEN,
        record_every=3,
        measure=squared_error,
    )
    np.testing.assert_allclose(run.measured, run.validation_loss, rtol=1e-12)
    assert run.measured.shape == (2,)


def test_measures_are_optional_functions(as_users_call: None) -> None:
    def call(measure: Any) -> Any:
        """The shapes alone, which nothing has to be compiled for."""

        def run(key: jax.Array) -> Any:
            return train(
                key,
                RING,
                X,
                Y,
                np.arange(8),
                step_size=0.1,
                batch_size=4,
                fan_out=1,
                num_steps=2,
                measure=measure,
            ).measured

        return jax.eval_shape(run, jax.random.key(0))

    assert call(None) is None
    with pytest.raises(ValueError, match="measure"):
        call("accuracy")
    found = call(lambda outputs: {"rows": outputs, "zero": jnp.zeros(())})
    assert found["rows"].shape == (2, NODES, CLASSES)
    assert found["zero"].shape == (2,)
