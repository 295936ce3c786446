"""Claims about graph structure; their numbers are the variables of `structure.run`."""

from collections.abc import Callable

import numpy as np
import xarray as xr

from boundlab.analysis.datasets import case_labels, column
from boundlab.claims import Claim, Evidence, Kind, Source

THEORY = "boundlab.theory.excess_risk."
GRAPH_TESTS = "tests/theory/excess_risk/test_graph_spectra.py::"


def _traces(reference: str) -> Callable[[xr.Dataset], Evidence]:
    def check(dataset: xr.Dataset) -> Evidence:
        return Evidence(
            exact=column(dataset, "structure_trace"),
            reference=column(dataset, reference),
            labels=case_labels(dataset, "structure_trace"),
        )

    return check


def _top(dataset: xr.Dataset) -> Evidence:
    top, low, high = (
        column(dataset, name)
        for name in ("structure_top", "structure_top_lower", "structure_top_upper")
    )
    labels = case_labels(dataset, "structure_top")
    return Evidence(
        exact=np.concatenate([top, low]),
        reference=np.concatenate([high, top]),
        labels=tuple(f"{side} side, {label}" for side in ("upper", "lower") for label in labels),
    )


def _top_mean(dataset: xr.Dataset) -> Evidence:
    return Evidence(
        exact=column(dataset, "structure_top"), reference=column(dataset, "structure_top_mean")
    )


def _rank_ratio(operator: str, reference: float, tolerance: float = 0.0) -> Callable:
    def check(dataset: xr.Dataset) -> Evidence:
        rank = dataset["structure_contrast_rank"].sel(structure_contrasted=operator)
        ratio = rank.sel(structure_pair="regular") / rank.sel(structure_pair="power law")
        return Evidence(
            samples=ratio.values[:, None],
            reference=reference,
            tolerance=tolerance,
            labels=(operator,),
        )

    return check


def _smaller_handicap(operator: str) -> Callable[[xr.Dataset], Evidence]:
    def check(dataset: xr.Dataset) -> Evidence:
        ratio = dataset["structure_handicap"].sel(structure_contrasted=operator)
        power_law, regular = (
            float(ratio.sel(structure_pair=name)) for name in ("power law", "regular")
        )
        return Evidence(exact=np.array([power_law]), reference=regular, labels=(operator,))

    return check


def _inflated(reference: str | None) -> Callable[[xr.Dataset], Evidence]:
    def check(dataset: xr.Dataset) -> Evidence:
        return Evidence(
            exact=column(dataset, "structure_inflation"),
            reference=1.0 if reference is None else column(dataset, reference),
            labels=case_labels(dataset, "structure_inflation"),
        )

    return check


CLAIMS = (
    Claim(
        id="four-cycles",
        source=Source("derived", "docs/excess_risk.md#regular-and-power-law-graphs"),
        statement=r"$\mathrm{tr}\,A^4 = 2|E| + 4\sum_i \binom{d_i}{2} + 8\,c_4$",
        kind=Kind.IDENTITY,
        check=_traces("structure_trace_formula"),
        control=_traces("structure_trace_acyclic"),
        control_statement="the 4-cycles are left out, as on a tree",
        formula=THEORY + "graph.adjacency_traces",
        test=GRAPH_TESTS + "test_adjacency_traces_of_the_matrix",
    ),
    Claim(
        id="laplacian-top",
        source=Source("derived", "docs/excess_risk.md#regular-and-power-law-graphs"),
        statement=r"$d_{\max}+1 \leq \lambda_{\max}(D-A) \leq \max_{uv\in E}(d_u+d_v)$",
        kind=Kind.UPPER,
        check=_top,
        control=_top_mean,
        control_statement="the mean degree decides: λ_max ≤ twice the mean degree",
        formula=THEORY + "graph.laplacian_spectrum",
        test="tests/models/test_graph_operators.py::"
        "test_largest_laplacian_eigenvalue_lies_between_the_degree_bounds",
    ),
    Claim(
        id="contrast-laplacian",
        source=Source("derived", "docs/excess_risk.md#regular-and-power-law-graphs"),
        statement=r"$G=D-A+I$: effective rank of regular > 4 times that of power law",
        kind=Kind.LOWER,
        check=_rank_ratio("laplacian", 4.0),
        control=_rank_ratio("normalized_adjacency", 4.0),
        control_statement="the same contrast for the normalised operator (I + S)/2",
        formula=THEORY + "graph.effective_rank",
        test=GRAPH_TESTS + "test_uneven_degrees_matter_only_without_normalisation",
    ),
    Claim(
        id="contrast-vanishes",
        source=Source("chung2003spectra", "semicircle law, reconstructed; 15 % derived"),
        statement=r"$G=(I+S)/2$: effective rank of regular = that of power law, to 15 %",
        kind=Kind.EQUAL,
        check=_rank_ratio("normalized_adjacency", 1.0, 0.15),
        control=_rank_ratio("laplacian", 1.0, 0.15),
        control_statement="the contrast vanishes for D − A + I too",
        formula=THEORY + "graph.effective_rank",
        test=GRAPH_TESTS + "test_uneven_degrees_matter_only_without_normalisation",
    ),
    Claim(
        id="contrast-handicap",
        source=Source("derived", "docs/excess_risk.md#regular-and-power-law-graphs"),
        statement=r"$G=D-A+I$, head teacher: $R_{SGD}/R_{ridge}$ of power law < of regular",
        kind=Kind.UPPER,
        check=_smaller_handicap("laplacian"),
        control=_smaller_handicap("normalized_adjacency"),
        control_statement="the same for the normalised operator (I + S)/2",
        formula=THEORY + "sgd.best_step_size",
        test="tests/analysis/excess_risk/test_structure.py::test_handicap_by_search",
    ),
    Claim(
        id="inflation-zou",
        source=Source("zou2021benefits", "Gaussian corollary, reconstructed; constant 1"),
        statement=(
            r"$N_{\mathrm{sgd}}/N_{\mathrm{ridge}}"
            r" \leq (1+\mathrm{snr})\,\mathrm{cond}\,\max(1,\log a)$"
        ),
        kind=Kind.UPPER,
        check=_inflated("structure_inflation_bound"),
        control=_inflated(None),
        control_statement="SGD needs no more samples than tuned ridge",
        formula=THEORY + "sgd.zou_inflation",
        test="tests/theory/excess_risk/test_sgd_bounds.py::test_published_inflation_by_hand",
    ),
)
