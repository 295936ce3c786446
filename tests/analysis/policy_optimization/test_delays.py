"""Layout of the part on delayed gradients, its numbers by hand, and claims that can fail."""

from collections.abc import Callable

import numpy as np
import pytest
import xarray as xr

from boundlab.analysis.policy_optimization import delays, delays_exact
from boundlab.analysis.policy_optimization.config import PRESETS
from boundlab.analysis.policy_optimization.delays_claims import CLAIMS
from boundlab.verdicts import judge


@pytest.fixture(scope="module")
def dataset(smoke_of: Callable[..., xr.Dataset]) -> xr.Dataset:
    return smoke_of("policy_optimization", "delays_")


def _statuses(dataset: xr.Dataset) -> dict[str, str]:
    checked = [claim.check(dataset) for claim in CLAIMS]
    controls = [claim.control(dataset) for claim in CLAIMS]
    verdicts = judge(CLAIMS, checked, controls, false_alarm_rate=1e-3)
    return {verdict.claim: str(verdict.status) for verdict in verdicts}


def test_layout(dataset: xr.Dataset) -> None:
    named = [str(name) for name in (*dataset.variables, *dataset.dims)]
    assert all(name.startswith("delays_") for name in named)
    assert all({"long_name", "units"} <= set(v.attrs) for v in dataset.data_vars.values())
    config = PRESETS["smoke"]
    shape = (config.delays_seeds, len(config.delays_simulated), 64)
    assert dataset["delays_square"].shape == shape
    for preset in PRESETS.values():
        assert set(preset.delays_simulated) >= {0, 1}
        assert set(preset.delays_simulated) <= set(delays_exact.DELAYS)
        assert preset.delays_steps > 2 * delays.BURN_IN


def test_numbers_by_hand(dataset: xr.Dataset) -> None:
    np.testing.assert_allclose(dataset["delays_limit"][:2], [2.0, 1.0], rtol=1e-9)
    np.testing.assert_allclose(dataset["delays_turn"][:2], [1 / 4, 4 / 27], rtol=1e-9)
    # Without delay x is multiplied by 1 − a at each step.
    expected = np.log(np.abs(1 - 2 * delays.FACTORS))
    np.testing.assert_allclose(dataset["delays_growth"][0], expected, rtol=1e-6)
    prompt = dataset.sel(delays_delay=0)
    np.testing.assert_allclose(prompt["delays_correlation"], -prompt["delays_step"] / 2, rtol=1e-9)
    np.testing.assert_allclose(
        prompt["delays_second"], 1 / (1 - prompt["delays_step"] / 2), rtol=1e-9
    )


def test_growth_is_that_of_the_largest_root(dataset: xr.Dataset) -> None:
    for delay in PRESETS["smoke"].delays_simulated:
        limit = 2 * np.sin(np.pi / (4 * delay + 2))
        rates = dataset["delays_growth"].sel(delays_simulated=delay)
        for factor, rate in zip(delays.FACTORS, rates.values, strict=True):
            polynomial = np.zeros(delay + 2)
            polynomial[:2] = 1.0, -1.0
            polynomial[-1] += factor * limit
            expected = np.log(np.abs(np.roots(polynomial)).max())
            np.testing.assert_allclose(rate, expected, rtol=0.05)


def test_claims_fail_on_other_data(dataset: xr.Dataset) -> None:
    assert "violated" not in _statuses(dataset).values()
    changes = {
        "delays-limit": {"delays_limit": dataset["delays_limit"] * (1 + 1e-6)},
        "delays-growth": {"delays_grew": 1 - dataset["delays_grew"]},
        "delays-monotone": {"delays_correlation": -dataset["delays_correlation"]},
        "delays-cosine": {"delays_cosine": dataset["delays_cosine"] + 0.05},
        "delays-mixture": {"delays_product": 1.1 * dataset["delays_product"]},
        "delays-modes": {"delays_product": 1.2 * dataset["delays_product"]},
        "delays-squares": {"delays_square": 1.1 * dataset["delays_square"]},
        "delays-sign": {"delays_alignment": abs(dataset["delays_alignment"])},
    }
    for claim, change in changes.items():
        assert _statuses(dataset.assign(change))[claim] == "violated"
