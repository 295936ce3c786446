"""Layout of the part on the family of losses, some of its numbers, and that its claims can fail."""

from collections.abc import Callable

import numpy as np
import pytest
import xarray as xr

from boundlab.analysis.policy_optimization import losses, losses_cases
from boundlab.analysis.policy_optimization.config import PRESETS
from boundlab.verdicts import Status, single


@pytest.fixture(scope="module")
def dataset(smoke_of: Callable[..., xr.Dataset]) -> xr.Dataset:
    return smoke_of("policy_optimization", "losses_")


def test_layout(dataset: xr.Dataset) -> None:
    named = [str(name) for name in (*dataset.variables, *dataset.dims)]
    assert all(name.startswith("losses_") for name in named)
    assert all({"long_name", "units"} <= set(v.attrs) for v in dataset.data_vars.values())
    rows = len(losses_cases.ROWS)
    assert dataset["losses_start"].shape == (PRESETS["smoke"].losses_batches, rows)
    assert dataset["losses_pull"].shape == (len(losses.SHOWN), 2, len(losses.RATIOS))
    assert np.isfinite(dataset["losses_start_wrong"]).all()


def test_pulls_by_hand(dataset: xr.Dataset) -> None:
    """PPO keeps r until it is clipped on the side where that matters; dual clip ends at 1.1 for A < 0."""
    ratio = dataset["losses_ratio"].values
    pull = dataset["losses_pull"]
    up, down = (pull.sel(losses_shown="ppo", losses_sign=sign) for sign in ("A > 0", "A < 0"))
    np.testing.assert_allclose(up, np.where(ratio <= 1.2, ratio, 0.0), atol=1e-12)
    np.testing.assert_allclose(down, np.where(ratio >= 0.8, ratio, 0.0), atol=1e-12)
    dual = pull.sel(losses_shown="dual_clip", losses_sign="A < 0")
    inside = (ratio >= 0.8) & (ratio <= 1.1)
    np.testing.assert_allclose(dual, np.where(inside, ratio, 0.0), atol=1e-12)
    soft = pull.sel(losses_shown="cispo", losses_sign="A > 0")
    np.testing.assert_allclose(soft, np.minimum(ratio, 1.28), atol=1e-12)


def test_reference_batch_by_hand(dataset: xr.Dataset) -> None:
    share = dataset["losses_share"].sel(losses_row="ppo")
    ratio = np.exp([0.05, -0.31, 0, -0.02, 0.26, 0.11, -0.15, -0.61, 0.02])
    ratio[2] = 0.0  # e^.46 is above 1.2 and the advantage positive
    np.testing.assert_allclose(share, ratio, atol=1e-12)


def test_alternating_ratios_are_far_from_one(dataset: xr.Dataset) -> None:
    """The mean of |e^{±c} − 1| is sinh c."""
    moved = dataset["losses_moved"]
    np.testing.assert_allclose(moved, np.sinh(losses.SWINGS), rtol=1e-12)


def test_claims_can_fail(dataset: xr.Dataset) -> None:
    """Each on a copy in which its number is a thousand times the rounding that it admits."""
    for claim in losses.CLAIMS:
        name = claim.id.replace("-", "_")
        changed = dataset.assign({name: dataset[name] + 1e-6})
        assert single(claim.kind, claim.check(dataset), 1e-3).status == Status.HOLDS
        assert single(claim.kind, claim.check(changed), 1e-3).status == Status.VIOLATED
        assert single(claim.kind, claim.control(dataset), 1e-3).status == Status.VIOLATED
