"""Problems of the study: shapes, classes, labels that are never made up, splits."""

import jax
import numpy as np
import pytest

from boundlab.analysis.fanout import problems
from boundlab.analysis.fanout.config import Config

SMALL = Config(num_nodes=120, degree=8, num_classes=3, num_features=4, ridge_num_train=(10, 60))


@pytest.mark.parametrize("name", ["mixed", "sbm", "regular", "power_law"])
def test_synthetic_problems(key, name):
    build = getattr(problems, f"{name}_problem")
    problem = build(SMALL, key)
    assert problem.features.shape == (120, 4)
    assert problem.targets.shape == (120, 3)
    np.testing.assert_array_equal(problem.targets.argmax(axis=1), problem.labels)
    np.testing.assert_array_equal(problem.targets.sum(axis=1), 1)
    again = build(SMALL, key)
    np.testing.assert_array_equal(problem.features, again.features)
    np.testing.assert_array_equal(problem.graph.edges(), again.graph.edges())
    assert not np.array_equal(problem.features, build(SMALL, jax.random.fold_in(key, 1)).features)


def test_block_models_have_the_same_expected_homophily(key):
    config = Config(num_nodes=1200, degree=24, num_classes=6)
    problem = problems.sbm_problem(config, key)
    senders, receivers = problem.graph.to_edge_index()
    share = np.mean(problem.labels[senders] == problem.labels[receivers])
    assert abs(share - 0.7) < 4.9 * np.sqrt(0.21 / problem.graph.num_edges)
    assert abs(problem.graph.degrees().mean() - 24) < 4.9 * np.sqrt(2 * 24 / 1200)


def test_taught_labels_are_the_teachers(key):
    """A linear classifier of the full-neighbour means exists: the perceptron finds one."""
    problem = problems.regular_problem(SMALL, key)
    means = problem.graph.adjacency() @ problem.features / 8
    weights = np.zeros((3, 4))
    for _ in range(2000):
        predicted = np.argmax(means @ weights.T, axis=1)
        wrong = np.flatnonzero(predicted != problem.labels)
        if not len(wrong):
            break
        for node in wrong:
            guess = np.argmax(weights @ means[node])
            if guess != problem.labels[node]:
                weights[problem.labels[node]] += means[node]
                weights[guess] -= means[node]
    assert not len(wrong)


def test_unlabelled_papers_have_no_targets_and_are_in_no_split(key):
    problem = problems.citation_problem("citeseer", 12)
    assert problem.features.shape == (3327, 12)
    unlabelled = problem.labels < 0
    assert unlabelled.sum() == 15
    np.testing.assert_array_equal(problem.targets.sum(axis=1), ~unlabelled)
    train, test = problems.split(key, problem.labels, 140)
    both = np.concatenate([train, test])
    assert len(train) == 140
    np.testing.assert_array_equal(np.sort(both), np.flatnonzero(~unlabelled))
    again, _ = problems.split(key, problem.labels, 30)
    np.testing.assert_array_equal(again, train[:30])


def test_digits_problem():
    problem = problems.digits_problem(5)
    assert problem.features.shape == (1797, 64)
    assert problem.features.dtype == np.float64
    assert problem.targets.shape == (1797, 10)


@pytest.mark.parametrize("num_train", [0, 120])
def test_bad_splits_are_refused(key, num_train):
    with pytest.raises(ValueError, match=f"num_train: got {num_train}"):
        problems.split(key, np.zeros(120, int), num_train)
