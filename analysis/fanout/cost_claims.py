"""Claims about touched nodes and the cost of a target; their numbers are the variables of `cost.run`."""

from collections.abc import Callable

import numpy as np
import xarray as xr

from boundlab.analysis.datasets import case_labels, column
from boundlab.analysis.evidence import means_against, values_against
from boundlab.claims import Claim, Evidence, Kind, Source

PAGE = "docs/fanout.md#cost"
THEORY = "boundlab.theory.fanout."
TESTS = "tests/theory/fanout/test_touched.py::"
MODEL_ERROR = 0.15
ROUNDING = 1e-9


def _partial_batches(dataset: xr.Dataset) -> xr.Dataset:
    """One hop from batches that are not all nodes."""
    part = dataset.isel(cost_touched_batch_size=slice(None, -1))
    return part.assign(cost_touched_one_hop=part["cost_touched"].isel(cost_hop=1, drop=True))


def _one_hop(reference: str) -> Callable[[xr.Dataset], Evidence]:
    check = means_against("cost_touched_one_hop", reference, "cost_batch")
    return lambda dataset: check(_partial_batches(dataset))


def _tree(hops_that_count: slice) -> Callable[[xr.Dataset], Evidence]:
    """The most nodes ever touched against b(1 + β)^hops, or against its entries of other hops."""

    def check(dataset: xr.Dataset) -> Evidence:
        most = dataset["cost_touched"].max("cost_batch")
        tree = dataset["cost_touched_tree"].isel(cost_hop=hops_that_count)
        part = most.isel(cost_hop=slice(1, None)).to_dataset(name="cost_most")
        bound = tree.assign_coords(cost_hop=part["cost_hop"].values)
        like = bound.broadcast_like(part["cost_most"]).transpose(*part["cost_most"].dims)
        return Evidence(
            exact=column(part, "cost_most"),
            reference=like.values.ravel(),
            labels=case_labels(part, "cost_most"),
        )

    return check


def _whole(*, with_seeds: bool) -> Callable[[xr.Dataset], Evidence]:
    """One hop from all nodes: every one of n; or n·β sources, as if seeds did not count."""

    def check(dataset: xr.Dataset) -> Evidence:
        part = dataset.isel(cost_touched_batch_size=-1)
        n = float(part["cost_touched_batch_size"])
        sources = np.maximum(part["cost_fan_out"].values * n, n + 1.0)
        simulated = part["cost_touched"].isel(cost_hop=1)
        found = xr.Dataset(
            {
                "least": simulated.min("cost_batch"),
                "most": simulated.max("cost_batch"),
                "exact": part["cost_touched_exact"],
                "stated": xr.full_like(part["cost_touched_exact"], n)
                if with_seeds
                else xr.zeros_like(part["cost_touched_exact"]) + sources[None, :],
            }
        )
        pairs = (("least", "stated"), ("most", "stated"), ("exact", "stated"))
        return values_against(pairs, tolerance=ROUNDING)(found)

    return check


def _monotone(*, reverse: bool = False) -> Callable[[xr.Dataset], Evidence]:
    """Expected nodes at one batch size and fan-out against those at the next larger one."""

    def check(dataset: xr.Dataset) -> Evidence:
        small, large, labels = [], [], []
        for dim in ("cost_touched_batch_size", "cost_fan_out"):
            ends = [slice(None, -1), slice(1, None)]
            lower, upper = (dataset.isel({dim: end}) for end in ends)
            small.append(column(lower, "cost_touched_exact"))
            large.append(column(upper, "cost_touched_exact"))
            labels += [f"{dim} up, {case}" for case in case_labels(upper, "cost_touched_exact")]
        values = [np.concatenate(small), np.concatenate(large)]
        exact, reference = values[::-1] if reverse else values
        return Evidence(exact=exact, reference=reference, tolerance=ROUNDING, labels=tuple(labels))

    return check


def _layers(reference: str) -> Callable[[xr.Dataset], Evidence]:
    check = means_against("cost_touched", reference, "cost_batch", tolerance=MODEL_ERROR)

    def evidence(dataset: xr.Dataset) -> Evidence:
        part = _partial_batches(dataset).sel(cost_graph="regular").isel(cost_hop=slice(2, None))
        return check(part)

    return evidence


def _cheaper(
    name: str, target: str, small: dict[str, int], large: dict[str, int], fan_outs: slice
) -> Callable[[xr.Dataset], Evidence]:
    """Cost of a target in the cells `small` below that in the cells `large`, paired by seed."""

    def check(dataset: xr.Dataset) -> Evidence:
        cost = dataset.isel(cost_fan_out=fan_outs)[name].sel(cost_target=target, drop=True)
        if "cost_device" in cost.dims:
            cost = cost.sel(cost_device=cost["cost_device"].str.startswith("CPU"))
        first, second = (cost.isel(part, drop=True) for part in (small, large))
        cells = xr.Dataset({"first": first, "second": second.transpose(*first.dims)})
        return Evidence(
            samples=column(cells, "first", "cost_seed"),
            compared_with=column(cells, "second", "cost_seed"),
            labels=case_labels(cells, "first", "cost_seed"),
        )

    return check


SMALLEST, LARGEST = {"cost_batch_size": 0}, {"cost_batch_size": -1}
FEW, ALL = {"cost_fan_out": 1}, {"cost_fan_out": -1}
EVERY = slice(None)
# With a fan-out of 1 a small batch does not reach the target: its cost would be censored.
REACHED = slice(1, None)


CLAIMS = (
    Claim(
        id="touched-one-hop",
        source=Source("derived", PAGE),
        statement=r"$E|B\cup\bigcup S_i| = |B|+\sum_{j\notin B}(1-\prod_i(1-m_i/d_i))$",
        kind=Kind.EQUAL,
        check=_one_hop("cost_touched_exact"),
        control=_one_hop("cost_touched_mean_degree"),
        control_statement="only the mean degree matters",
        formula=THEORY + "touched.expected_touched_nodes",
        test=TESTS + "test_random_batches_by_enumeration",
    ),
    Claim(
        id="touched-tree",
        source=Source("derived", PAGE),
        statement=r"nodes touched in $L$ hops $\leq b(1+\beta)^L$, always",
        kind=Kind.UPPER,
        check=_tree(slice(1, None)),
        control=_tree(slice(None, -1)),
        control_statement="a hop less suffices: b(1+β)^(L−1)",
        formula=THEORY + "touched.touched_layers",
        test=TESTS + "test_several_hops_are_over_estimated",
    ),
    Claim(
        id="touched-whole",
        source=Source("derived", PAGE),
        statement=r"$b = n$ touches all $n$ nodes, whatever the fan-out",
        kind=Kind.IDENTITY,
        check=_whole(with_seeds=True),
        control=_whole(with_seeds=False),
        control_statement="it touches nβ sampled sources",
        formula=THEORY + "touched.expected_touched_nodes",
        test=TESTS + "test_regular_graphs",
    ),
    Claim(
        id="touched-monotone",
        source=Source("derived", PAGE),
        statement=r"$E|B\cup\bigcup S_i|$ grows with $b$ and with $\beta$",
        kind=Kind.UPPER,
        check=_monotone(),
        control=_monotone(reverse=True),
        control_statement="it falls",
        formula=THEORY + "touched.expected_touched_nodes",
        test=TESTS + "test_random_batches_by_enumeration",
    ),
    Claim(
        id="touched-mean-field",
        source=Source("derived", PAGE),
        statement=r"hops 2, 3 on a regular graph: $u' = 1-(1-u)(1-u\beta/d)^d$ to 15 %",
        kind=Kind.EQUAL,
        check=_layers("cost_touched_layers"),
        control=_layers("cost_touched_tree"),
        control_statement=r"every sampled node is new: $b(1+\beta)^L$",
        formula=THEORY + "touched.touched_layers",
        test=TESTS + "test_several_hops_are_over_estimated",
    ),
    Claim(
        id="cost-iterations",
        source=Source("derived", PAGE),
        statement=r"iterations to an accuracy: fewer at the largest $b$ than the least",
        kind=Kind.ORDER,
        check=_cheaper("cost_iterations", "accuracy", LARGEST, SMALLEST, EVERY),
        control=_cheaper("cost_iterations", "accuracy", SMALLEST, LARGEST, EVERY),
        control_statement="fewer at the smallest b",
        formula=THEORY + "noise.gradient_noise",
        test="tests/theory/fanout/test_noise.py::test_every_batch_and_sample",
    ),
    Claim(
        id="cost-samples",
        source=Source("derived", PAGE),
        statement=r"samples $Tb$ to it: fewer at the smallest $b$ than the largest",
        kind=Kind.ORDER,
        check=_cheaper("cost_to_samples", "accuracy", SMALLEST, LARGEST, REACHED),
        control=_cheaper("cost_to_samples", "accuracy", LARGEST, SMALLEST, REACHED),
        control_statement="fewer at the largest b, as the iterations say",
        formula=THEORY + "noise.gradient_noise",
        test="tests/theory/fanout/test_noise.py::test_every_batch_and_sample",
    ),
    Claim(
        id="cost-seconds",
        source=Source("derived", PAGE),
        statement=r"seconds on a CPU to it: fewer at the smallest $b$ than the largest",
        kind=Kind.ORDER,
        check=_cheaper("cost_to_seconds", "accuracy", SMALLEST, LARGEST, REACHED),
        control=_cheaper("cost_to_seconds", "accuracy", LARGEST, SMALLEST, REACHED),
        control_statement="fewer at the largest b, as the iterations say",
        formula=THEORY + "cost.training_flops",
        test="tests/theory/fanout/test_published_rates.py::test_operations_by_hand",
    ),
    Claim(
        id="cost-loss-iterations",
        source=Source("derived", PAGE),
        statement=r"iterations to a loss: fewer with all neighbours than with few",
        kind=Kind.ORDER,
        check=_cheaper("cost_iterations", "loss", ALL, FEW, EVERY),
        control=_cheaper("cost_iterations", "loss", FEW, ALL, EVERY),
        control_statement="fewer with few neighbours",
        formula=THEORY + "ridge.implicit_ridge",
        test="tests/theory/fanout/test_ridge.py::test_floor_and_penalty_do_not_grow_with_fan_out",
    ),
    Claim(
        id="cost-loss-edges",
        source=Source("derived", PAGE),
        statement=r"sampled edges to the same loss: fewer with few neighbours",
        kind=Kind.ORDER,
        check=_cheaper("cost_to_edges", "loss", FEW, ALL, EVERY),
        control=_cheaper("cost_to_edges", "loss", ALL, FEW, EVERY),
        control_statement="fewer with all, as the iterations say",
        formula=THEORY + "cost.training_flops",
        test="tests/theory/fanout/test_published_rates.py::test_operations_by_hand",
    ),
)
