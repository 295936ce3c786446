"""Sample sizes of the regression task by inverting risks numerically, and by scipy's χ²."""

import jax
import numpy as np
import pytest
import scipy.optimize
import scipy.stats

from boundlab.theory.team_learning import (
    accuracy_crossover,
    chi_square_samples,
    dimension_ratio_limit,
    neglected_variance,
    noise_inflation,
    regression_crossover,
    regression_risk,
    regression_samples,
)

TASK = (4, 3, 2.0, 0.5)


@pytest.mark.parametrize("learner", ["sarl", "aware", "blind"])
@pytest.mark.parametrize("kind", ["mean", "chain"])
def test_samples_by_inverting_risks(learner, kind):
    def excess(n):
        return float(np.mean(regression_risk(n, *TASK, learner, kind=kind))) - 0.75**2

    root = scipy.optimize.brentq(excess, 14, 1e7, xtol=1e-12, rtol=1e-14)
    np.testing.assert_allclose(
        regression_samples(0.75, *TASK, learner, kind=kind), root, rtol=1e-10
    )


def test_one_in_k_exactly():
    for agents, dim, accuracy in ((2, 5, 0.3), (8, 1, 1e-3)):
        team = float(regression_samples(accuracy, agents, dim, 1.5, 0.0, "blind"))
        single = float(regression_samples(accuracy, agents, dim, 1.5, 0.0, "sarl"))
        np.testing.assert_allclose((single - 1) / (team - 1), agents, rtol=1e-13)


def test_samples_at_the_edges():
    floor = float(np.sqrt(np.mean(neglected_variance(4, 0.5))))
    assert float(regression_samples(floor, *TASK, "blind")) == np.inf
    assert float(regression_samples(0.5 * floor, *TASK, "blind")) == np.inf
    assert np.isfinite(regression_samples(1.001 * floor, *TASK, "blind"))
    assert float(regression_samples(0.1, 4, 3, 0.0, 0.5, "aware")) == 4.0
    assert float(regression_samples(1e-200, 4, 3, 1.0, 0.5, "sarl")) == np.inf
    assert float(regression_samples(1e-200, 4, 3, 1.0, 0.0, "blind")) == np.inf
    assert float(regression_samples(1.0, 4, 3, 0.0, 1e150, "sarl")) == 13.0
    assert not np.isnan(regression_samples(1.0, 4, 3, 0.5, 1e150, "blind"))


@pytest.mark.parametrize(("agents", "coupling", "noise"), [(2, 0.3, 0.1), (4, 0.5, 2.0)])
def test_accuracy_crossover_by_sample_sizes(agents, coupling, noise):
    def difference(accuracy):
        team = regression_samples(accuracy, agents, 3, noise, coupling, "blind")
        return float(team - regression_samples(accuracy, agents, 3, noise, coupling, "sarl"))

    found = float(accuracy_crossover(agents, coupling))
    floor = float(np.sqrt(np.mean(neglected_variance(agents, coupling))))
    root = scipy.optimize.brentq(difference, floor * (1 + 1e-7), 1e3, xtol=1e-15, rtol=1e-14)
    np.testing.assert_allclose(found, root, rtol=1e-8)
    at = float(regression_crossover(agents, 3, noise, coupling))
    np.testing.assert_allclose(
        regression_samples(found, agents, 3, noise, coupling, "sarl"), at, rtol=1e-12
    )
    np.testing.assert_allclose(dimension_ratio_limit(floor, found), 1 / agents, rtol=1e-12)
    paper = accuracy_crossover(agents, coupling, "paper")
    np.testing.assert_allclose(dimension_ratio_limit(floor, paper, "paper"), 1 / agents, rtol=1e-12)


def test_nothing_neglected():
    assert float(accuracy_crossover(1, 0.5)) == 0.0
    assert float(accuracy_crossover(4, 0.0, "paper")) == 0.0


def test_ratio_limits():
    """By the sample sizes themselves: with the d + 1 for `exact`, without for `asymptotic`."""
    alpha, accuracy, noise = 0.4, 0.9, 2.0
    found = float(dimension_ratio_limit(alpha, accuracy))

    def team(d):
        return d * (noise + alpha**2) / (accuracy**2 - alpha**2)

    single = 12 * noise / accuracy**2
    root = scipy.optimize.brentq(lambda d: d + 1 + team(d) - 13 - single, 1e-3, 12)
    np.testing.assert_allclose(found, root / 12, rtol=1e-10)
    root = scipy.optimize.brentq(lambda d: team(d) - single, 1e-3, 12)
    found = dimension_ratio_limit(alpha, accuracy, "asymptotic", noise)
    np.testing.assert_allclose(found, root / 12, rtol=1e-10)
    np.testing.assert_allclose(
        dimension_ratio_limit(alpha, accuracy, "paper"), (1 - 0.8 / 0.9) ** 2, rtol=1e-12
    )
    for rule in ("exact", "asymptotic", "paper"):
        assert float(dimension_ratio_limit(0.0, 0.3, rule)) == 1.0
        assert float(dimension_ratio_limit(0.3, 0.3, rule)) == 0.0
    assert float(dimension_ratio_limit(0.15, 0.3, "paper")) == 0.0


def test_paper_rule_suffices_up_to_four_fifths():
    share = np.linspace(0, 0.5, 51)
    exact, paper = (
        np.array([float(dimension_ratio_limit(t, 1.0, rule)) for t in share])
        for rule in ("exact", "paper")
    )
    assert (paper <= exact).all()


def test_chi_square_by_scipy():
    sarl, marl = chi_square_samples(4, 5, 1, 0.3, 0.05)
    np.testing.assert_allclose([marl, sarl], [87.25, 283.00], rtol=1e-4)
    worst = chi_square_samples(4, 5, 1, 0.3, 0.05, "worst")
    np.testing.assert_allclose(worst, [407.68, 161.08], rtol=1e-4)
    for delta in (1e-12, 1e-3, 0.5, 0.999):
        sarl, marl = chi_square_samples(3, 2, 0.7, 0.2, delta)
        np.testing.assert_allclose(scipy.stats.chi2.sf(marl * 3 * 0.04 / 0.7, 6), delta, rtol=1e-9)
        np.testing.assert_allclose(scipy.stats.chi2.sf(sarl * 3 * 0.04 / 0.7, 18), delta, rtol=1e-9)
        sarl, marl = chi_square_samples(3, 2, 0.7, 0.2, delta, "worst")
        for n, inputs in ((sarl, 6), (marl, 2)):
            each = scipy.stats.chi2.sf(n * 0.04 / 0.7, inputs)
            np.testing.assert_allclose(-np.expm1(3 * np.log1p(-each)), delta, rtol=1e-9)


def test_chi_square_with_two_inputs_is_a_logarithm():
    """χ²_2 is exponential of mean 2: its tail is e^{−x/2}, to the smallest probabilities."""
    for delta in (1e-12, 1e-100, 1e-300):
        _, marl = chi_square_samples(1, 2, 3.0, 0.5, delta)
        np.testing.assert_allclose(marl, -2 * np.log(delta) * 3 / 0.25, rtol=1e-12)
        _, marl = chi_square_samples(10, 2, 3.0, 0.5, delta, "worst")
        np.testing.assert_allclose(marl, -2 * np.log(delta / 10) * 3 / 0.25, rtol=1e-11)


def test_chi_square_limits():
    assert chi_square_samples(4, 5, 0.0, 0.3, 0.05) == (0.0, 0.0)
    assert chi_square_samples(4, 5, 1.0, 1e-200, 0.05) == (np.inf, np.inf)
    single = chi_square_samples(1, 5, 1.0, 0.3, 0.05)
    assert single[0] == single[1]
    np.testing.assert_allclose(
        chi_square_samples(1, 5, 1.0, 0.3, 0.05, "worst"), single, rtol=1e-12
    )


def test_traced_numbers():
    found = jax.jit(lambda e: regression_samples(e, *TASK, "blind"))(0.75)
    np.testing.assert_allclose(found, regression_samples(0.75, *TASK, "blind"), rtol=1e-14)
    with pytest.raises(ValueError, match=r"^accuracy: "):
        jax.jit(lambda e: chi_square_samples(4, 5, 1.0, e, 0.05))(0.3)


def test_inflation_enters_as_noise():
    """The aware team's size is that of independent subtasks with σ²V̄."""
    noise = 2.0 * float(np.mean(noise_inflation(4, 0.5)))
    found = regression_samples(0.3, *TASK, "aware")
    np.testing.assert_allclose(found, 4 + 3 * noise / 0.09, rtol=1e-13)


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("function", "named", "arguments"),
    [
        (regression_samples, "accuracy", (0.0, 4, 3, 1.0, 0.5, "sarl")),
        (regression_samples, "accuracy", ([0.1], 4, 3, 1.0, 0.5, "sarl")),
        (regression_samples, "num_agents", (0.1, 0, 3, 1.0, 0.5, "sarl")),
        (regression_samples, "dim", (0.1, 4, 0, 1.0, 0.5, "sarl")),
        (regression_samples, "noise_variance", (0.1, 4, 3, -1.0, 0.5, "sarl")),
        (regression_samples, "coupling", (0.1, 4, 3, 1.0, -0.5, "sarl")),
        (regression_samples, "learner", (0.1, 4, 3, 1.0, 0.5, "team")),
        (dimension_ratio_limit, "misalignment", (-0.1, 0.5)),
        (dimension_ratio_limit, "accuracy", (0.1, 0.0)),
        (dimension_ratio_limit, "rule", (0.1, 0.5, "papers")),
        (dimension_ratio_limit, "noise_variance", (0.1, 0.5, "asymptotic", 0.0)),
        (accuracy_crossover, "num_agents", (0, 0.5)),
        (accuracy_crossover, "coupling", (4, np.inf)),
        (accuracy_crossover, "rule", (4, 0.5, "asymptotic")),
        (chi_square_samples, "num_agents", (0, 5, 1.0, 0.3, 0.05)),
        (chi_square_samples, "dim", (4, 1.5, 1.0, 0.3, 0.05)),
        (chi_square_samples, "noise_variance", (4, 5, -1.0, 0.3, 0.05)),
        (chi_square_samples, "accuracy", (4, 5, 1.0, 0.0, 0.05)),
        (chi_square_samples, "failure_probability", (4, 5, 1.0, 0.3, 0.0)),
        (chi_square_samples, "failure_probability", (4, 5, 1.0, 0.3, 1.0)),
        (chi_square_samples, "criterion", (4, 5, 1.0, 0.3, 0.05, "median")),
    ],
)
def test_bad_input_is_named(function, named, arguments):
    with pytest.raises(ValueError, match=rf"^{named}: "):
        function(*arguments)
