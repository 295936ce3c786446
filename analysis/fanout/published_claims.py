"""Claims about the paper's own numbers; their values are the variables of `published.run`."""

from collections.abc import Callable

import numpy as np
import xarray as xr

from boundlab.analysis.datasets import case_labels, column
from boundlab.analysis.evidence import means_against, values_against
from boundlab.claims import Claim, Evidence, Kind, Source

PAGE = "docs/fanout.md#published-numbers"
THEORY = "boundlab.theory.fanout."
TESTS = "tests/theory/fanout/test_selection_and_targets.py::"
RATES = "tests/analysis/fanout/test_published.py::test_exponents_of_the_published_rates"
LARGEST_SHARE = 0.3
MOST_LEFT = 0.6
SMALLEST_TAIL = 0.05
MOST_EXPLAINED = 0.15


def _signs(dataset: xr.Dataset) -> Evidence:
    """Fitted exponents in the direction of the theorem's: positive where the signs agree."""
    stated = dataset["published_theorem_exponent"].values
    agreed = dataset["published_exponent"].values * np.sign(stated)
    return Evidence(exact=agreed.ravel(), labels=case_labels(dataset, "published_exponent"))


def _linear_speed_up(dataset: xr.Dataset) -> Evidence:
    """Exponents of b of −1 or below for both losses: one batch is worth b single steps."""
    part = dataset.sel(published_axis=["batch_size"])
    return Evidence(
        exact=-column(part, "published_exponent"),
        reference=1.0,
        labels=case_labels(part, "published_exponent"),
    )


def _magnitudes(dataset: xr.Dataset, *, stated: bool = False) -> Evidence:
    fitted, theorem = (
        np.abs(column(dataset, name))
        for name in ("published_exponent", "published_theorem_exponent")
    )
    return Evidence(
        exact=theorem if stated else fitted,
        reference=fitted if stated else LARGEST_SHARE * theorem,
        labels=case_labels(dataset, "published_exponent"),
    )


def _left_by(law: str) -> Callable[[xr.Dataset], Evidence]:
    def check(dataset: xr.Dataset) -> Evidence:
        left = dataset["published_unexplained"].sel(published_law=law)
        return Evidence(
            exact=left.values, reference=MOST_LEFT, labels=_names(dataset, "published_case")
        )

    return check


def _tail(name: str) -> Callable[[xr.Dataset], Evidence]:
    def check(dataset: xr.Dataset) -> Evidence:
        return Evidence(
            exact=column(dataset, name),
            reference=SMALLEST_TAIL,
            labels=_names(dataset, "published_dataset"),
        )

    return check


def _explained(dataset: xr.Dataset, *, zero_loss: float | None = None) -> Evidence:
    """The share a target asks for: of the zero predictor's loss, 1/K, or of another `zero_loss`."""
    share = column(dataset, "published_target_explained")
    if zero_loss is not None:
        share = 1 - column(dataset, "published_target") / zero_loss
    return Evidence(exact=share, reference=MOST_EXPLAINED, labels=_names(dataset, "published_runs"))


def _retested(name: str) -> Callable[[xr.Dataset], Evidence]:
    def check(dataset: xr.Dataset) -> Evidence:
        return Evidence(
            samples=column(dataset, name, "published_seed"),
            reference=0.1,
            labels=case_labels(dataset, name, "published_seed"),
        )

    return check


def _names(dataset: xr.Dataset, dim: str) -> tuple[str, ...]:
    return tuple(map(str, dataset[dim].values))


CLAIMS = (
    Claim(
        id="published-signs",
        source=Source("liu2026full", "Remark 3.1, on the tables of liu2025draft"),
        statement="fitted exponents of the published tables have the theorems' signs",
        kind=Kind.LOWER,
        check=_signs,
        control=_linear_speed_up,
        control_statement="T falls as 1/b for both losses, a linear speed-up",
        formula=THEORY + "published_rates.paper_elasticities",
        test=RATES,
    ),
    Claim(
        id="published-magnitudes",
        source=Source("liu2026full", "Theorems 1 and 2, on the tables of liu2025draft"),
        statement=r"$|\mathrm{fitted\ exponent}| \leq 0.3\,|\mathrm{theorem's\ exponent}|$",
        kind=Kind.UPPER,
        check=_magnitudes,
        control=lambda dataset: _magnitudes(dataset, stated=True),
        control_statement="the tables vary at least as much as the theorems say",
        formula=THEORY + "published_rates.paper_elasticities",
        test=RATES,
    ),
    Claim(
        id="published-power-law",
        source=Source("liu2026full", "Theorems 1 and 2, on the tables of liu2025draft"),
        statement=r"best $T \propto b^p\beta^q$ leaves $\leq 0.6$ of the variance of $\ln T$",
        kind=Kind.UPPER,
        check=_left_by("fitted"),
        control=_left_by("theorem"),
        control_statement="so do the theorems' exponents p and q",
        formula=THEORY + "published_rates.paper_elasticities",
        test=RATES,
    ),
    Claim(
        id="published-targets",
        source=Source("liu2025draft", "target losses of Appendix C.5"),
        statement=r"target $\epsilon=(1-\rho)/K$ asks for an explained share $\rho \leq 0.15$",
        kind=Kind.UPPER,
        check=_explained,
        control=lambda dataset: _explained(dataset, zero_loss=0.5),
        control_statement="also if output 0 had the loss ½, that of eq. 3 of the draft",
        formula=THEORY + "trivial_losses.explained_share",
        test=TESTS + "test_share_that_a_constant_output_leaves",
    ),
    Claim(
        id="zero-predictor",
        source=Source("derived", PAGE),
        statement=r"output 0 has mean squared error $1/K$ on one-hot labels",
        kind=Kind.IDENTITY,
        check=values_against((("published_zero_loss", "published_zero_formula"),), tolerance=1e-12),
        control=values_against((("published_zero_loss", "published_target"),), tolerance=1e-12),
        control_statement="the published targets are the losses of output 0",
        formula=THEORY + "trivial_losses.zero_predictor_loss",
        test=TESTS + "test_loss_of_the_output_zero",
    ),
    Claim(
        id="binary-cross-entropy-floor",
        source=Source("derived", PAGE),
        statement=r"targets $(y+1)/2$, logits $\geq 0$: $\inf \mathrm{BCE} = \frac{K-1}{K}\ln 2$",
        kind=Kind.IDENTITY,
        check=values_against((("published_bce_minimum", "published_bce_floor"),), tolerance=1e-6),
        control=values_against(
            (("published_bce_minimum", "published_bce_target"),), tolerance=1e-6
        ),
        control_statement="the floor is the target .025 of the authors' code",
        formula=THEORY + "trivial_losses.relu_binary_cross_entropy_floor",
        test=TESTS + "test_no_logits_go_below_the_floor",
    ),
    Claim(
        id="selection-bias",
        source=Source("derived", PAGE),
        statement=r"best of m equal cells: $E\max_m = \int x\,m\,\varphi\,\Phi^{m-1}dx$ too high",
        kind=Kind.EQUAL,
        check=means_against("published_chosen", "published_expected_maximum", "published_seed"),
        control=means_against("published_chosen", "published_extreme_value", "published_seed"),
        control_statement=r"the leading term √(2 ln m) is the bias",
        formula=THEORY + "order_statistics.expected_maximum",
        test=TESTS + "test_expected_maximum_against_known_values",
    ),
    Claim(
        id="selection-fresh-nodes",
        source=Source("derived", PAGE),
        statement=r"best of m equal cells, scored on other nodes: no better ($\leq 0.1\,\sigma$)",
        kind=Kind.UPPER,
        check=_retested("published_retested"),
        control=_retested("published_chosen"),
        control_statement="nor on the nodes by which it was chosen",
        formula=THEORY + "order_statistics.expected_maximum",
        test=TESTS + "test_expected_maximum_against_known_values",
    ),
    Claim(
        id="published-gains",
        source=Source("liu2026full", "Table 1, on the accuracies of liu2025draft"),
        statement=r"share of cells no better than full-graph training $\geq 0.05$",
        kind=Kind.LOWER,
        check=_tail("published_no_better"),
        control=_tail("published_single"),
        control_statement="the best cell's gain read as if one cell had been tried",
        formula=THEORY + "order_statistics.expected_maximum",
        test="tests/analysis/fanout/test_published.py::test_gains_by_hand",
    ),
)
