"""Claims about the metrics of generated graphs; their numbers are the variables of `metrics.run`."""

from typing import Any

import numpy as np
import xarray as xr

from boundlab.analysis.datasets import case_labels, column
from boundlab.analysis.evidence import means_against, paired
from boundlab.claims import Check, Claim, Evidence, Kind, Source

THEORY = "boundlab.theory.graph_diffusion."
TESTS = "tests/theory/graph_diffusion/test_graph_benchmarks.py::"
REPEATS = TESTS + "test_counts_are_those_of_all_sequences"
MEANS = TESTS + "test_mean_discrepancy_is_that_of_all_samples"
DUPLICATES = Source("derived", "docs/graph_diffusion.md#benchmark-duplicates")
METRICS = Source("derived", "docs/graph_diffusion.md#metrics")
# Discrepancies of twenty graphs are skewed and as wide as their mean.
SKEWED = 0.1
# What V of the spectral kernel may exceed 1/m + 1/n by, at most: a mean kernel within a law of 0.005,
# at twenty graphs.
SATURATION = 0.05
# Where U of 3,000 pairs of samples is known to a few per cent.
PRECISE: dict[str, Any] = {"kernel": ["clustering", "orbits"], "size": [10, 20]}


def _selected(dataset: xr.Dataset, **chosen: Any) -> xr.Dataset:
    """Selection by the coordinates of the part, named without its prefix."""
    return dataset.sel({f"metrics_{name}": value for name, value in chosen.items()})


def _means(measured: str, expected: str, factor: float = 1.0, **chosen: Any) -> Check:
    """Mean of a simulated variable against a theory variable, both on a selection of cases."""
    check = means_against(measured, expected, "metrics_seed", factor=factor, resolution=SKEWED)
    return lambda dataset: check(_selected(dataset[[measured, expected]], **chosen))


def _saturated(reference: str) -> Check:
    """V of the spectral kernel between fresh graphs and each law but that of the shared seeds.

    `reference`: the kernel whose mean off the diagonal is expected, or `none`.
    """

    def check(dataset: xr.Dataset) -> Evidence:
        laws = [law for law in dataset["metrics_law"].values if law != "shared seeds"]
        part = _selected(dataset, reference="fresh seeds", kernel="spectrum", law=laws)
        expected = part["metrics_saturated"]
        if reference != "none":
            alike = _selected(dataset, kernel=reference, law="fresh seeds")["metrics_within"]
            expected = expected * (1 - alike)
        samples = part["metrics_v"]
        return Evidence(
            samples=column(part, "metrics_v", "metrics_seed"),
            reference=expected.broadcast_like(samples.isel(metrics_seed=0, drop=True))
            .transpose("metrics_law", "metrics_size")
            .values.ravel(),
            tolerance=SATURATION,
            labels=case_labels(part, "metrics_v", "metrics_seed"),
        )

    return check


def _copies_win(reference: str) -> Check:
    """V of graphs with shared seeds below that of fresh ones, against the same test graphs."""

    def check(dataset: xr.Dataset) -> Evidence:
        part = _selected(dataset, reference=reference, size=20)
        pair = xr.Dataset(
            {
                law: part["metrics_v"].sel(metrics_law=f"{law} seeds", drop=True)
                for law in ("shared", "fresh")
            }
        )
        return paired("shared", "fresh", "metrics_seed")(pair)

    return check


def _all_differ(dataset: xr.Dataset) -> Evidence:
    samples = column(dataset, "metrics_distinct", "metrics_draw_seed")
    return Evidence(samples=samples, reference=np.array([100.0]), labels=("100 graphs",))


CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="metrics-distinct",
        source=DUPLICATES,
        statement=r"one seed a size: $56.0$ of $100$ graphs of community_small differ",
        kind=Kind.EQUAL,
        check=means_against("metrics_distinct", "metrics_distinct_theory", "metrics_draw_seed"),
        control=_all_differ,
        control_statement="every graph has a seed of its own, so that all 100 differ",
        formula=THEORY + "expected_distinct",
        test=REPEATS,
    ),
    Claim(
        id="metrics-duplicates",
        source=DUPLICATES,
        statement=r"$10.0$ of its $20$ test graphs are training graphs",
        kind=Kind.EQUAL,
        check=means_against("metrics_duplicates", "metrics_duplicates_theory", "metrics_draw_seed"),
        control=means_against(
            "metrics_duplicates", "metrics_duplicates_uniform", "metrics_draw_seed"
        ),
        control_statement="the edge forced where no pair across is joined falls on any pair",
        formula=THEORY + "expected_duplicates",
        test=REPEATS,
    ),
    Claim(
        id="metrics-copies-win",
        source=DUPLICATES,
        statement=r"training graphs pass that test better than fresh graphs of the law",
        kind=Kind.ORDER,
        check=_copies_win("shared seeds"),
        control=_copies_win("fresh seeds"),
        control_statement="they do so, too, where the test graphs have seeds of their own",
        formula=THEORY + "expected_mmd_squared",
        test=MEANS,
    ),
    Claim(
        id="metrics-mean",
        source=METRICS,
        statement=r"$\mathbb{E}V=r+\frac{1-r}{m}+g+\frac{1-g}{n}-2b$, all models and kernels",
        kind=Kind.EQUAL,
        check=_means("metrics_v", "metrics_v_theory", reference="shared seeds", size=[20]),
        control=_means("metrics_v", "metrics_u_theory", reference="shared seeds", size=[20]),
        control_statement="V is unbiased: r + g − 2b",
        formula=THEORY + "expected_mmd_squared",
        test=MEANS,
    ),
    Claim(
        id="metrics-floor",
        source=METRICS,
        statement=r"of one law: $\mathbb{E}V=(1-r)(\frac{1}{m}+\frac{1}{n})>0$",
        kind=Kind.EQUAL,
        check=_means("metrics_v", "metrics_v_theory", reference="fresh seeds", law="fresh seeds"),
        control=_means(
            "metrics_v",
            "metrics_v_theory",
            0.5,
            reference="fresh seeds",
            law="fresh seeds",
        ),
        control_statement="one sample's diagonal alone counts: (1 − r)/m",
        formula=THEORY + "expected_mmd_squared",
        test=MEANS,
    ),
    Claim(
        id="metrics-unbiased",
        source=METRICS,
        statement=r"without diagonals $\mathbb{E}U=r+g-2b$ whatever the sample sizes",
        kind=Kind.EQUAL,
        check=_means(
            "metrics_u",
            "metrics_u_theory",
            reference="fresh seeds",
            law="density matched",
            **PRECISE,
        ),
        control=_means(
            "metrics_u",
            "metrics_v_theory",
            reference="fresh seeds",
            law="density matched",
            **PRECISE,
        ),
        control_statement="U has the mean of V",
        formula=THEORY + "expected_mmd_squared",
        test=MEANS,
    ),
    Claim(
        id="metrics-spectrum-saturated",
        source=METRICS,
        statement=r"no repeats: spectral $V$ has mean $\frac{1}{m}+\frac{1}{n}$ under any law",
        kind=Kind.EQUAL,
        check=_saturated("none"),
        control=_saturated("degree"),
        control_statement="its graphs are as alike as those of the degree kernel",
        formula=THEORY + "expected_mmd_squared",
        test=MEANS,
    ),
)
