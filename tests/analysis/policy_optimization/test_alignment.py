"""Layout of the part on gradient alignment, its numbers by hand, and claims on changed copies."""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from boundlab.analysis.policy_optimization import alignment, alignment_learners
from boundlab.analysis.policy_optimization.config import PRESETS
from boundlab.claims import Claim
from boundlab.verdicts import Status, single

CLAIMS = {claim.id: claim for claim in alignment.CLAIMS}


@pytest.fixture(scope="module")
def dataset(smoke_of: Callable[..., xr.Dataset]) -> xr.Dataset:
    return smoke_of("policy_optimization", "alignment_")


def status(claim: Claim, dataset: xr.Dataset) -> Status:
    return single(claim.kind, claim.check(dataset), 1e-4).status


def test_layout(dataset: xr.Dataset) -> None:
    named = [str(name) for name in (*dataset.variables, *dataset.dims)]
    assert all(name.startswith("alignment_") for name in named)
    assert all({"long_name", "units"} <= set(v.attrs) for v in dataset.data_vars.values())
    config = PRESETS["smoke"]
    assert dataset.sizes["alignment_bandit_seed"] == config.alignment_rewards
    assert dataset.sizes["alignment_seed"] == config.alignment_seeds
    assert dataset.sizes["alignment_run"] == config.alignment_runs
    assert dataset.sizes["alignment_step"] == config.alignment_steps / alignment_learners.EVERY


def test_limits_are_approached_from_both_sides(dataset: xr.Dataset) -> None:
    distance = dataset["alignment_distance"]
    assert (distance.sel(alignment_factor=0.97) < alignment.CONVERGED).all()
    assert (distance.sel(alignment_factor=1.03) > alignment.AWAY).all()


def test_shares_of_histograms(dataset: xr.Dataset) -> None:
    for name in ("alignment_histogram", "alignment_bandit_histogram"):
        np.testing.assert_allclose(dataset[name].sum("alignment_bin"), 1.0, rtol=1e-12)


def test_mixture_predicts_the_histograms_of_uncontrolled_runs(dataset: xr.Dataset) -> None:
    """To .02, a bin is .025 wide."""
    shares = dataset["alignment_histogram"]
    means = (shares * shares["alignment_bin"]).sum("alignment_bin")
    predicted = dataset["alignment_mixture"].values
    np.testing.assert_allclose(means.sel(alignment_kind=["fresh", "stale"]), predicted, atol=0.02)


def test_skips_end_after_five(dataset: xr.Dataset) -> None:
    """Five of six are skipped while gradients align; projections alone never skip."""
    skipped = dataset["alignment_skipped"]
    limited = skipped.sel(alignment_skipping="five in a row")
    assert ((limited > 0.5) & (limited < 5 / 6 + 0.01)).all()
    assert (skipped.sel(alignment_skipping="projections alone") == 0).all()


def test_valleys_by_hand() -> None:
    """Mirrored, then x²/(1 + x²) of each coordinate, weighted."""
    rng = np.random.default_rng(1)
    x, normal, depth = rng.standard_normal((3, alignment.VALLEYS))
    normal /= np.linalg.norm(normal)
    mirror = np.eye(alignment.VALLEYS) - 2 * np.outer(normal, normal)
    y = mirror @ x
    expected = sum(d * v * v / (1 + v * v) for d, v in zip(depth, y, strict=True))
    found = alignment._valley(*map(jnp.asarray, (x, normal, depth)))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_longest_steps_and_bounds(dataset: xr.Dataset) -> None:
    """Bounds are positive and finite, and without κ a twentieth."""
    bound = dataset["alignment_bound"]
    assert ((bound > 0) & np.isfinite(bound)).all()
    np.testing.assert_allclose(dataset["alignment_bound_dropped"] / bound, 0.05, rtol=1e-12)


@pytest.mark.parametrize(
    ("claim", "name", "factor"),
    [
        ("alignment-stale", "alignment_uncorrected", 1 + 1e-6),
        ("alignment-limit", "alignment_leaves", 0.5),
        ("alignment-cosine", "alignment_cosine", 1 + 1e-6),
        ("alignment-norm", "alignment_norm", 1 + 1e-6),
        ("alignment-across", "alignment_across", 1 + 1e-6),
        ("alignment-leaves", "alignment_seen", 1 + 1e-6),
        ("alignment-bound", "alignment_least", 20.0),
        ("alignment-bandit-stale", "alignment_gap_capped", 0.1),
        ("alignment-bandit-control", "alignment_gap_tail", 0.01),
        ("alignment-quadratic-stale", "alignment_log_grown", 0.3),
        ("alignment-quadratic-control", "alignment_log_tail", 30.0),
        ("alignment-not-fresh", "alignment_excess", 0.2),
        ("alignment-short-step", "alignment_log_tail", -1.0),
        ("alignment-no-detector", "alignment_bandit_cosine", 0.05),
        ("alignment-deadlock", "alignment_frozen", 0.9),
        ("alignment-deadlock-ends", "alignment_left", 30.0),
    ],
)
def test_claims_can_fail(dataset: xr.Dataset, claim: str, name: str, factor: float) -> None:
    assert status(CLAIMS[claim], dataset) != Status.VIOLATED
    changed = dataset.copy()
    # Gaps span decades: theirs are moved, the others scaled.
    moved = name == "alignment_gap_tail"
    changed[name] = changed[name] + factor if moved else factor * changed[name]
    assert status(CLAIMS[claim], changed) == Status.VIOLATED
