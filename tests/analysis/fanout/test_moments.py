"""The part on moments: draws that its claims reject, its layout, and its enumeration by a loop."""

import itertools
from collections.abc import Callable

import jax
import numpy as np
import pytest
import xarray as xr

from boundlab.analysis.fanout import moments, moments_exact
from boundlab.analysis.fanout.config import PRESETS, Config
from boundlab.models import graphs
from boundlab.verdicts import judge

SMOKE: Config = PRESETS["smoke"]


@pytest.fixture(scope="module")
def dataset(smoke_of: Callable[..., xr.Dataset]) -> xr.Dataset:
    return smoke_of("fanout", "moments_")


def test_other_noise_is_rejected(dataset: xr.Dataset) -> None:
    """The claims look at the draws: a fifth more noise, or a tenth more excess loss, violates them."""
    names = ("moments_drawn_fan_out_part", "moments_drawn_noise", "moments_excess")
    off = dataset.assign({name: 1.35 * dataset[name] for name in names})
    looked_at = [
        claim
        for claim in moments.CLAIMS
        if claim.id in ("moments-fan-out-noise", "moments-all-nodes-noise", "moments-noise-floor")
    ]
    checked = [claim.check(off) for claim in looked_at]
    for verdict in judge(looked_at, checked, checked, false_alarm_rate=1e-3):
        assert verdict.status == "violated", verdict


def test_layout(dataset: xr.Dataset) -> None:
    for name in (*dataset.variables, *dataset.dims):
        assert str(name).startswith("moments_"), name
    for name, variable in dataset.data_vars.items():
        assert variable.attrs["long_name"], name
        assert variable.attrs["units"], name
        assert np.isfinite(variable).all(), name
    assert dataset.sizes["moments_seed"] == SMOKE.moment_draws
    assert dataset.sizes["moments_run_seed"] == SMOKE.moment_runs
    theory = [name for name, v in dataset.data_vars.items() if "seed" not in "".join(v.dims)]
    assert "moments_noise" in theory
    assert "moments_floor" in theory


def test_everything_sampled_leaves_nothing_to_chance(dataset: xr.Dataset) -> None:
    """At β = d two samples of a batch agree, and with b = n nothing varies at all."""
    whole = dataset.isel(moments_fan_out=-1)
    np.testing.assert_allclose(whole["moments_drawn_fan_out_part"], 0.0, atol=1e-25)
    np.testing.assert_allclose(whole["moments_estimator_error"], 0.0, atol=1e-25)
    np.testing.assert_allclose(whole["moments_two_hop_error"], 0.0, atol=1e-25)
    everything = whole.isel(moments_batch_size=-1)
    np.testing.assert_allclose(everything["moments_drawn_noise"], 0.0, atol=1e-22)
    loss = float(dataset["moments_full_loss"][0])
    np.testing.assert_allclose(everything["moments_batch_loss"], loss, rtol=1e-12)


def test_enumeration_by_a_loop() -> None:
    """Both losses of one node after another, one sample after another."""
    graph = graphs.fixed_mix(jax.random.key(1), 12, 4, 3, 0.5)
    rng = np.random.default_rng(2)
    x, w = rng.normal(size=(12, 2)), rng.normal(size=(1, 3, 2))
    y = np.eye(3)[graph.labels]
    squared, entropy = [], []
    for node, neighbors in enumerate(graph.neighbor_table().index):
        for subset in itertools.combinations(neighbors, 2):
            logits = w[0] @ x[list(subset)].mean(axis=0)
            squared.append(0.5 * np.sum((logits - y[node]) ** 2))
            entropy.append(-np.log(np.exp(logits) / np.exp(logits).sum())[graph.labels[node]])
    found = moments_exact.every_sample(graph, x, y, w, 2)
    np.testing.assert_allclose(found[:, 0], [np.mean(squared), np.mean(entropy)], rtol=1e-12)


@pytest.mark.parametrize(("degree", "expected"), [(8, (1, 2, 4, 8)), (6, (1, 2, 3, 6))])
def test_grids(degree: int, expected: tuple[int, ...]) -> None:
    assert moments.fan_outs(degree) == expected
    assert moments.batch_sizes(72) == (6, 24, 72)
