"""The published tables as data, their exponents, and the part that judges them."""

import csv
from collections.abc import Callable
from importlib import resources

import jax
import numpy as np
import pytest
import xarray as xr

from boundlab.analysis.fanout import published, published_tables
from boundlab.analysis.fanout.config import Config
from boundlab.analysis.fanout.published_tables import (
    fit_elasticities,
    published_accuracy,
    published_iterations,
)
from boundlab.theory.fanout.published_rates import (
    paper_elasticities,
    paper_iterations_ce,
    paper_iterations_mse,
)
from boundlab.verdicts import Status, judge


@pytest.mark.smoke
def test_tables_ship_with_the_package() -> None:
    """Every cell once, full grids, and a few cells by eye."""
    table = published_iterations("products", "mse")
    assert table.dims == ("batch_size", "fan_out")
    assert table.shape == (7, 5)
    assert table.sel(batch_size=196_615, fan_out=np.inf) == 920
    assert table.sel(batch_size=1000, fan_out=5) == 1163
    ce = published_iterations("arxiv", "cross_entropy")
    np.testing.assert_array_equal(ce.sel(batch_size=1000), 734)
    np.testing.assert_array_equal(ce.sel(batch_size=10_000), [450, 430, 430, 430, 430, 430])
    for loss in published_tables.LOSSES:
        for name in published_tables.ITERATION_DATASETS:
            assert np.isfinite(published_iterations(name, loss)).all()
    for file in ("iterations", "accuracy", "datasets", "targets"):
        source = resources.files("boundlab.analysis.fanout") / "data" / f"published_{file}.csv"
        rows = [tuple(row) for row in csv.reader(source.read_text(encoding="utf-8").splitlines())]
        assert len({row[:-1] for row in rows}) == len(rows)
    accuracy = published_accuracy("papers100m")
    assert accuracy.sel(batch_size=1_207_179, fan_out=np.inf) == 59.54
    assert int(np.isnan(accuracy).sum()) == 3


def test_best_cells_are_those_of_the_first_table() -> None:
    """Table 1 follows from the accuracies: the full-graph cell, and the best of the others."""
    for row in published_tables.read("datasets"):
        table = published_accuracy(row["dataset"])
        full = float(table.isel(batch_size=-1).sel(fan_out=np.inf))
        assert full == float(row["best_full_graph"])
        sampled = table.copy()
        sampled[-1, -1] = np.nan
        assert float(sampled.max()) == float(row["best_mini_batch"])


@pytest.mark.parametrize(
    ("dataset", "loss", "batch_size", "fan_out", "r_squared"),
    [
        ("products", "mse", 0.016, -0.127, 0.80),
        ("reddit", "mse", 0.010, -0.140, 0.85),
        ("arxiv", "mse", 0.039, -0.048, 0.42),
        ("products", "cross_entropy", -0.112, -0.227, 0.86),
        ("reddit", "cross_entropy", -0.112, -0.139, 0.77),
        ("arxiv", "cross_entropy", -0.171, -0.033, 0.92),
    ],
)
def test_fitted_exponents(
    dataset: str, loss: str, batch_size: float, fan_out: float, r_squared: float
) -> None:
    """The regression of the tables as worked out elsewhere, and scikit-learn's."""
    from sklearn.linear_model import LinearRegression

    table = published_iterations(dataset, loss)
    fit = fit_elasticities(table)
    assert abs(fit.batch_size - batch_size) < 0.002
    assert abs(fit.fan_out - fan_out) < 0.002
    assert abs(fit.r_squared - r_squared) < 0.006
    frame = table.sel(fan_out=np.isfinite(table["fan_out"])).to_series().reset_index()
    inputs = np.log(frame[["batch_size", "fan_out"]].to_numpy())
    outputs = np.log(frame["iterations"].to_numpy())
    other = LinearRegression().fit(inputs, outputs)
    np.testing.assert_allclose(fit[:2], other.coef_, rtol=1e-10)
    np.testing.assert_allclose(fit.r_squared, other.score(inputs, outputs), rtol=1e-10)
    left = published_tables.unexplained(table, *fit[:2])
    np.testing.assert_allclose(left, 1 - fit.r_squared, rtol=1e-10)


def power_law(b: list[float], beta: list[float], p: float, q: float) -> xr.DataArray:
    values = 7.0 * np.power(b, p)[:, None] * np.power(np.minimum(beta, 1e3), q)
    coords = {"batch_size": b, "fan_out": beta}
    return xr.DataArray(values, dims=("batch_size", "fan_out"), coords=coords)


def test_a_power_law_is_recovered_whatever_the_layout() -> None:
    table = power_law([1, 8, 64], [1, 2, 5, np.inf], 1.5, -0.75)
    for given in (table, table.T, table.isel(batch_size=[2, 0, 1])):
        np.testing.assert_allclose(fit_elasticities(given), [1.5, -0.75, 1.0], rtol=1e-12)
    table[0, 3] = np.nan  # a fan-out without a logarithm is not looked at
    np.testing.assert_allclose(fit_elasticities(table)[:2], [1.5, -0.75], rtol=1e-12)
    flat = fit_elasticities(power_law([1, 8], [1, 2], 0.0, 0.0))
    np.testing.assert_allclose(flat[:2], 0.0, atol=1e-14)
    assert np.isnan(flat.r_squared)
    counts = power_law([1, 8], [1, 2], 1.0, 2.0).astype(int)
    np.testing.assert_allclose(fit_elasticities(counts)[:2], [1.0, 2.0], rtol=1e-12)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda t: t.values,
        lambda t: t.rename(fan_out="beta"),
        lambda t: t.expand_dims("seed"),
        lambda t: t.isel(fan_out=0),
        lambda t: t.drop_vars("batch_size"),
        lambda t: t.where(t["fan_out"] != 2),
        lambda t: t - t.isel(batch_size=0, fan_out=0),
        lambda t: -t,
        lambda t: t.isel(batch_size=[0]),
        lambda t: t.isel(fan_out=[1]),
        lambda t: t.isel(batch_size=[0], fan_out=[0, 1]),
        lambda t: t.isel(fan_out=[3]),
        lambda t: t.assign_coords(fan_out=[0.0, 1.0, 2.0, 3.0]),
        lambda t: t.assign_coords(batch_size=[1.0, np.inf, 2.0]),
        lambda t: t.assign_coords(fan_out=list("abcd")),
        lambda t: t.astype(str),
    ],
)
def test_tables_without_exponents_are_refused(spoil: object, as_users_call: None) -> None:
    table = power_law([1, 8, 64], [1, 2, 5, np.inf], 1.5, -0.75)
    with pytest.raises(ValueError, match="table"):
        fit_elasticities(spoil(table))


def test_unknown_tables_are_refused(as_users_call: None) -> None:
    with pytest.raises(ValueError, match=r"dataset.*reddit"):
        published_iterations("redit", "mse")
    with pytest.raises(ValueError, match="loss"):
        published_iterations("reddit", "hinge")
    with pytest.raises(ValueError, match="dataset"):
        published_accuracy(None)


def test_exponents_of_the_published_rates() -> None:
    """Log differences of the published counts at fixed other arguments."""
    for loss, count in (
        ("mse", lambda b, beta: paper_iterations_mse(1e5, 40, b, beta, 0.01)),
        ("cross_entropy", lambda b, beta: paper_iterations_ce(1e5, 0.3, b, beta, 0.01)),
    ):
        stated = paper_elasticities(loss)
        in_b = np.log2(float(count(64.0, 5.0)) / float(count(32.0, 5.0)))
        in_beta = np.log2(float(count(32.0, 10.0)) / float(count(32.0, 5.0)))
        np.testing.assert_allclose([in_b, in_beta], stated, rtol=1e-12)


def no_sweep(*_: object, **__: object) -> xr.Dataset:
    pytest.fail("this part needs no sweep")


@pytest.fixture(scope="module")
def dataset(smoke_of: Callable[..., xr.Dataset]) -> xr.Dataset:
    return smoke_of("fanout", "published_")


def test_every_claim_is_decided(dataset: xr.Dataset) -> None:
    """The numbers are few and given, so that the smallest run tells as much as the largest."""
    checked = [claim.check(dataset) for claim in published.CLAIMS]
    for verdict in judge(published.CLAIMS, checked, checked, false_alarm_rate=1e-3):
        assert verdict.status == Status.HOLDS, verdict


def test_gains_by_hand(dataset: xr.Dataset) -> None:
    """Reddit: 96.32 against 96.13, with 15 of 36 cells no better; chance by its own sample."""
    reddit = dataset.sel(published_dataset="reddit")
    np.testing.assert_allclose(reddit["published_gain"], 0.19, rtol=1e-10)
    np.testing.assert_allclose(reddit["published_no_better"], 15 / 36, rtol=1e-12)
    cells = np.sort(published_accuracy("reddit").values.ravel())
    cells = np.delete(cells, np.searchsorted(cells, 96.13))
    np.testing.assert_allclose(reddit["published_spread"], np.std(cells, ddof=1), rtol=1e-12)
    # Best of 35 drawn from N(0, spread²), by simulation.
    drawn = np.random.default_rng(2).normal(scale=np.std(cells, ddof=1), size=(20_000, 35))
    largest = drawn.max(axis=1)
    z = (largest.mean() - float(reddit["published_by_chance"])) / largest.std() * 20_000**0.5
    assert abs(z) < 4.9
    assert reddit["published_chance_low"] < reddit["published_by_chance"]
    assert reddit["published_by_chance"] < reddit["published_chance_high"]


def test_targets_and_trivial_losses(dataset: xr.Dataset) -> None:
    """Two targets lie above the zero predictor, and so does the synthetic one by far."""
    share = dataset["published_target_explained"]
    below = share["published_runs"].values[share.values < 0]
    assert list(below) == ["products", "papers100m GAT", "synthetic"]
    np.testing.assert_allclose(share.sel(published_runs="arxiv"), 0.096, rtol=1e-12)
    bce = dataset["published_bce_minimum"].sel(published_runs="arxiv")
    np.testing.assert_allclose(bce, 0.676, atol=5e-4)


def test_layout_and_determinism(dataset: xr.Dataset) -> None:
    for name, variable in dataset.variables.items():
        assert str(name).startswith("published_")
        if name in dataset.data_vars:
            assert variable.attrs["long_name"]
            assert variable.attrs["units"]
    config = Config(selection_draws=64)
    first, again, other = (
        published.run(config, jax.random.key(seed), no_sweep) for seed in (5, 5, 6)
    )
    xr.testing.assert_identical(first, again)
    assert not first["published_chosen"].equals(other["published_chosen"])
