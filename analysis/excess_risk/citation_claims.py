"""Claims about learning on Cora; their numbers are the variables of `citation.run`."""

from collections.abc import Callable

import xarray as xr

from boundlab.analysis.excess_risk.problems import case_labels, column
from boundlab.claims import Claim, Evidence, Kind, Source

THEORY = "boundlab.theory.excess_risk."


def _sgd(*, blind: bool) -> Callable[[xr.Dataset], Evidence]:
    def check(dataset: xr.Dataset) -> Evidence:
        if blind:
            reference = dataset["citation_sgd_blind"]
        else:
            reference = dataset["citation_sgd_exact"].sel(
                citation_curve=dataset["citation_samples"].values
            )
        return Evidence(
            samples=column(dataset, "citation_sgd_simulated", "citation_seed"),
            reference=reference.values.ravel(),
            labels=case_labels(dataset, "citation_sgd_simulated", "citation_seed"),
        )

    return check


def _ridge(reference: str) -> Callable[[xr.Dataset], Evidence]:
    def check(dataset: xr.Dataset) -> Evidence:
        return Evidence(
            samples=column(dataset, "citation_ridge_simulated", "citation_design"),
            reference=column(dataset, reference),
            tolerance=0.02,
            labels=case_labels(dataset, "citation_ridge_simulated", "citation_design"),
        )

    return check


CLAIMS = (
    Claim(
        id="citation-sgd",
        source=Source("derived", "second-moment recursion on the spectrum of Cora"),
        statement=r"Cora: simulated risk of SGD through the dense $G$ = exact risk",
        kind=Kind.EQUAL,
        check=_sgd(blind=False),
        control=_sgd(blind=True),
        control_statement="only the mean degree counts: a random regular graph has the same risk",
        formula=THEORY + "sgd.tail_averaged_risk",
        test="tests/theory/excess_risk/test_sgd_exact.py::test_plain_loop",
    ),
    Claim(
        id="citation-ridge",
        source=Source(
            "simon2023eigenlearning", "deterministic equivalent, on the spectrum of Cora"
        ),
        statement=r"Cora: simulated risk of tuned ridge = deterministic equivalent, to 2 %",
        kind=Kind.EQUAL,
        check=_ridge("citation_ridge_theory"),
        control=_ridge("citation_ridge_blind"),
        control_statement="only the mean degree counts: a random regular graph has the same risk",
        formula=THEORY + "ridge.risk",
        test="tests/theory/excess_risk/test_ridge_monte_carlo.py::test_total_risk",
    ),
)
