"""Claims about touched nodes and the cost of a target; their numbers are the variables of `cost.run`."""

from collections.abc import Callable

import numpy as np
import xarray as xr

from boundlab.analysis.datasets import case_labels, column
from boundlab.analysis.evidence import means_against, values_against
from boundlab.claims import Claim, Evidence, Kind, Source
from boundlab.theory.fanout import paper_elasticities

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


def _monotone(*, all_new: bool = False) -> Callable[[xr.Dataset], Evidence]:
    """Expected nodes at one batch size and fan-out against those at the next larger one.

    `all_new`: they grow at least as b(1 + β), as if every sampled node were a new one.
    """

    def check(dataset: xr.Dataset) -> Evidence:
        expected = dataset["cost_touched_exact"]
        sizes, fan_outs = dataset["cost_touched_batch_size"], dataset["cost_fan_out"]
        scale = sizes * (1 + fan_outs) if all_new else 1.0
        scaled = xr.Dataset({"nodes": (expected / scale).transpose(*expected.dims)})
        small, large, labels = [], [], []
        for dim in ("cost_touched_batch_size", "cost_fan_out"):
            ends = [slice(None, -1), slice(1, None)]
            lower, upper = (scaled.isel({dim: end}) for end in ends)
            small.append(column(lower, "nodes"))
            large.append(column(upper, "nodes"))
            labels += [f"{dim} up, {case}" for case in case_labels(upper, "nodes")]
        return Evidence(
            exact=np.concatenate(small),
            reference=np.concatenate(large),
            tolerance=ROUNDING,
            labels=tuple(labels),
        )

    return check


def _layers(reference: str) -> Callable[[xr.Dataset], Evidence]:
    check = means_against("cost_touched", reference, "cost_batch", tolerance=MODEL_ERROR)

    def evidence(dataset: xr.Dataset) -> Evidence:
        part = _partial_batches(dataset).sel(cost_graph="regular").isel(cost_hop=slice(2, None))
        return check(part)

    return evidence


def _cheaper(
    name: str,
    target: str,
    small: dict[str, int],
    large: dict[str, int],
    fan_outs: slice,
    factor: Callable[[xr.Dataset], xr.DataArray] | None = None,
) -> Callable[[xr.Dataset], Evidence]:
    """Cost of a target in the cells `small` below that in the cells `large`, paired by seed.

    `factor`: a size of every cell; the costs differ by more than the ratio of sizes at both ends.
    """

    def check(dataset: xr.Dataset) -> Evidence:
        cost = dataset[name].sel(cost_target=target, drop=True)
        if factor is not None:
            size = factor(dataset)
            cost = (cost * size / size.max()).transpose(*cost.dims)
        cost = cost.isel(cost_fan_out=fan_outs)
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


def _batch_size(dataset: xr.Dataset) -> xr.DataArray:
    """T falls as 1/b: a batch is worth as many steps as it has nodes."""
    return dataset["cost_batch_size"].astype(float)


def _epochs(dataset: xr.Dataset) -> xr.DataArray:
    """T·b grows as b: the same iterations at every batch size."""
    return 1 / _batch_size(dataset)


def _operations(dataset: xr.Dataset) -> xr.DataArray:
    """Seconds grow as the operations do: those of a step times the mean of T."""
    operations = dataset["cost_to_operations"].sel(cost_target="accuracy", drop=True)
    return 1 / operations.mean("cost_seed")


def _published_fan_out(dataset: xr.Dataset) -> xr.DataArray:
    """T falls with β at the exponent of the published rate."""
    return dataset["cost_fan_out"] ** -float(paper_elasticities("cross_entropy")[1])


def _sampled(dataset: xr.Dataset) -> xr.DataArray:
    """Edges to a loss grow as those of a step: the same iterations at every fan-out."""
    return 1 / dataset["cost_edges"]


SMALLEST, SECOND, LARGEST = ({"cost_batch_size": place} for place in (0, 1, -1))
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
        control=_monotone(all_new=True),
        control_statement="it grows as b(1 + β): every sampled node is new",
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
        control=_cheaper("cost_iterations", "accuracy", LARGEST, SMALLEST, REACHED, _batch_size),
        control_statement="in proportion to 1/b, a linear speed-up",
        formula=THEORY + "noise.gradient_noise",
        test="tests/theory/fanout/test_noise.py::test_every_batch_and_sample",
    ),
    Claim(
        id="cost-samples",
        source=Source("derived", PAGE),
        statement=r"samples $Tb$ to it: fewer at the smallest $b$ than the largest",
        kind=Kind.ORDER,
        check=_cheaper("cost_to_samples", "accuracy", SMALLEST, LARGEST, REACHED),
        control=_cheaper("cost_to_samples", "accuracy", SMALLEST, LARGEST, REACHED, _epochs),
        control_statement="in proportion to b: T is the same at every b",
        formula=THEORY + "noise.gradient_noise",
        test="tests/theory/fanout/test_noise.py::test_every_batch_and_sample",
    ),
    Claim(
        id="cost-seconds",
        source=Source("derived", PAGE),
        statement=r"seconds on a CPU to it: fewer at the second $b$ than at the largest",
        kind=Kind.ORDER,
        # A step of the smallest batch takes as long as one of the second.
        check=_cheaper("cost_to_seconds", "accuracy", SECOND, LARGEST, REACHED),
        control=_cheaper("cost_to_seconds", "accuracy", SECOND, LARGEST, REACHED, _operations),
        control_statement="in proportion to the operations",
        formula=THEORY + "cost.training_flops",
        test="tests/theory/fanout/test_published_rates.py::test_operations_by_hand",
    ),
    Claim(
        id="cost-loss-iterations",
        source=Source("derived", PAGE),
        statement=r"iterations to a loss: fewer with all neighbours than with few",
        kind=Kind.ORDER,
        check=_cheaper("cost_iterations", "loss", ALL, FEW, EVERY),
        control=_cheaper("cost_iterations", "loss", ALL, FEW, EVERY, _published_fan_out),
        control_statement="as β^(−5/2), as published",
        formula=THEORY + "ridge.implicit_ridge",
        test="tests/theory/fanout/test_ridge.py::test_floor_and_penalty_do_not_grow_with_fan_out",
    ),
    Claim(
        id="cost-loss-edges",
        source=Source("derived", PAGE),
        statement=r"sampled edges to the same loss: fewer with few neighbours",
        kind=Kind.ORDER,
        check=_cheaper("cost_to_edges", "loss", FEW, ALL, EVERY),
        control=_cheaper("cost_to_edges", "loss", FEW, ALL, EVERY, _sampled),
        control_statement="in proportion to the edges of a step: T is the same at every β",
        formula=THEORY + "cost.training_flops",
        test="tests/theory/fanout/test_published_rates.py::test_operations_by_hand",
    ),
)
