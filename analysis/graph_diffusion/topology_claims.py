"""Claims about features on a fixed graph; their numbers are the variables of `topology.run`."""

from collections.abc import Mapping

import numpy as np
import xarray as xr

from boundlab.analysis.datasets import case_labels, column
from boundlab.analysis.evidence import values_against
from boundlab.claims import Check, Claim, Evidence, Kind, Source

THEORY = "boundlab.theory.graph_diffusion."
TESTS = "tests/theory/graph_diffusion/test_spectrum.py::"
PART = "tests/analysis/graph_diffusion/test_topology.py::"
TOPOLOGY = Source("derived", "docs/graph_diffusion.md#topology")
NORMALISATION = Source("derived", "docs/graph_diffusion.md#normalisation")
FEATURES = Source("derived", "docs/graph_diffusion.md#graph-filtered-features")
# Of exact recursions over the modes of one graph.
ROUNDING = 1e-9
# How much further apart power-law and regular graphs are than their common mean degree explains,
# which alone would give 1.
APART = 2.5


def _ratio(
    name: str,
    above: Mapping[str, object],
    below: Mapping[str, object],
    reference: float,
    tolerance: float = 0.0,
) -> Check:
    """Ratio of two selections of a variable, graph by graph; on the largest graphs."""

    def check(dataset: xr.Dataset) -> Evidence:
        part = dataset[[name]]
        if "topology_nodes" in part.dims:
            part = part.isel(topology_nodes=-1, drop=True)
        over, under = (part.sel(chosen, drop=True) for chosen in (above, below))
        ratio = over[name] / under[name]
        held = xr.Dataset({"ratio": ratio})
        labels = case_labels(held, "ratio", "topology_draw")
        return Evidence(
            samples=column(held, "ratio", "topology_draw"),
            reference=reference,
            labels=labels,
            tolerance=tolerance,
        )

    return check


def _families(
    kind: str, larger: str, smaller: str, reference: float, tolerance: float = 0.0
) -> Check:
    chosen = [{"topology_aggregation": kind, "topology_family": f} for f in (larger, smaller)]
    return _ratio("topology_w2", chosen[0], chosen[1], reference, tolerance)


def _filters(
    name: str, noise_std: float, over: str, under: str, reference: float, tolerance: float = 0.0
) -> Check:
    """Ratio between two filters at horizon 2, over the random families."""
    common = {
        "topology_noise_std": noise_std,
        "topology_horizon": 2.0,
        "topology_family": ["regular"],
    }
    return _ratio(
        name,
        common | {"topology_filter": over},
        common | {"topology_filter": under},
        reference,
        tolerance,
    )


def _best_horizon(noise_std: float) -> Check:
    """KL of the sum over that of the symmetric filter, each at its best horizon."""

    def check(dataset: xr.Dataset) -> Evidence:
        best = dataset["topology_horizon_kl"].sel(topology_noise_std=noise_std, drop=True)
        best = best.min("topology_horizon")
        ratio = best.sel(topology_filter="sum", drop=True) / best.sel(
            topology_filter="symmetric", drop=True
        )
        held = xr.Dataset({"ratio": ratio})
        return Evidence(
            samples=column(held, "ratio", "topology_draw"),
            reference=2.0,
            labels=case_labels(held, "ratio", "topology_draw"),
        )

    return check


def _bound(name: str) -> Check:
    """Exact KL over the variable `name`, in every family, aggregation and size; the largest draw's."""

    def check(dataset: xr.Dataset) -> Evidence:
        exact = dataset["topology_kl"]
        largest = (exact / dataset[name]).transpose(*exact.dims).max("topology_draw")
        held = xr.Dataset({"ratio": largest})
        return Evidence(
            exact=column(held, "ratio"), reference=1.0, labels=case_labels(held, "ratio")
        )

    return check


def _modes(reference: str) -> Check:
    """Largest, smallest and mean variance of the output, against a variance of the theory."""

    def check(dataset: xr.Dataset) -> Evidence:
        whole = dataset.isel(topology_size=-1, drop=True)[["topology_square", reference]]
        picked = []
        for label, chosen in (("first", 0), ("last", -1)):
            picked.append(whole.isel(topology_mode=chosen, drop=True).assign_coords(which=label))
        picked.append(whole.mean("topology_mode").assign_coords(which="mean"))
        held = xr.concat(picked, "which")
        return Evidence(
            samples=column(held, "topology_square", "topology_seed"),
            reference=held[reference].transpose("which", "topology_case").values.ravel(),
            labels=case_labels(held, "topology_square", "topology_seed"),
        )

    return check


def _growth(exponent: float) -> Check:
    """Second moment that the output lacks along Cora's first eigenvector, over nested feature sizes."""

    def check(dataset: xr.Dataset) -> Evidence:
        part = dataset.sel(topology_case=["Cora, sum"]).isel(topology_mode=0)
        lacking = part["topology_data_variance"] - part["topology_square"]
        samples = lacking * dataset["topology_size"]
        return Evidence(
            samples=samples.transpose("topology_seed", "topology_case", "topology_size").values,
            points=dataset["topology_size"].values.astype(np.float64),
            reference=exponent,
            resolution=0.15,
            labels=("Cora, sum",),
        )

    return check


def _norm(kind: str, pair: tuple[str, str], **other: object) -> Check:
    """Norms of one aggregation's matrices against closed forms, graph by graph."""

    def check(dataset: xr.Dataset) -> Evidence:
        part = dataset.sel({"topology_aggregation": kind, **other})
        return values_against((pair,), tolerance=ROUNDING)(part)

    return check


def _constant(kind: str, value: float | None) -> Check:
    """Squared spectral norm of the star's aggregation against `value`, or n/4."""

    def check(dataset: xr.Dataset) -> Evidence:
        part = dataset.sel(topology_aggregation=kind, topology_family="star")
        part = part.isel(topology_nodes=[-1])
        nodes = part["topology_nodes"].values.astype(np.float64)
        return Evidence(
            exact=part["topology_norm"].values,
            reference=nodes / 4 if value is None else value,
            tolerance=1e-3,
            labels=tuple(f"{int(n)} nodes" for n in nodes),
        )

    return check


def _without_loops(dataset: xr.Dataset) -> Evidence:
    """The sum over neighbours without the node itself: ‖A‖_F² = 2|E|, n less."""
    part = dataset.sel(topology_aggregation="sum")
    wrong = part["topology_frobenius_theory"] - part["topology_nodes"]
    return values_against((("topology_frobenius", "wrong"),), tolerance=ROUNDING)(
        part.assign(wrong=wrong)
    )


CLAIMS = (
    Claim(
        id="topology-tail-of-degrees",
        source=TOPOLOGY,
        statement=r"Sum: $W_2$(power law) $\geq 2.5\,W_2$(regular), equal mean degree",
        kind=Kind.LOWER,
        check=_families("sum", "power law", "regular", APART),
        control=_families("symmetric", "power law", "regular", APART),
        control_statement="so it is under the symmetric normalisation",
        formula=THEORY + "reverse_moments",
        test=PART + "test_published_sizes",
    ),
    Claim(
        id="topology-star",
        source=TOPOLOGY,
        statement=r"Sum: $W_2$(star) $\geq 2.5\,W_2$(power law)",
        kind=Kind.LOWER,
        check=_families("sum", "star", "power law", APART),
        control=_families("symmetric", "star", "power law", APART),
        control_statement="so it is under the symmetric normalisation",
        formula=THEORY + "reverse_moments",
        test=PART + "test_published_sizes",
    ),
    Claim(
        id="topology-alike",
        source=NORMALISATION,
        statement=r"Symmetric: $W_2$ is the same for power-law and regular graphs",
        kind=Kind.EQUAL,
        check=_families("symmetric", "power law", "regular", 1.0, tolerance=0.05),
        control=_families("sum", "power law", "regular", 1.0, tolerance=0.05),
        control_statement="under the sum, since the mean degree is the same",
        formula=THEORY + "reverse_moments",
        test=PART + "test_published_sizes",
    ),
    Claim(
        id="topology-symmetric-norm",
        source=TOPOLOGY,
        statement=r"Symmetric normalisation: $\Vert P\Vert=1$ for every graph",
        kind=Kind.IDENTITY,
        check=_norm("symmetric", ("topology_norm", "topology_norm_theory")),
        control=_constant("row", 1.0),
        control_statement="so has the row normalisation of a star",
        formula=THEORY + "aggregation_matrix",
        test=TESTS + "test_norms_of_named_graphs",
    ),
    Claim(
        id="topology-row-norm",
        source=TOPOLOGY,
        statement=r"Row normalisation of a star: $\Vert P\Vert^2=n/4+O(n^{-2})$",
        kind=Kind.IDENTITY,
        check=_constant("row", None),
        control=_constant("sum", None),
        control_statement="of its sum aggregation",
        formula=THEORY + "star_row_norm",
        test=TESTS + "test_norms_of_named_graphs",
    ),
    Claim(
        id="topology-sum-norm",
        source=TOPOLOGY,
        statement=r"Sum: $\Vert P\Vert_F^2=2|E|+n$",
        kind=Kind.IDENTITY,
        check=_norm("sum", ("topology_frobenius", "topology_frobenius_theory")),
        control=_without_loops,
        control_statement="without the node itself: 2|E|",
        formula=THEORY + "aggregation_frobenius",
        test=TESTS + "test_norms_of_named_graphs",
    ),
    Claim(
        id="topology-variance",
        source=FEATURES,
        statement=r"Sampled features: variances obey $u'=(A-B/v)^2u+Q$",
        kind=Kind.EQUAL,
        check=_modes("topology_variance"),
        control=_modes("topology_data_variance"),
        control_statement="they are those of the noised data",
        formula=THEORY + "reverse_moments",
        test=PART + "test_recursion_by_hand",
    ),
    Claim(
        id="topology-feature-size",
        source=FEATURES,
        statement=r"Sum: the missing second moment grows as $F$, so $W_2$ as $\sqrt{F}$",
        kind=Kind.RATE,
        check=_growth(1.0),
        control=_growth(0.5),
        control_statement=r"it grows as $\sqrt{F}$",
        formula=THEORY + "reverse_moments",
        test=PART + "test_recursion_by_hand",
    ),
    Claim(
        id="topology-bound",
        source=FEATURES,
        statement=r"Features $|$ structure: KL $\leq$ start $+$ path term on every graph",
        kind=Kind.UPPER,
        check=_bound("topology_bound"),
        control=_bound("topology_start"),
        control_statement="with the exact score the start term alone is a bound",
        formula=THEORY + "discretization_ei",
        test=PART + "test_published_sizes",
    ),
    Claim(
        id="topology-normalising-hurts",
        source=NORMALISATION,
        statement=r"$s_0=.3$, $T=2$: the symmetric filter at least doubles the KL",
        kind=Kind.LOWER,
        check=_filters("topology_horizon_kl", 0.3, "symmetric", "sum", 2.0),
        control=_filters("topology_horizon_kl", 1.0, "symmetric", "sum", 2.0),
        control_statement=r"so it does at $s_0=1$",
        formula=THEORY + "reverse_moments",
        test=PART + "test_published_sizes",
    ),
    Claim(
        id="topology-normalising-helps",
        source=NORMALISATION,
        statement=r"$s_0=1$, best $T$: it at least halves the KL of every family",
        kind=Kind.LOWER,
        check=_best_horizon(1.0),
        control=_best_horizon(0.3),
        control_statement=r"so it does at $s_0=.3$",
        formula=THEORY + "reverse_moments",
        test=PART + "test_published_sizes",
    ),
    Claim(
        id="topology-root-mean-square",
        source=NORMALISATION,
        statement=r"$s_0=.3$: dividing by the RMS too cuts the KL to a fifth or less",
        kind=Kind.LOWER,
        check=_filters("topology_horizon_kl", 0.3, "symmetric", "symmetric / RMS", 5.0),
        control=_filters("topology_horizon_kl", 1.0, "symmetric", "symmetric / RMS", 5.0),
        control_statement=r"so it does at $s_0=1$",
        formula=THEORY + "feature_spectrum",
        test=TESTS + "test_spectrum_of_features",
    ),
)
