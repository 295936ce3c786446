"""The part on block degrees at a small size: its claims, their controls and its layout."""

import jax
import numpy as np
import pytest
import xarray as xr

import boundlab
from boundlab.analysis.fanout import blocks
from boundlab.analysis.fanout.config import Config
from boundlab.verdicts import Status, judge

TINY = Config(
    block_nodes=48,
    block_batch_sizes=(1, 8, 48),
    block_fan_outs=(1, 4, 12),
    block_seeds=128,
    teacher_nodes=48,
    teacher_seeds=64,
)


@pytest.fixture(scope="module")
def dataset() -> xr.Dataset:
    def repeat(name: str, *args: object, **kwargs: object) -> xr.Dataset:
        return boundlab.sweep(*args, progress=False, **kwargs)

    return blocks.run(TINY, jax.random.key(7, impl="threefry2x32"), repeat)


def test_claims_hold_and_controls_are_rejected(dataset: xr.Dataset) -> None:
    claims = blocks.CLAIMS
    checks = [[check(dataset) for check in (c.check, c.control)] for c in claims]
    verdicts = judge(claims, *zip(*checks, strict=True), false_alarm_rate=1e-3)
    for verdict in verdicts:
        assert verdict.status != Status.VIOLATED, verdict
        assert verdict.control_rejected, verdict


def test_layout(dataset: xr.Dataset) -> None:
    named = [str(name) for name in (*dataset.variables, *dataset.dims)]
    assert all(name.startswith("blocks_") for name in named)
    assert all({"long_name", "units"} <= set(v.attrs) for v in dataset.data_vars.values())
    assert dataset["blocks_simulated_row_sum"].shape == (3, 3, 128)
    assert float(dataset["blocks_censored"].max()) == 0.0
    np.testing.assert_array_equal(dataset["blocks_updates"], [220, 440, 881, 2205])
