"""Regret, failure, sample sizes and crossovers: by quadrature group by group and by enumeration."""

from types import SimpleNamespace

import jax
import numpy as np
import pytest
import scipy.optimize
import scipy.special
import scipy.stats

from boundlab.theory.team_learning import (
    budget_crossover,
    joint_trajectories_needed,
    needle_spectrum,
    reward_spectrum,
    team_failure,
    team_regret,
    trajectories_needed,
)

LEARNERS = ("joint", "own", "shared", "orthogonal")


def task(actions=4, agents=3, gap=0.6, coupling=0.0, own=1.0, outcome=None):
    return SimpleNamespace(
        num_actions=actions,
        num_agents=agents,
        gap=gap,
        coupling=coupling,
        own_noise_std=own,
        outcome_noise_std=outcome,
    )


def rewards(t):
    joint = np.indices((t.num_actions,) * t.num_agents)
    own = -t.gap * (joint != 0).mean(axis=0)
    return own + t.coupling * (joint.sum(axis=0) % t.num_actions == 1 % t.num_actions)


def law(values, counts, scale):
    """(E1) as it stands, an integral over z for each group, in logarithms."""
    z = np.linspace(-9.0 - 0.5 * scale * np.ptp(values), 12.0, 12001)
    chances = []
    for v, c in zip(values, counts, strict=True):
        log_f = scipy.stats.norm.logpdf(z) + (c - 1) * scipy.special.log_ndtr(z)
        for w, d in zip(values, counts, strict=True):
            if w != v:
                log_f += d * scipy.special.log_ndtr(z + (v - w) * scale)
        chances.append(c * np.exp(log_f).sum() * (z[1] - z[0]))
    return np.array(chances)


def error(actions, x):
    return law(np.array([x, 0.0]), np.array([1, actions - 1]), 1.0)[1]


def by_enumeration(t, learner, budget, accuracy):
    """Regret and failure from the law of every joint action, one by one."""
    tensor = rewards(t)
    losses = tensor.max() - tensor
    sigma = t.own_noise_std / t.num_agents**0.5
    sigma = sigma if t.outcome_noise_std is None else t.outcome_noise_std
    if learner == "joint":
        values, places, counts = np.unique(
            np.round(tensor, 12), return_inverse=True, return_counts=True
        )
        chances = law(values, counts, np.sqrt(budget / tensor.size) / sigma)
        chance = (chances / counts)[places].reshape(tensor.shape)
    else:
        gap, noise = t.gap, t.own_noise_std
        if learner != "own":
            gap, noise = t.gap / t.num_agents, sigma
        if learner == "shared":
            # Variance of the team's reward given one agent's action, averaged over that action.
            within = np.mean([tensor[a].var() for a in range(t.num_actions)])
            noise = np.sqrt(noise**2 + within)
        q = error(t.num_actions, gap * np.sqrt(budget / t.num_actions) / noise)
        one = np.r_[1 - q, np.full(t.num_actions - 1, q / (t.num_actions - 1))]
        chance = np.ones(())
        for _ in range(t.num_agents):
            chance = np.multiply.outer(chance, one)
    return np.sum(chance * losses), np.sum(chance[losses > accuracy + 1e-9])


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize(
    ("actions", "agents", "coupling"), [(4, 3, 0.0), (4, 3, 0.35), (3, 2, 0.5), (2, 3, 0.1)]
)
def test_by_enumeration(actions, agents, coupling, learner):
    t = task(actions, agents, 0.6, coupling, 1.0, 0.4)
    budgets = np.array([20.0, 64.0, 700.0])
    regret = team_regret(budgets, t, learner)
    failure = team_failure(budgets, t, learner, 0.2)
    expected = np.array([by_enumeration(t, learner, n, 0.2) for n in budgets]).T
    np.testing.assert_allclose(regret, expected[0], rtol=1e-10)
    np.testing.assert_allclose(failure, expected[1], rtol=1e-10)


def test_published_regrets():
    """The default task at four budgets: joint, own, shared."""
    budgets = np.array([64.0, 256.0, 1024.0, 4096.0])
    published = {
        0.0: (
            [0.3459, 0.2451, 0.1214, 0.0270],
            [0.0644, 0.0006, 0, 0],
            [0.2035, 0.0413, 0.0001, 0],
        ),
        0.35: (
            [0.3044, 0.1516, 0.0424, 0.0030],
            [0.1819, 0.1502, 0.15, 0.15],
            [0.2866, 0.1723, 0.1501, 0.15],
        ),
    }
    for coupling, rows in published.items():
        for learner, row in zip(LEARNERS, rows, strict=False):
            found = team_regret(budgets, task(coupling=coupling), learner)
            np.testing.assert_allclose(found, row, atol=6e-5)
    noisy = task(3, 3, 0.6, 0.35, 1.0, 1.0)
    np.testing.assert_allclose(team_regret(40 * 27, noisy, "joint"), 0.0356177, atol=5e-8)


def test_binomial_failure_without_coupling():
    """Losses of ε itself are within it: ⌊Kε/Δ⌋ errors are allowed, also where that is a tie."""
    t = task(4, 3, 0.6, 0.0)
    q = error(4, 0.6 * np.sqrt(30.0 / 4))
    for accuracy, allowed in ((0.0, 0), (0.1, 0), (0.2, 1), (0.35, 1), (0.4, 2), (0.6, 3)):
        expected = scipy.stats.binom.sf(allowed, 3, q)
        found = team_failure(30.0, t, "own", accuracy)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("budget", [2e3, 6e3, 2e4])
def test_small_tails_keep_their_accuracy(budget):
    """Down to 1e-200; scipy's asymptotic chance for two arms is Φ(−x/√2)."""
    t = task(2, 3, 0.6, 0.0)
    expected = 0.6 * scipy.stats.norm.cdf(-0.6 * np.sqrt(budget / 2) / np.sqrt(2))
    np.testing.assert_allclose(team_regret(budget, t, "own"), expected, rtol=1e-9)


def test_no_samples_is_a_uniform_choice_and_many_are_exact():
    for t in (task(coupling=0.35), task(3, 2, 0.0, 0.4), task(2, 1, 0.6, 0.9), task(1, 3)):
        tensor = rewards(t)
        for learner in LEARNERS:
            found = team_regret(np.array([0.0, 1e12]), t, learner)
            np.testing.assert_allclose(
                found[0], tensor.max() - tensor.mean(), rtol=1e-9, atol=1e-15
            )
        assert float(team_regret(1e12, t, "joint")) < 1e-12


def test_one_agent_paid_the_outcome_is_the_joint_learner():
    t = task(5, 1, 0.6, 0.3, 1.0, 0.7)
    joint = float(team_regret(40.0, t, "joint"))
    assert [float(team_regret(40.0, t, name)) for name in LEARNERS[2:]] == [joint] * 2
    assert float(team_regret(1e9, t, "own")) == 0.0
    assert float(team_regret(1e9, task(5, 1, 0.6, 0.8), "own")) == pytest.approx(0.2)
    assert float(trajectories_needed(task(5, 1, 0.6, 0.8), "own", 0.1, 0.1)) == np.inf


def test_without_noise_or_gap():
    exact = task(4, 3, 0.6, 0.35, 0.0)
    assert float(team_regret(1.0, exact, "joint")) == 0.0
    np.testing.assert_allclose(team_regret(1.0, exact, "own"), 0.15, rtol=1e-12)
    assert float(trajectories_needed(exact, "joint", 0.1, 0.1)) == 0.0
    assert float(trajectories_needed(exact, "orthogonal", 0.2, 0.1)) == 0.0
    flat = task(4, 3, 0.0, 0.0)
    for learner in LEARNERS:
        assert float(team_regret(64.0, flat, learner)) == 0.0
        assert float(trajectories_needed(flat, learner, 0.1, 0.1)) == 0.0
    # Nothing to learn from, and a uniform choice misses the parity with chance 3/4.
    pure = task(4, 3, 0.0, 0.4)
    assert float(trajectories_needed(pure, "own", 0.5, 0.1)) == 0.0
    assert float(trajectories_needed(pure, "own", 0.1, 0.9)) == np.inf


def test_teams_beyond_integers():
    """8^16 and 64^16 joint actions."""
    for t in (task(8, 16, 0.6, 0.4), task(64, 16, 0.6, 0.4)):
        joint = float(t.num_actions) ** t.num_agents
        found = np.asarray(team_regret(joint * np.array([0.1, 10.0, 1e5]), t, "joint"))
        assert np.isfinite(found).all()
        assert (np.diff(found) < 0).all()
        assert np.isfinite(float(trajectories_needed(t, "joint", 0.1, 0.1)))


GOLDEN = {
    (2, 2): (159, 42.6, 87.9, 85.3),
    (2, 4): (1731, 60.4, 253.0, 241.7),
    (4, 2): (1002, 134.6, 275.4, 269.1),
    (4, 3): (6834, 157.7, 487.8, 473.0),
    (8, 3): (68482, 396.9, 1212.3, 1190.6),
}


@pytest.mark.parametrize(("actions", "agents"), list(GOLDEN))
def test_published_sample_sizes(actions, agents):
    t = task(actions, agents, 0.5)
    found = [float(trajectories_needed(t, learner, 0.0, 0.1)) for learner in LEARNERS]
    np.testing.assert_allclose(found, GOLDEN[actions, agents], rtol=2.5e-3)


def test_credit_assignment_price():
    """N_shared/N_own = K²σ_eff²/σ_s²; of the orthogonal design K, or K² with an independent judge."""
    for outcome, price in ((None, 3.0), (1.0, 9.0)):
        t = task(4, 3, 0.5, 0.0, 1.0, outcome)
        own, shared, orthogonal = (
            float(trajectories_needed(t, learner, 0.0, 0.1)) for learner in LEARNERS[1:]
        )
        assert orthogonal / own == pytest.approx(price, rel=1e-10)
        teammates = (2 / 9) * 0.25 * 3 / 16
        assert shared / own == pytest.approx(price + 9 * teammates, rel=1e-10)


@pytest.mark.parametrize(
    ("arms", "delta", "root_square"),
    [(4, 0.2, 3.584), (64, 0.05, 17.267), (2**20, 0.05, 43.170), (2**40, 0.05, 77.382)],
)
def test_published_roots(arms, delta, root_square):
    """One best arm: m(Δ/σ)² is x*²."""
    found = joint_trajectories_needed([1.0, 0.0], [1.0, arms - 1.0], 2.0, 0.5, delta)
    np.testing.assert_allclose(float(found) / arms / 4.0, root_square, rtol=1.5e-4)


def test_sample_size_of_any_tensor_by_quadrature():
    rng = np.random.default_rng(5)
    tensor = rng.integers(0, 5, size=(3, 3, 3)) / 5.0
    values, counts = np.unique(tensor, return_counts=True)
    failing = values < values.max() - 0.25

    def excess(scale):
        return law(values, counts, scale)[failing].sum() - 0.03

    expected = 27 * (0.7 * scipy.optimize.brentq(excess, 0.1, 100.0, xtol=1e-13)) ** 2
    found = joint_trajectories_needed(*reward_spectrum(tensor), 0.7, 0.25, 0.03)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert float(joint_trajectories_needed(*needle_spectrum(4, 2, 1.0), 1.0, 0.0, 0.95)) == 0.0
    constant = reward_spectrum(np.full((3, 3), 0.1))
    assert float(joint_trajectories_needed(*constant, 1.0, 0.0, 0.1)) == 0.0


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("delta", [1e-12, 0.05, 0.4])
def test_failure_at_the_sample_size(learner, delta):
    t = task(coupling=0.15)
    needed = float(trajectories_needed(t, learner, 0.1, delta))
    np.testing.assert_allclose([by_enumeration(t, learner, needed, 0.1)[1]], delta, rtol=1e-7)


def test_floor_above_the_accuracy():
    t = task(coupling=0.35)
    assert float(trajectories_needed(t, "own", 0.149, 0.1)) == np.inf
    assert float(trajectories_needed(t, "own", 0.15, 0.1)) < np.inf
    assert float(trajectories_needed(t, "joint", 0.149, 0.1)) < np.inf


def test_published_crossovers():
    published = {0.25: (944.9, 942.4), 0.35: (259.5, 168.3), 0.6: (64.0, 64.0)}
    for coupling, row in published.items():
        found = [float(budget_crossover(task(coupling=coupling), s)) for s in ("own", "shared")]
        np.testing.assert_allclose(found, row, rtol=5e-4)
    for coupling in (0.0, 0.1, 0.2):
        assert float(budget_crossover(task(coupling=coupling), "own")) == np.inf


def test_crossover_is_the_last_of_two():
    """D goes − + − : positive between 27.3 and 101.6 trajectories alone."""
    t = task(3, 2, 0.69, 0.35, 1.0, 0.5)

    def difference(n):
        return by_enumeration(t, "joint", n, 0.0)[0] - by_enumeration(t, "own", n, 0.0)[0]

    last = scipy.optimize.brentq(difference, 60.0, 400.0, rtol=1e-13)
    assert difference(9.0) < 0 < difference(60.0)
    np.testing.assert_allclose(budget_crossover(t, "own"), last, rtol=1e-8)


def test_crossover_falls_with_coupling():
    couplings = [0.2 + 1e-3, 0.21, 0.25, 0.3, 0.4, 0.5, 0.8]
    found = [float(budget_crossover(task(coupling=w), "own")) for w in couplings]
    assert (np.diff(found) <= 0).all()
    assert found[0] < 1e5
    assert found[-1] == pytest.approx(64.0, rel=1e-14)


def test_crossover_of_degenerate_tasks():
    assert float(budget_crossover(task(1, 3, 0.6, 0.9), "own")) == np.inf
    assert float(budget_crossover(task(4, 1, 0.6, 0.9), "shared")) == np.inf
    assert np.isfinite(float(budget_crossover(task(4, 1, 0.6, 0.9), "own")))
    assert float(budget_crossover(task(4, 3, 0.0, 0.4), "own")) == pytest.approx(64.0)
    assert float(budget_crossover(task(4, 3, 0.6, 0.4, 0.0), "own")) == pytest.approx(64.0)


def test_traced_tasks_and_shapes():
    couplings = np.array([0.0, 0.35])
    found = jax.vmap(lambda w: team_regret(np.array([64, 256]), task(coupling=w), "own"))(couplings)
    np.testing.assert_allclose(found, [[0.0644, 0.0006], [0.1819, 0.1502]], atol=6e-5)
    assert team_regret(np.full((2, 1, 3), 64.0), task(), "own").shape == (2, 1, 3)
    assert team_regret(64, task(), "own").shape == ()
    assert team_regret(np.zeros(0), task(), "own").shape == (0,)
    many = team_regret(np.linspace(1.0, 900.0, 1100), task(), "own")
    few = team_regret(np.array([1.0, 900.0]), task(), "own")
    np.testing.assert_allclose(np.asarray(many)[[0, -1]], few, rtol=1e-12)


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("named", "call"),
    [
        ("num_trajectories", lambda: team_regret(-1.0, task(), "own")),
        ("num_trajectories", lambda: team_regret([1.0, np.nan], task(), "own")),
        ("learner", lambda: team_regret(1.0, task(), "sarl")),
        ("task", lambda: team_regret(1.0, {"num_actions": 3}, "own")),
        ("num_actions", lambda: team_regret(1.0, task(actions=0), "own")),
        ("num_agents", lambda: team_regret(1.0, task(agents=1.5), "own")),
        ("gap", lambda: team_regret(1.0, task(gap=-0.1), "own")),
        ("coupling", lambda: team_regret(1.0, task(coupling=[0.1, 0.2]), "own")),
        ("own_noise_std", lambda: team_regret(1.0, task(own=-1.0), "own")),
        ("outcome_noise_std", lambda: team_regret(1.0, task(outcome="x"), "own")),
        ("accuracy", lambda: team_failure(1.0, task(), "own", -0.1)),
        ("accuracy", lambda: trajectories_needed(task(), "own", np.inf, 0.1)),
        ("failure_probability", lambda: trajectories_needed(task(), "own", 0.1, 0.0)),
        ("failure_probability", lambda: trajectories_needed(task(), "own", 0.1, 1.0)),
        ("signal", lambda: budget_crossover(task(), "joint")),
        ("values", lambda: joint_trajectories_needed([], [], 1.0, 0.1, 0.1)),
        ("counts", lambda: joint_trajectories_needed([1.0, 0.0], [1.0], 1.0, 0.1, 0.1)),
        ("counts", lambda: joint_trajectories_needed([1.0], [0.0], 1.0, 0.1, 0.1)),
        ("noise_std", lambda: joint_trajectories_needed([1.0], [1.0], -1.0, 0.1, 0.1)),
    ],
)
def test_bad_input_is_named(named, call):
    with pytest.raises(ValueError, match=rf"^{named}: "):
        call()
