"""The advice against enumeration of every batch and every sample, and its rule by hand."""

import itertools
from typing import Any

import jax
import numpy as np
import pytest

from boundlab.analysis.fanout import advice as module
from boundlab.analysis.fanout import fan_out_effects
from boundlab.analysis.fanout.advice import advise
from boundlab.analysis.fanout.advice_arguments import check_arguments
from boundlab.analysis.fanout.config import Config
from boundlab.analysis.fanout.fan_out_effects import FanOutEffect
from boundlab.analysis.fanout.problems import mixed_problem
from boundlab.models.graphs import DirectedGraph, circulant, from_directed_edges, from_edges, star
from boundlab.theory.fanout import implicit_ridge, neighbor_mean_moments, noise_floor

R, K = 2, 2


@pytest.fixture(scope="module")
def ragged() -> DirectedGraph:
    """Six nodes with in-degrees 3, 2, 4, 1, 0, 2."""
    receivers = np.repeat([0, 1, 2, 3, 5], [3, 2, 4, 1, 2])
    senders = np.array([1, 2, 5, 0, 3, 0, 1, 3, 5, 4, 0, 2])
    return from_directed_edges(senders, receivers, 6)


@pytest.fixture(scope="module")
def numbers() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    return rng.standard_normal((6, R)), rng.standard_normal((6, K))


def samples_of(graph: Any, x: np.ndarray, node: int, fan_out: int) -> np.ndarray:
    """Means of every possible sample of a node's neighbours, equally likely."""
    senders, receivers = graph.to_edge_index()
    around = senders[receivers == node]
    size = min(fan_out, len(around))
    if size == 0:
        return np.zeros((1, x.shape[1]))
    return np.array(
        [x[list(chosen)].mean(axis=0) for chosen in itertools.combinations(around, size)]
    )


def test_table_by_enumeration(ragged: DirectedGraph, numbers: tuple) -> None:
    x, y = numbers
    nodes = [0, 1, 3, 5]
    sizes, fan_outs = [1, 2, 4], [1, 2, 3]
    advice = advise(ragged, 10_000, x, y, nodes, sizes, fan_outs)
    table = advice.table
    assert table["floor"].dims == ("batch_size", "fan_out")
    for fan_out in fan_outs:
        means = {i: samples_of(ragged, x, i, fan_out) for i in nodes}
        # The sampled loss is least squares over all samples, each by its probability.
        rows = np.concatenate([h / np.sqrt(len(h) * len(nodes)) for h in means.values()])
        goals = np.concatenate(
            [np.tile(y[i], (len(h), 1)) / np.sqrt(len(h) * len(nodes)) for i, h in means.items()]
        )
        solution = np.linalg.lstsq(rows, goals, rcond=None)[0]
        floor = 0.5 * np.sum((rows @ solution - goals) ** 2)
        gradients = {
            i: np.array([np.outer(h @ solution - y[i], h).ravel() for h in means[i]]) for i in nodes
        }
        for size in sizes:
            cell = table.sel(batch_size=size, fan_out=fan_out)
            np.testing.assert_allclose(cell["floor"], floor, rtol=1e-10)
            drawn, weight, touched, largest = [], [], [], 0
            for batch in itertools.combinations(nodes, size):
                every = list(itertools.product(*(range(len(means[i])) for i in batch)))
                for chosen in every:
                    parts = [gradients[i][c] for i, c in zip(batch, chosen, strict=True)]
                    drawn.append(np.mean(parts, axis=0))
                    weight.append(1.0 / len(every))
                    seen = set(batch).union(
                        *(subset(ragged, i, fan_out, c) for i, c in zip(batch, chosen, strict=True))
                    )
                    touched.append(len(seen))
                edges = sum(min(fan_out, int(ragged.degrees()[i])) for i in batch)
                reach = min(6, edges + size)  # all six nodes are within reach of the four
                most = reach * R + 2 * edges + 2 * size * (R + K) + size * K + 2 * R * K
                largest = max(largest, 4 * most)
            weight = np.array(weight) / sum(weight)
            spread = np.array(drawn) - weight @ np.array(drawn)
            noise = weight @ np.sum(spread**2, axis=1)
            np.testing.assert_allclose(cell["gradient_noise"], noise, rtol=1e-9, atol=1e-15)
            np.testing.assert_allclose(cell["touched_nodes"], weight @ touched, rtol=1e-12)
            assert int(cell["memory"]) == largest
            mean_edges = np.mean([min(fan_out, int(ragged.degrees()[i])) for i in nodes])
            flops = 3 * (2 * size * mean_edges * R + 2 * size * R * K)
            np.testing.assert_allclose(cell["flops"], flops, rtol=1e-12)


def subset(graph: Any, node: int, fan_out: int, place: int) -> tuple[int, ...]:
    senders, receivers = graph.to_edge_index()
    around = senders[receivers == node].tolist()
    return list(itertools.combinations(around, min(fan_out, len(around))))[place]


@pytest.fixture(scope="module")
def classes() -> tuple[DirectedGraph, np.ndarray, np.ndarray]:
    """Sixty nodes of three classes, eight neighbours each, of the own class more often than not."""
    rng = np.random.default_rng(8)
    labels = np.arange(60) % 3
    senders, receivers = [], []
    for i in range(60):
        weight = np.where(labels == labels[i], 4.0, 1.0)
        weight[i] = 0.0
        senders += rng.choice(60, 8, replace=False, p=weight / weight.sum()).tolist()
        receivers += [i] * 8
    features = rng.standard_normal((3, 5))[labels] + rng.standard_normal((60, 5))
    return from_directed_edges(senders, receivers, 60), features, np.eye(3)[labels]


def test_recommended_cell_is_in_the_table_and_fits(classes: tuple) -> None:
    graph, x, y = classes
    everything = advise(graph, 1e9, x, y)
    memory = everything.table["memory"]
    assert (memory.diff("batch_size") > 0).all()
    assert (memory.diff("fan_out") >= 0).all()
    assert (everything.table["floor"].diff("fan_out") <= 1e-12).all()
    assert everything.table["batch_size"].values.tolist() == [1, 2, 4, 8, 16, 32, 60]
    assert everything.table["fan_out"].values.tolist() == [1, 2, 3, 5, 8]
    for budget in np.geomspace(int(memory.min()), int(memory.max()), 4).astype(int).tolist():
        found = advise(graph, budget, x, y)
        cell = found.table.sel(batch_size=found.batch_size, fan_out=found.fan_out)
        assert int(cell["memory"]) <= budget
        assert len(found.reasons) >= 4
        assert str(found.batch_size) in found.reasons[2]
        assert found.table.attrs["recommended_fan_out"] == found.fan_out
    assert found.batch_size == everything.batch_size
    assert found.fan_out == everything.fan_out


def test_too_small_a_budget_names_one_that_does(classes: tuple) -> None:
    graph, x, y = classes
    with pytest.raises(ValueError, match=r"memory_budget: got 10 bytes.*at least (\d+)") as caught:
        advise(graph, 10, x, y)
    least = int(str(caught.value).split("at least ")[1].split()[0])
    assert advise(graph, least, x, y).batch_size == 1
    with pytest.raises(ValueError, match="memory_budget"):
        advise(graph, least - 1, x, y)


def test_step_size_is_stable_and_quiet(classes: tuple) -> None:
    """Half the limit of stability at most, and the noise floor that the theory gives at that step."""
    graph, x, y = classes
    table = advise(graph, 1e9, x, y, batch_sizes=[1, 8, 60], fan_outs=[2, 8]).table
    zero = 0.5 * np.mean(np.sum(y**2, axis=1))
    allowed = module.SHARE * (zero - float(table["evaluation_loss"].min()))
    quiet, stable = [], []
    for fan_out in (2, 8):
        moments = neighbor_mean_moments(graph, x, fan_out)
        moment = moments.mean.T @ moments.mean / 60 + moments.average_covariance
        for size in (1, 8, 60):
            step = float(table["step_size"].sel(batch_size=size, fan_out=fan_out))
            floor = float(noise_floor(graph, x, y, size, fan_out, step))
            limit = 1 / (np.linalg.eigvalsh(moment)[-1] + np.trace(moment) / size)
            assert floor <= allowed * (1 + 1e-9)
            assert step <= limit * (1 + 1e-9)
            quiet.append(np.isclose(floor, allowed, rtol=1e-9))
            stable.append(np.isclose(step, limit, rtol=1e-9))
    assert np.logical_or(quiet, stable).all()
    cost = table["flops"] / table["step_size"]
    np.testing.assert_allclose(table["relative_cost"], cost / cost.min(), rtol=1e-12)


def test_held_out_losses_are_those_of_refits(classes: tuple) -> None:
    """Five folds, each refitted by least squares on samples and their probabilities."""
    graph, x, y = classes
    nodes = np.arange(0, 60, 2)
    for fan_out in (2, 8):
        found = advise(graph, 1e9, x, y, nodes, [30], [fan_out]).table["evaluation_loss"]
        losses = []
        for fold in range(5):
            stay = nodes[np.arange(30) % 5 != fold]
            rows, goals = [], []
            for i in stay:
                means = samples_of(graph, x, i, fan_out)
                rows.append(means / np.sqrt(len(means)))
                goals.append(np.tile(y[i], (len(means), 1)) / np.sqrt(len(means)))
            weights = np.linalg.lstsq(np.concatenate(rows), np.concatenate(goals), rcond=None)[0]
            for i in nodes[np.arange(30) % 5 == fold]:
                losses.append(0.5 * np.sum((samples_of(graph, x, i, 8)[0] @ weights - y[i]) ** 2))
        np.testing.assert_allclose(found, [np.mean(losses)], rtol=1e-7)


def test_wide_features_are_compressed_without_loss(classes: tuple) -> None:
    """Eighty columns on six training nodes: the span of their neighbours gives the same answer."""
    graph, x, y = classes
    rng = np.random.default_rng(1)
    wide = x @ rng.standard_normal((5, 5)) @ np.linalg.qr(rng.standard_normal((400, 5)))[0].T
    wide += 0.1 * rng.standard_normal((60, 400))
    nodes = np.arange(6)
    advice = advise(graph, 1e9, wide, y, nodes, [3], [2, 8])
    senders, receivers = graph.to_edge_index()
    assert fan_out_effects.compressed(graph, wide, nodes).shape[1] == len(
        np.unique(senders[receivers < 6])
    )
    for fan_out in (2, 8):
        moments = neighbor_mean_moments(graph, wide, fan_out, nodes)
        ridge = implicit_ridge(moments.mean, moments.average_covariance, y[nodes])
        floor = float(advice.table["floor"].sel(batch_size=3, fan_out=fan_out))
        np.testing.assert_allclose(floor, ridge.floor, rtol=1e-8, atol=1e-12)


def test_cholesky_agrees_with_the_eigendecomposition(
    classes: tuple, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, x, y = classes
    x = np.concatenate([x, x[:, :1]], axis=1)  # singular
    by_theory = advise(graph, 1e9, x, y, batch_sizes=[4], fan_outs=[2, 8])
    monkeypatch.setattr(fan_out_effects, "WIDEST", 1)
    by_cholesky = advise(graph, 1e9, x, y, batch_sizes=[4], fan_outs=[2, 8])
    for name in ("floor", "gradient_noise", "step_size"):
        np.testing.assert_allclose(by_cholesky.table[name], by_theory.table[name], rtol=1e-7)


def test_fan_out_rule(ragged: DirectedGraph, numbers: tuple) -> None:
    """Zero predictor 2, best loss 1 at fan-out 3: .05 may be lost, or a standard error if larger."""
    y = np.full((6, 2), np.sqrt(2.0))
    problem = check_arguments(ragged, 1e6, numbers[0], y, None, [1, 6], [1, 2, 3])
    unit = np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])

    def choose(first: np.ndarray, second: np.ndarray, fits: list) -> tuple[int, tuple[str, ...]]:
        effects = [
            FanOutEffect(0.5, losses, 0.0, 0.0, 1.0, 1.0)
            for losses in (first, second, 0 * unit + 1)
        ]
        return module._choose_fan_out(problem, effects, np.array(fits))

    every = [[True] * 3] * 2
    assert choose(0 * unit + 1.06, 0 * unit + 1.04, every)[0] == 1
    assert choose(0 * unit + 1.04, 0 * unit + 1.04, every)[0] == 0
    # Differences of ±.3 around .1 have the standard error .3·√(6/5)/√6 = .134.
    assert choose(0.1 + 0.3 * unit + 1, 0 * unit + 1.04, every)[0] == 0
    assert choose(0.1 + 0.2 * unit + 1, 0 * unit + 1.06, every)[0] == 2
    place, reasons = choose(0 * unit + 1.2, 0 * unit + 1.3, [[True, True, False], [False] * 3])
    assert place == 0
    assert "fit the memory; 3 would reach 1" in reasons[0]


def test_few_training_nodes_get_a_fan_out_that_generalises() -> None:
    """Thirty training nodes: on the others the advised fan-out beats one neighbour and all of them."""
    problem = mixed_problem(Config(), jax.random.key(1))
    full = neighbor_mean_moments(problem.graph, problem.features, 24).mean
    order = np.random.default_rng(0).permutation(1200)
    train, test = order[:30], order[30:]
    given = (problem.graph, 1e9, problem.features, problem.targets, train, [8])
    advice = advise(*given, [1, 8, 24])
    errors = {}
    for fan_out in (1, 8, 24):
        moments = neighbor_mean_moments(problem.graph, problem.features, fan_out, train)
        ridge = implicit_ridge(
            moments.mean, moments.average_covariance, np.asarray(problem.targets)[train]
        )
        residual = full[test] @ np.asarray(ridge.weights).T - np.asarray(problem.targets)[test]
        errors[fan_out] = np.mean(residual**2)
    assert advice.fan_out == min(errors, key=errors.get) == 8


def test_unlabelled_nodes_are_left_out(classes: tuple) -> None:
    import dataclasses

    graph, x, y = classes
    labels = np.argmax(y, axis=1)
    labels[:4] = -1
    some = y.copy()
    some[:4] = 0.0
    grid = {"batch_sizes": [4], "fan_outs": [2, 8]}
    expected = advise(graph, 1e9, x, y, np.arange(4, 60), **grid)
    known = dataclasses.replace(graph, labels=labels)
    missing = np.where(labels[:, None] < 0, np.nan, y)
    for given_graph, given in ((known, y), (known, some), (graph, some), (graph, missing)):
        found = advise(given_graph, 1e9, x, given, **grid)
        assert found.table.equals(expected.table)
        assert any("4 nodes without a target" in reason for reason in found.reasons)
    with pytest.raises(ValueError, match=r"train_nodes.*node 3"):
        advise(known, 1e9, x, some, [3, 9])


def test_zeros_of_a_single_column_are_targets(classes: tuple) -> None:
    graph, x, y = classes
    binary = y[:, :1]
    assert set(np.unique(binary)) == {0.0, 1.0}
    grid = {"batch_sizes": [4], "fan_outs": [2, 8]}
    found = advise(graph, 1e9, x, binary, **grid)
    assert found.table.attrs["num_train"] == 60
    assert found.table.equals(advise(graph, 1e9, x, binary, np.arange(60), **grid).table)


def test_the_reason_for_the_batch_size_quotes_the_table(classes: tuple) -> None:
    graph, x, y = classes
    advice = advise(graph, 1e9, x, y, fan_outs=[2, 8])
    cost = advice.table["relative_cost"].sel(fan_out=advice.fan_out)
    (reason,) = [text for text in advice.reasons if text.startswith("batch size")]
    assert f"with {float(cost.sel(batch_size=advice.batch_size)):.3g}," in reason
    cheapest = int(cost["batch_size"][np.argmin(cost.values)])
    assert f"{float(cost.min()):.3g} at batch size {cheapest}" in reason


def test_large_features_are_taken_without_overflow(classes: tuple) -> None:
    graph, x, y = classes
    grid = {"batch_sizes": [4], "fan_outs": [2, 8]}
    plain, large = (advise(graph, 1e9, scale * x, y, **grid) for scale in (1.0, 1e50))
    assert (plain.batch_size, plain.fan_out) == (large.batch_size, large.fan_out)
    np.testing.assert_allclose(large.table["floor"], plain.table["floor"], rtol=1e-8)


def test_degenerate_graphs() -> None:
    """No edges, one node, hubs, targets of zero, more features than nodes, one class."""
    rng = np.random.default_rng(0)
    empty = from_edges([], 12)
    y = np.eye(2)[np.arange(12) % 2]
    advice = advise(empty, 1e6, rng.standard_normal((12, 3)), y)
    assert advice.fan_out == 1
    np.testing.assert_allclose(advice.table["floor"], 0.5)
    np.testing.assert_array_equal(advice.table["gradient_noise"], 0.0)
    assert any("no neighbours" in reason for reason in advice.reasons)
    alone = advise(from_edges([], 1), 1e6, np.ones((1, 1)), np.ones((1, 1)))
    assert (alone.batch_size, alone.fan_out) == (1, 1)
    hub = advise(star(12), 1e6, rng.standard_normal((12, 40)), y)
    assert hub.table["fan_out"].values[-1] == 11
    nothing = advise(circulant(12, 4), 1e6, rng.standard_normal((12, 3)), np.zeros((12, 2)))
    np.testing.assert_allclose(nothing.table["floor"], 0.0, atol=1e-15)
    assert np.isfinite(nothing.table["relative_cost"]).all()
    beyond = advise(star(12), 1e6, rng.standard_normal((12, 3)), y, fan_outs=[50, 3, 3])
    assert beyond.table["fan_out"].values.tolist() == [3, 50]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("graph", np.eye(3)),
        ("memory_budget", 0),
        ("memory_budget", -5.0),
        ("memory_budget", np.nan),
        ("memory_budget", [1, 2]),
        ("memory_budget", "1GB"),
        ("memory_budget", 10**30),
        ("features", np.ones((6, 0))),
        ("features", np.ones((5, 2))),
        ("features", np.full((6, 2), np.inf)),
        ("features", np.full((6, 2), 1e200)),
        ("features", "words"),
        ("targets", np.ones(6)),
        ("targets", np.ones((5, 2))),
        ("targets", np.full((6, 2), np.nan)),
        ("targets", np.full((6, 2), np.inf)),
        ("targets", np.full((6, 2), "a")),
        ("train_nodes", []),
        ("train_nodes", [0, 0]),
        ("train_nodes", [6]),
        ("train_nodes", [0.5]),
        ("train_nodes", [[1, 2]]),
        ("train_nodes", [[1], [2, 3]]),
        ("batch_sizes", []),
        ("batch_sizes", [0]),
        ("batch_sizes", [7]),
        ("batch_sizes", 3),
        ("batch_sizes", [2.5]),
        ("fan_outs", []),
        ("fan_outs", [0]),
        ("fan_outs", ["all"]),
        ("fan_outs", [10**30]),
    ],
)
def test_bad_arguments_are_named(
    name: str, value: object, ragged: DirectedGraph, numbers: tuple, as_users_call: None
) -> None:
    good = {"graph": ragged, "memory_budget": 1e6, "features": numbers[0], "targets": numbers[1]}
    with pytest.raises(ValueError, match=f"^{name}"):
        advise(**{**good, name: value})
