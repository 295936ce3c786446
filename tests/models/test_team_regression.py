"""Regression learners of teams: their law against fits by NumPy, and against χ² on fixed inputs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from boundlab.models.teams import (
    coupling_matrix,
    simulate_coupled_regression,
    simulate_fixed_design,
    simulate_learners,
    simulate_regression,
)

AGENTS, DIM, MOST = 4, 3, 80
NOISE, COUPLING = 0.5, 0.8
LEARNERS = ("sarl", "aware", "blind")
RUNS = 600
# (seed, n, noise variance, coupling) of single runs.
SINGLE = {
    "usual": (0, 30, NOISE, COUPLING),
    "free": (0, 30, NOISE, 0.0),
    "louder": (0, 30, 4 * NOISE, 0.0),
    "other seed": (1, 30, NOISE, 0.0),
    "quiet": (0, 30, 0.0, COUPLING),
    "square": (0, 12, NOISE, COUPLING),
    "fewer than D": (0, 11, NOISE, COUPLING),
    "fewer than d": (0, 2, NOISE, COUPLING),
}


@pytest.fixture(scope="module")
def runs(key):
    """Runs (seeds, learners, K) by n, and single ones (learners, K) by name, all by one program."""
    rows = [(seed, n, NOISE, COUPLING) for n in (16, 60) for seed in range(RUNS)]
    seeds, sizes, noise, coupling = map(np.array, zip(*rows, *SINGLE.values(), strict=True))

    def one(row):
        matrix = coupling_matrix(AGENTS, row[3])
        found = simulate_learners(row[0], row[1], matrix, DIM, row[2], max_samples=MOST)
        return jnp.stack([found[learner] for learner in LEARNERS])

    keys = jax.random.split(jax.random.fold_in(key, 1), RUNS)[seeds]
    found = np.asarray(
        jax.jit(lambda *table: jax.lax.map(one, table))(keys, sizes, noise, coupling)
    )
    single = dict(zip(SINGLE, found[2 * RUNS :], strict=True))
    return {16: found[:RUNS], 60: found[RUNS : 2 * RUNS], **single}


def excess_by_numpy(rng, n, runs):
    """(runs, learners, K): draws, labels, fits and test errors of NumPy, no formula in common."""
    found = np.zeros((runs, 3, AGENTS))
    for run in range(runs):
        weights = rng.standard_normal((AGENTS, DIM))
        weights /= np.linalg.norm(weights, axis=1, keepdims=True)
        x = rng.standard_normal((n, AGENTS, DIM))
        labels, past = np.zeros((n, AGENTS)), np.zeros((n, AGENTS))
        maps = np.zeros((AGENTS, AGENTS, DIM))
        rolled = np.zeros((AGENTS, AGENTS, DIM))
        for i in range(AGENTS):
            before = labels[:, :i].mean(axis=1) if i else np.zeros(n)
            past[:, i] = COUPLING * before
            noise = np.sqrt(NOISE) * rng.standard_normal(n)
            labels[:, i] = x[:, i] @ weights[i] + past[:, i] + noise
            maps[i, i] = weights[i]
            rolled[i, i] = np.linalg.lstsq(x[:, i], labels[:, i] - past[:, i])[0]
            if i:
                maps[i] += COUPLING * maps[:i].mean(axis=0)
                rolled[i] += COUPLING * rolled[:i].mean(axis=0)
            alone = np.zeros((AGENTS, DIM))
            alone[i] = np.linalg.lstsq(x[:, i], labels[:, i])[0]
            whole = np.linalg.lstsq(x.reshape(n, -1), labels[:, i])[0].reshape(AGENTS, DIM)
            for place, fit in enumerate((whole, rolled[i], alone)):
                found[run, place, i] = ((fit - maps[i]) ** 2).sum()
    return found


def test_risks_have_the_law_of_another_implementation(runs):
    for n in (16, 60):
        other = excess_by_numpy(np.random.default_rng(n), n, 200)
        for learner in range(3):
            for agent in range(AGENTS):
                first, second = runs[n][:, learner, agent], other[:, learner, agent]
                assert scipy.stats.ks_2samp(first, second).pvalue > 1e-5


def test_mean_risks_on_a_large_sample(runs):
    """At n = 60 by hand: sarl σ²V·12/47, aware σ²V·3/56, blind F + (σ²V + F)·3/56; z-tests."""
    inflation = np.array([1.0, 1.64, 1.6784, 1.66207])  # 1 + .64Σb² by hand
    noise, missed = NOISE * inflation, inflation - 1
    expected = [noise * 12 / 47, noise * 3 / 56, missed + (noise + missed) * 3 / 56]
    at = runs[60]
    z = (at.mean(axis=0) - np.stack(expected)) / (at.std(axis=0, ddof=1) / len(at) ** 0.5)
    assert np.abs(z).max() < 4.9


def test_spare_rows(runs, key):
    first = jax.random.split(jax.random.fold_in(key, 1), RUNS)[0]
    static = simulate_regression(first, 30, AGENTS, DIM, NOISE, COUPLING, "aware")
    np.testing.assert_allclose(runs["usual"][1], static, rtol=1e-9)


def test_draws_are_common(runs):
    """Without coupling the two teams are one, noise scales the risk, and without noise fits are exact."""
    np.testing.assert_allclose(runs["free"][1], runs["free"][2], rtol=1e-10)
    np.testing.assert_allclose(runs["louder"], 4 * runs["free"], rtol=1e-10)
    assert runs["quiet"][:2].max() < 1e-24
    assert not np.isclose(runs["free"], runs["other seed"]).any()


def test_where_least_squares_has_no_answer(runs, key):
    assert np.isinf(runs["fewer than D"][0]).all()
    assert np.isfinite(runs["fewer than D"][1:]).all()
    assert np.isinf(runs["fewer than d"]).all()
    assert np.isfinite(runs["square"]).all()
    for learner, inputs in (("sarl", 12), ("aware", 3), ("blind", 3)):
        with pytest.raises(ValueError, match=rf"^num_samples: .*≥ {inputs}"):
            simulate_regression(key, inputs - 1, AGENTS, DIM, NOISE, COUPLING, learner)


def test_float32_against_float64(runs, key):
    """Draws of another precision are others; means over runs agree, at n = 16 with D = 12, too."""
    wide = runs[16][:, 0].mean(axis=1)
    with jax.enable_x64(False):
        keys = jax.random.split(jax.random.fold_in(key, 3), 600)

        def one(seed):
            return simulate_regression(seed, 16, AGENTS, DIM, NOISE, COUPLING, "sarl")

        narrow = np.asarray(jax.jit(lambda seeds: jax.lax.map(one, seeds))(keys))
    assert narrow.dtype == np.float32
    assert wide.dtype == np.float64
    assert scipy.stats.ks_2samp(narrow.mean(axis=1), wide).pvalue > 1e-5


def test_coupling_matrices():
    mean = [[0, 0, 0], [0.6, 0, 0], [0.3, 0.3, 0]]
    np.testing.assert_allclose(coupling_matrix(3, 0.6), mean, rtol=1e-15)
    np.testing.assert_array_equal(coupling_matrix(3, 2, "sum"), 2 * np.tri(3, k=-1))
    np.testing.assert_array_equal(coupling_matrix(3, 2, "chain"), 2 * np.eye(3, k=-1))
    np.testing.assert_array_equal(coupling_matrix(1, 2), [[0.0]])


@pytest.mark.parametrize("learner", ["sarl", "marl"])
def test_fixed_design_risks_are_chi_square(key, learner):
    """n·risk/σ² is χ² with as many degrees of freedom as inputs, independent between subtasks."""
    trials = 2000
    inputs = 20 if learner == "sarl" else 5
    for n in (50, 30):
        found = simulate_fixed_design(key, n, 4, 5, 0.7, learner, trials, max_samples=50)
        assert found.shape == (trials, 4)
        scaled = n * np.asarray(found) / 0.7
        for agent in range(4):
            assert scipy.stats.kstest(scaled[:, agent], scipy.stats.chi2(inputs).cdf).pvalue > 1e-5
        assert scipy.stats.kstest(scaled.sum(1), scipy.stats.chi2(4 * inputs).cdf).pvalue > 1e-5


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("named", "changed"),
    [
        ("key", 0),
        ("num_samples", 20.5),
        ("num_samples", 90),
        ("num_agents", 0),
        ("dim", 0),
        ("noise_variance", -1.0),
        ("coupling", np.nan),
        ("learner", "team"),
        ("max_samples", 5),
        ("num_trials", 0),
    ],
)
def test_bad_input_is_named(key, named, changed):
    given = {
        "key": key,
        "num_samples": 60,
        "num_agents": AGENTS,
        "dim": DIM,
        "noise_variance": NOISE,
        "coupling": COUPLING,
        "learner": "sarl",
        "max_samples": MOST,
    } | {named: changed}
    fixed = {"num_trials": 5} | given
    del fixed["coupling"]
    if named != "num_trials":
        with pytest.raises(ValueError, match=rf"^{named}: "):
            simulate_regression(**given)
    if named != "coupling":
        with pytest.raises(ValueError, match=rf"^{named}: "):
            simulate_fixed_design(**fixed)


@pytest.mark.usefixtures("as_users_call")
def test_bad_matrices_are_named(key):
    for matrix in (np.ones((2, 3)), np.eye(2), [1.0, 2.0], [[0.0, 0.0], [np.inf, 0.0]]):
        with pytest.raises(ValueError, match=r"^predecessors: "):
            simulate_coupled_regression(key, 60, matrix, 3, 0.5, "sarl")
    with pytest.raises(ValueError, match=r"^kind: "):
        coupling_matrix(3, 0.5, "tree")
    with pytest.raises(ValueError, match=r"^num_samples: .*integer"):
        jax.jit(
            lambda n: simulate_regression(
                key, n, AGENTS, DIM, NOISE, COUPLING, "sarl", max_samples=MOST
            )
        )(30.0)
    with pytest.raises(ValueError, match=r"^num_samples: .*traced"):
        jax.jit(lambda n: simulate_regression(key, n, AGENTS, DIM, NOISE, COUPLING, "sarl"))(30)


def test_coupling_beyond_single_precision_is_refused_by_name() -> None:
    with jax.enable_x64(False), pytest.raises(ValueError, match=r"^coupling: got 1e\+300"):
        coupling_matrix(3, 1e300)
