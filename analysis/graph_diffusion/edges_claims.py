"""Claims about structure with exact scores; their numbers are the variables of `edges.run`."""

import numpy as np
import xarray as xr

from boundlab.analysis.datasets import case_labels, column
from boundlab.analysis.evidence import means_against, values_against
from boundlab.claims import Check, Claim, Evidence, Kind, Source

THEORY = "boundlab.theory.graph_diffusion."
EDGES = "tests/theory/graph_diffusion/test_edges.py::"
DENSITY = "tests/theory/graph_diffusion/test_edge_density.py::"
DOCS = "docs/graph_diffusion.md#"
SEED = "edges_seed"
ROUNDING = 1e-8
# Relative error of a share that the Euler–Maruyama steps of the published recipe make by themselves.
STEP_ERROR = 0.02
# Shares of sparse graphs are known to 15 % at most: two thousandths at p = .0125.
SPARSE = 0.15
# How many times its edges a sparse graph must gain for the claims that it does.
GAIN, DOUBLING = 1.2, 1.75


def _schedule(beta: int, reference: str | None) -> Check:
    """Share of edges by one schedule against a variable, or against the truth."""

    def check(dataset: xr.Dataset) -> Evidence:
        part = dataset.isel(edges_beta=beta, drop=True)
        truth = dataset["edges_p"].values.astype(np.float64)
        return Evidence(
            samples=column(part, "edges_short", SEED),
            reference=truth if reference is None else part[reference].values,
            tolerance=STEP_ERROR,
            resolution=SPARSE,
            labels=case_labels(part, "edges_short", SEED),
        )

    return check


def _from_noised(dataset: xr.Dataset) -> Evidence:
    return Evidence(
        samples=column(dataset, "edges_short_noised", SEED),
        reference=dataset["edges_p"].values.astype(np.float64),
        tolerance=STEP_ERROR,
        resolution=SPARSE,
        labels=case_labels(dataset, "edges_short_noised", SEED),
    )


def _doubling(beta: int) -> Check:
    """p̂/p of the sparsest edge by one schedule."""

    def check(dataset: xr.Dataset) -> Evidence:
        part = dataset.isel(edges_beta=[beta], edges_p=[-1])
        ratio = (part["edges_short"] / part["edges_p"]).transpose(SEED, ...)
        held = xr.Dataset({"ratio": ratio})
        return Evidence(
            samples=column(held, "ratio", SEED),
            reference=DOUBLING,
            labels=case_labels(held, "ratio", SEED),
        )

    return check


def _gain(*cases: str) -> Check:
    """p̂/p of some cases on the coarsest simulated grid."""

    def check(dataset: xr.Dataset) -> Evidence:
        part = dataset.sel(edges_case=list(cases)).isel(edges_grid=0)
        held = xr.Dataset({"ratio": part["edges_share"] / part["edges_truth"]})
        return Evidence(
            samples=column(held, "ratio", SEED),
            reference=GAIN,
            labels=case_labels(held, "ratio", SEED),
        )

    return check


def _ratio(value: str, bound: str, power: float = 1.0, factor: float = 1.0) -> Check:
    """value/(factor·bound)^power against 1, exact values."""

    def check(dataset: xr.Dataset) -> Evidence:
        limit = (factor * dataset[bound]) ** power
        held = xr.Dataset({"ratio": dataset[value] / limit})
        return Evidence(
            exact=column(held, "ratio"), reference=1.0, labels=case_labels(held, "ratio")
        )

    return check


CLAIMS = (
    Claim(
        id="edges-short-schedule",
        source=Source("derived", DOCS + "short-schedule"),
        statement=r"$\beta$ from .1 to 1: the share of edges is E$_{x\sim N(0,1)}\,r(x,T)$",
        kind=Kind.EQUAL,
        check=_schedule(0, "edges_short_theory"),
        control=_schedule(0, None),
        control_statement="it is p, without bias",
        formula=THEORY + "edge_probability_after_sampling",
        test=EDGES + "test_probability_after_sampling_by_quadrature",
    ),
    Claim(
        id="edges-sparse-doubling",
        source=Source("derived", DOCS + "short-schedule"),
        statement=r"$\beta$ from .1 to 1, $p=.0125$: $\hat p\geq 1.75\,p$ with the exact score",
        kind=Kind.LOWER,
        check=_doubling(0),
        control=_doubling(-1),
        control_statement=r"so it is with $\beta$ to 20",
        formula=THEORY + "edge_probability_after_sampling",
        test=EDGES + "test_published_numbers",
    ),
    Claim(
        id="edges-long-schedule",
        source=Source("derived", DOCS + "short-schedule"),
        statement=r"$\beta$ from .1 to 20: the share of edges is $p$",
        kind=Kind.EQUAL,
        check=_schedule(-1, None),
        control=_schedule(1, None),
        control_statement=r"so it is with $\beta$ to 2",
        formula=THEORY + "edge_probability_after_sampling",
        test=EDGES + "test_probability_after_sampling_by_quadrature",
    ),
    Claim(
        id="edges-noised-start",
        source=Source("derived", DOCS + "short-schedule"),
        statement=r"$\beta$ from .1 to 1, started from noised data: the share is $p$",
        kind=Kind.EQUAL,
        check=_from_noised,
        control=means_against(
            "edges_short_noised", "edges_first_theory", SEED, tolerance=STEP_ERROR
        ),
        control_statement="the schedule is to blame wherever the sampler starts",
        formula=THEORY + "edge_posterior",
        test=EDGES + "test_density_and_posterior_by_hand",
    ),
    Claim(
        id="edges-start",
        source=Source("derived", DOCS + "initialisation"),
        statement=r"KL$(q_T\Vert N(0,1))\leq\log(1+\chi^2)$ for every schedule and $p$",
        kind=Kind.UPPER,
        check=_ratio("edges_start_kl", "edges_start_bound"),
        control=_ratio("edges_start_kl", "edges_start_gaussian"),
        control_statement="it is at most that of a normal law of the same moments",
        formula=THEORY + "edge_chi_squared",
        test=EDGES + "test_start_against_quadrature",
    ),
    Claim(
        id="edges-spurious",
        source=Source("derived", DOCS + "spurious-edges"),
        statement=r"40 and 100 steps: the share of edges is that of the exact law",
        kind=Kind.EQUAL,
        check=means_against("edges_share", "edges_share_theory", SEED, resolution=0.1),
        control=means_against("edges_share", "edges_truth", SEED, resolution=0.1),
        control_statement="discretisation leaves the share at p",
        formula=THEORY + "edge_sampling_errors",
        test=DENSITY + "test_share_of_edges_by_the_last_step",
    ),
    Claim(
        id="edges-sparse-gain",
        source=Source("derived", DOCS + "spurious-edges"),
        statement=r"Sparse edges, $p\leq .1$: 40 steps alone add a fifth or more",
        kind=Kind.LOWER,
        check=_gain("p = 0.1, 0/1", "p = 0.01, 0/1"),
        control=_gain("p = 0.5, ±1"),
        control_statement="so they do at p = .5",
        formula=THEORY + "edge_sampling_errors",
        test=DENSITY + "test_published_values",
    ),
    Claim(
        id="edges-bound",
        source=Source("derived", DOCS + "system-theorem"),
        statement=r"One edge: exact KL $\leq$ start $+$ path term",
        kind=Kind.UPPER,
        check=_ratio("edges_kl", "edges_bound"),
        control=_ratio("edges_kl", "edges_start"),
        control_statement="an exact score leaves the start term alone",
        formula=THEORY + "bound_entropy_fisher",
        test=DENSITY + "test_published_values",
    ),
    Claim(
        id="edges-graph-bound",
        source=Source("derived", DOCS + "paradigms"),
        statement=r"Structure $|$ labels of a community graph: KL $\leq$ start $+$ path term",
        kind=Kind.UPPER,
        check=_ratio("edges_graph_kl", "edges_graph_bound"),
        control=_ratio("edges_graph_kl", "edges_graph_start"),
        control_statement="an exact score leaves the start term alone",
        formula=THEORY + "bernoulli_graph_totals",
        test=EDGES + "test_graph_totals_by_summing_pairs",
    ),
    Claim(
        id="edges-total-variation",
        source=Source("derived", DOCS + "system-theorem"),
        statement=r"One edge: TV $\leq\sqrt{\mathrm{KL}/2}$",
        kind=Kind.UPPER,
        check=_ratio("edges_total_variation", "edges_kl", power=0.5, factor=0.5),
        control=_ratio("edges_total_variation", "edges_kl", factor=0.5),
        control_statement=r"TV $\leq$ KL/2, without the root",
        formula=THEORY + "edge_sampling_errors",
        test=DENSITY + "test_published_values",
    ),
    Claim(
        id="edges-path-identity",
        source=Source("derived", DOCS + "contraction-identity"),
        statement=r"Path term $=H(q_T)-H(q_\delta)+T-\delta-\sum_k c(h_k)J(t_k)$",
        kind=Kind.IDENTITY,
        check=values_against((("edges_path", "edges_path_quadrature"),), tolerance=ROUNDING),
        control=values_against((("edges_path", "edges_path_martingale"),), tolerance=ROUNDING),
        control_statement=r"the score is a martingale: $c(h)=h$",
        formula=THEORY + "edge_entropy",
        test=EDGES + "test_contraction_and_entropy_identities",
    ),
    Claim(
        id="edges-increment",
        source=Source("derived", DOCS + "contraction-identity"),
        statement=r"Score increments: mean square $J(t)-(2e^{-(\tau-t)}-1)J(\tau)$",
        kind=Kind.EQUAL,
        check=means_against("edges_increment", "edges_increment_theory", SEED, resolution=0.1),
        control=means_against("edges_increment", "edges_increment_martingale", SEED),
        control_statement=r"$J(t)-J(\tau)$, as of a martingale",
        formula=THEORY + "edge_fisher",
        test=EDGES + "test_contraction_and_entropy_identities",
    ),
    Claim(
        id="edges-fisher",
        source=Source("derived", DOCS + "edges"),
        statement=r"Mean square of an edge's score: $1/\sigma^2-m^2\,$mmse$/\sigma^4$",
        kind=Kind.EQUAL,
        check=means_against("edges_fisher", "edges_fisher_theory", SEED),
        control=means_against("edges_fisher", "edges_fisher_gaussian", SEED),
        control_statement="that of a normal law of the same variance",
        formula=THEORY + "edge_fisher",
        test=EDGES + "test_information_by_quadrature",
    ),
    Claim(
        id="edges-mmse",
        source=Source("derived", DOCS + "edges"),
        statement=r"E$(a-$E$[a|x])^2=(a_1-a_0)^2\,$E$\,r(1-r)$, an integral over $1/\cosh$",
        kind=Kind.EQUAL,
        check=means_against("edges_mmse", "edges_mmse_theory", SEED, resolution=SPARSE),
        control=means_against("edges_mmse", "edges_mmse_linear", SEED, resolution=SPARSE),
        control_statement="that of the best linear guess",
        formula=THEORY + "edge_mmse",
        test=EDGES + "test_information_by_quadrature",
    ),
)
