"""Claims about learning on Cora; their numbers are the variables of `citation.run`."""

from boundlab.analysis.evidence import means_against
from boundlab.claims import Claim, Kind, Source

THEORY = "boundlab.theory.excess_risk."


SGD = "citation_sgd_simulated"
RIDGE = "citation_ridge_simulated"


CLAIMS = (
    Claim(
        id="citation-sgd",
        source=Source("derived", "docs/excess_risk.md#cora"),
        statement=r"Cora: simulated risk of SGD through the dense $G$ = exact risk",
        kind=Kind.EQUAL,
        check=means_against(
            SGD,
            "citation_sgd_exact",
            "citation_seed",
            selected=(("citation_curve", "citation_samples"),),
        ),
        control=means_against(SGD, "citation_sgd_blind", "citation_seed"),
        control_statement="only the mean degree counts: a random regular graph has the same risk",
        formula=THEORY + "sgd.tail_averaged_risk",
        test="tests/analysis/excess_risk/test_citation.py::test_exact_risk_through_the_dense_operator",
    ),
    Claim(
        id="citation-ridge",
        source=Source(
            "simon2023eigenlearning",
            "deterministic equivalent, reconstructed; on the spectrum of Cora",
        ),
        statement=r"Cora: simulated risk of tuned ridge = its equivalent, to 2 %",
        kind=Kind.EQUAL,
        check=means_against(RIDGE, "citation_ridge_theory", "citation_design", tolerance=0.02),
        control=means_against(RIDGE, "citation_ridge_blind", "citation_design", tolerance=0.02),
        control_statement="only the mean degree counts: a random regular graph has the same risk",
        formula=THEORY + "ridge.risk",
        test="tests/theory/excess_risk/test_ridge_monte_carlo.py::test_total_risk",
    ),
)
