"""Claims about depth; their numbers are the variables of `depth.run`."""

from collections.abc import Callable

import numpy as np
import xarray as xr

from boundlab.analysis.datasets import case_labels, column
from boundlab.claims import Claim, Evidence, Kind, Source

THEORY = "boundlab.theory.excess_risk."
TESTS = "tests/theory/excess_risk/"
# Beyond this depth the risk of the function teacher has reached its limit and moves by rounding.
MONOTONE_DEPTH = 8
# Once one direction is left, neighbouring depths agree to the last digits: relative rounding, no
# error of the theory.
ROUNDING = 1e-12


def _steps(dataset: xr.Dataset) -> tuple[xr.Dataset, xr.Dataset]:
    """The dataset at every depth but the last, and at every depth but the first."""
    return (
        dataset.isel(depth_rounds=slice(None, -1)),
        dataset.isel(depth_rounds=slice(1, None)),
    )


def _rank(dataset: xr.Dataset) -> Evidence:
    shallow, deep = _steps(dataset)
    return Evidence(
        exact=column(deep, "depth_effective_rank"),
        reference=column(shallow, "depth_effective_rank"),
        tolerance=ROUNDING,
        labels=case_labels(deep, "depth_effective_rank"),
    )


def _rank_by_depth(dataset: xr.Dataset) -> Evidence:
    """L times the effective rank is non-increasing: each round takes its share, down to nothing."""
    total = dataset["depth_effective_rank"] * dataset["depth_rounds"]
    weighted = dataset.assign(total=total.transpose(*dataset["depth_effective_rank"].dims))
    shallow, deep = _steps(weighted)
    return Evidence(
        exact=column(deep, "total"),
        reference=column(shallow, "total"),
        tolerance=ROUNDING,
        labels=case_labels(deep, "total"),
    )


def _rising(teacher: str) -> Callable[[xr.Dataset], Evidence]:
    """On both operators."""

    def check(dataset: xr.Dataset) -> Evidence:
        return _monotone(dataset.sel(depth_rounds=slice(None, MONOTONE_DEPTH)), teacher)

    return check


def _falling(teacher: str) -> Callable[[xr.Dataset], Evidence]:
    """On the normalised operator alone.

    On D − A + I of about one power-law graph in six the small risk that is left rises again between two
    depths, by up to a fifth, while the last directions but one fade.
    """

    def check(dataset: xr.Dataset) -> Evidence:
        part = dataset.sel(depth_operator=["normalized_adjacency"])
        return _monotone(part, teacher, falling=True)

    return check


def _monotone(dataset: xr.Dataset, teacher: str, *, falling: bool = False) -> Evidence:
    shallow, deep = _steps(dataset.sel(depth_teacher=teacher))
    small, large = (deep, shallow) if falling else (shallow, deep)
    return Evidence(
        exact=column(small, "depth_sgd_risk"),
        reference=column(large, "depth_sgd_risk"),
        tolerance=ROUNDING,
        labels=case_labels(deep, "depth_sgd_risk"),
    )


def _limit(reference: str) -> Callable[[xr.Dataset], Evidence]:
    def check(dataset: xr.Dataset) -> Evidence:
        return Evidence(
            exact=column(dataset, "depth_limit_risk"),
            reference=column(dataset, reference),
            tolerance=0.02,
            labels=case_labels(dataset, "depth_limit_risk"),
        )

    return check


def _capped(part: xr.Dataset, name: str) -> Evidence:
    return Evidence(
        exact=column(part, name),
        reference=1.01 * float(part["depth_least_squares_risk"]),
        labels=case_labels(part, name),
    )


def _ridge_capped(dataset: xr.Dataset) -> Evidence:
    return _capped(dataset.isel(depth_ridge_samples=-1), "depth_ridge_risk")


def _sgd_capped(dataset: xr.Dataset) -> Evidence:
    return _capped(dataset.sel(depth_teacher="function"), "depth_sgd_risk")


def _simulated(*, real_depth: bool) -> Callable[[xr.Dataset], Evidence]:
    def check(dataset: xr.Dataset) -> Evidence:
        rounds = dataset["depth_simulated_rounds"].values
        simulated = dataset["depth_simulated_risk"]
        exact = dataset["depth_sgd_risk"].sel(
            depth_graph=simulated.attrs["graph"],
            depth_operator=simulated.attrs["operator"],
            depth_teacher="function",
            depth_rounds=rounds if real_depth else np.ones_like(rounds),
        )
        return Evidence(
            samples=column(dataset, "depth_simulated_risk", "depth_seed"),
            reference=exact.values,
            labels=case_labels(dataset, "depth_simulated_risk", "depth_seed"),
        )

    return check


CLAIMS = (
    Claim(
        id="depth-rank",
        source=Source("derived", "docs/excess_risk.md#depth-and-over-smoothing"),
        statement=r"the effective rank of $M_L$ is non-increasing in the depth $L$",
        kind=Kind.UPPER,
        check=_rank,
        control=_rank_by_depth,
        control_statement="it falls as 1/L",
        formula=THEORY + "graph.effective_rank",
        test=TESTS + "test_graph_depth.py::test_effective_rank_never_rises_with_depth",
    ),
    Claim(
        id="depth-function-monotone",
        source=Source("derived", "docs/excess_risk.md#depth-and-over-smoothing"),
        statement=r"fixed function: the risk of SGD is non-decreasing over $L = 1, 2, 4, 8$",
        kind=Kind.UPPER,
        check=_rising("function"),
        control=_rising("weights"),
        control_statement="the same for the teacher with fixed weights",
        formula=THEORY + "graph.depth_profile",
        test=TESTS + "test_graph_depth.py::test_fixed_function_gets_harder_with_depth",
    ),
    Claim(
        id="depth-weights-monotone",
        source=Source("derived", "docs/excess_risk.md#depth-and-over-smoothing"),
        statement=r"$G=(I+S)/2$, fixed $\theta^*$: the risk of SGD is non-increasing in $L$",
        kind=Kind.UPPER,
        check=_falling("weights"),
        control=_falling("function"),
        control_statement="the same for the teacher with a fixed function",
        formula=THEORY + "graph.depth_profile",
        test=TESTS + "test_graph_depth.py::test_fixed_weights_get_easier_with_depth",
    ),
    Claim(
        id="depth-limit",
        source=Source("derived", "docs/excess_risk.md#depth-and-over-smoothing"),
        statement=r"$L\to\infty$: $R = (1-p_1) + (\sigma^2+1-p_1)V_1 + p_1\,\mathrm{bias}_1$",
        kind=Kind.IDENTITY,
        check=_limit("depth_limit_formula"),
        control=_limit("depth_limit_noiseless"),
        control_statement="the signal that is missed does not act as noise: σ² V₁ alone",
        formula=THEORY + "graph.depth_profile",
        test=TESTS + "test_graph_depth.py::test_limit_of_depth_is_the_one_dimensional_problem",
    ),
    Claim(
        id="depth-ridge",
        source=Source("derived", "docs/excess_risk.md#depth-and-over-smoothing"),
        statement=r"tuned ridge at $N=2d$ stays $\leq 1.01\,\sigma^2 d/(N-d-1)$ at every depth",
        kind=Kind.UPPER,
        check=_ridge_capped,
        control=_sgd_capped,
        control_statement="SGD stays under the same cap",
        formula=THEORY + "ridge.best_ridge",
        test=TESTS + "test_ridge_tuning.py::test_no_ridge_on_a_grid_does_better",
    ),
    Claim(
        id="depth-simulated",
        source=Source("derived", "docs/excess_risk.md#depth-and-over-smoothing"),
        statement=r"SGD through the real $G^L$: simulated risk = exact risk",
        kind=Kind.EQUAL,
        check=_simulated(real_depth=True),
        control=_simulated(real_depth=False),
        control_statement="depth leaves the risk of a fixed function as it is at L = 1",
        formula=THEORY + "graph.depth_profile",
        test=TESTS + "test_graph_depth.py::test_equals_one_layer_on_the_deep_spectrum",
    ),
)
