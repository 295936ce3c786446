"""Helpers and layout of the part on ReLU teachers."""

from collections.abc import Callable

import jax
import numpy as np
import pytest
import xarray as xr
from scipy.integrate import quad

from boundlab.analysis.excess_risk import PARTS, relu_regression, relu_teachers
from boundlab.analysis.excess_risk.config import PRESETS
from boundlab.theory.excess_risk import relu

SMOKE = PRESETS["smoke"]


@pytest.fixture(scope="module")
def dataset(smoke_of: Callable[..., xr.Dataset]) -> xr.Dataset:
    return smoke_of("excess_risk", "relu_")


def test_start_is_as_long_as_the_teacher_and_nearly_orthogonal() -> None:
    mu = np.arange(1.0, 101.0)[::-1] / 5050
    theta = np.ones(100)
    start = relu_teachers.alternating(theta)
    assert np.sum(mu * start**2) == pytest.approx(np.sum(mu * theta**2))
    assert abs(np.sum(mu * start * theta)) < 0.02


def test_simulated_points_lie_on_the_lines(dataset: xr.Dataset) -> None:
    assert set(dataset.relu_simulated_fraction.values) <= set(dataset.relu_fraction.values)
    assert set(dataset.relu_simulated_ridge.values) <= set(dataset.relu_ridge.values)
    assert dataset.relu_sgd_risk.sizes["relu_seed"] == SMOKE.num_seeds // 4
    assert dataset.relu_drawn_risk.sizes["seed"] == SMOKE.num_seeds


def test_the_quiet_theory_forgets_exactly_the_teachers_noise(dataset: xr.Dataset) -> None:
    # At b² = 1, 4σ² alone is what σ² − ¼ gives together with b²: at σ² = ¼ that of no noise.
    little = dataset.sel(relu_ridge=slice(0, 1))
    assert (little.relu_ridge_quiet < 0.8 * little.relu_ridge_theory).all()
    part_key = jax.random.fold_in(jax.random.key(0), PARTS.index(relu_teachers))
    graph_key = jax.random.fold_in(part_key, 0)
    names, mu, teachers = relu_teachers._spectra(SMOKE, graph_key, relu_teachers.DIM)
    for name, spectrum, teacher in zip(names, mu, teachers, strict=True):
        for ridge in (0.5, 8.0):
            silent = relu.ridge_risk(spectrum, teacher**2, 0.0, ridge, relu_regression.NUM_SAMPLES)
            found = dataset.relu_ridge_quiet.sel(relu_graph=name).sel(
                relu_ridge=ridge, method="nearest"
            )
            np.testing.assert_allclose(found, silent, rtol=1e-10)


def test_drawn_pairs_have_their_lengths_and_angles(dataset: xr.Dataset) -> None:
    for label, exact, half in zip(
        dataset.relu_pair.values,
        dataset.relu_drawn_theory.values,
        dataset.relu_drawn_half.values,
        strict=True,
    ):
        length, cosine = (float(part.split("= ")[1].rstrip("b")) for part in label.split(", "))
        assert half == pytest.approx((length**2 + 1 - 2 * length * cosine) / 2)
        phi = np.arccos(cosine)
        # In polar coordinates of the plane of θ and θ*, E r² = 2.
        risk, _ = quad(
            lambda t, a=length, phi=phi: (
                (max(a * np.cos(t - phi), 0) - max(np.cos(t), 0)) ** 2 / np.pi
            ),
            -np.pi,
            np.pi,
            limit=200,
        )
        assert exact == pytest.approx(risk, rel=1e-6)


def test_sides_of_the_sandwich_are_reached(dataset: xr.Dataset) -> None:
    ratio = (dataset.relu_half_risk / dataset.relu_quarter).values
    assert ratio[0] == pytest.approx(0.5)
    np.testing.assert_allclose(ratio[2:5], 1.0, rtol=1e-12)
    assert 0.5 < ratio[5:].min() < 0.6
    assert 0.8 < ratio[5:].max() < 1
