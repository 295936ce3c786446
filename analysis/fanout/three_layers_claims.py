"""Claims about the three-layer network; their numbers are the variables of `three_layers.run`."""

from collections.abc import Callable

import numpy as np
import xarray as xr

from boundlab.analysis.datasets import case_labels, column
from boundlab.analysis.evidence import paired
from boundlab.claims import Claim, Evidence, Kind, Source
from boundlab.theory.fanout import paper_elasticities

THEORY = "boundlab.theory.fanout."
PAGE = "docs/fanout.md#three-layers"
SELECTION = "tests/theory/fanout/test_selection_and_targets.py::"
RATES = "tests/analysis/fanout/test_published.py::test_exponents_of_the_published_rates"
SHARE = 0.6
SEED = "sage_seed"


def _over_cells(smaller: str, larger: str) -> Callable[[xr.Dataset], Evidence]:
    """Means over the grid, paired by seed."""

    def check(dataset: xr.Dataset) -> Evidence:
        means = dataset[[smaller, larger]].mean(["sage_divisor", "sage_fan_out"])
        return paired(smaller, larger, SEED)(means)

    return check


def _independent_cells(dataset: xr.Dataset) -> Evidence:
    """It loses at least what the best of as many equal cells does whose errors are independent.

    That is √(2 ln m) standard deviations over seeds, by the leading term for many cells; the cells of
    a seed have test nodes in common, and they differ.
    """
    lost = dataset["sage_lead_again"] + dataset["sage_extreme_value"]
    return paired("lost", "sage_lead", SEED)(dataset.assign(lost=lost))


def _independent_looks(dataset: xr.Dataset) -> Evidence:
    """The maximum exceeds the checkpoint by that of as many independent binomial errors as looks."""
    raised = dataset["sage_test_accuracy"] + dataset["sage_maximum_of_looks"]
    return _over_cells("raised", "sage_largest_accuracy")(dataset.assign(raised=raised))


def _ends(axis: str, averaged: str, *, exponent: float = 0.0) -> Callable[[xr.Dataset], Evidence]:
    """Iterations at the last entry of `axis` against those at its first, means over the other.

    They fall at least as the batch size, or the fan-out, to the power −`exponent`. The target is held
    for a window: a first hit of a small batch's noisy loss is luck. Along the fan-out the smallest
    batch is left out, whose runs are often cut off before the target.
    """

    def check(dataset: xr.Dataset) -> Evidence:
        part = dataset if axis == "sage_divisor" else dataset.isel(sage_divisor=slice(1, None))
        iterations = part["sage_iterations"].sel(sage_rule="held", drop=True).mean(averaged)
        size = dataset["sage_batch_size" if axis == "sage_divisor" else axis]
        factor = (size.isel({axis: -1}, drop=True) / size.isel({axis: 0}, drop=True)) ** exponent
        last, first = (iterations.isel({axis: end}, drop=True) for end in (-1, 0))
        return paired("last", "first", SEED)(xr.Dataset({"last": factor * last, "first": first}))

    return check


def _exponents(*, as_steep: bool = False) -> Callable[[xr.Dataset], Evidence]:
    """Exponents no steeper than a share of the theorem's; or at least as steep as those."""

    def check(dataset: xr.Dataset) -> Evidence:
        found = column(dataset, "sage_exponent", SEED)
        theorem = np.array(paper_elasticities("cross_entropy"), dtype=float)
        stated = np.tile(theorem, found.shape[1] // 2)
        return Evidence(
            samples=-found if as_steep else found,
            reference=-stated if as_steep else SHARE * stated,
            labels=case_labels(dataset, "sage_exponent", SEED),
        )

    return check


CLAIMS = (
    Claim(
        id="sage-selection",
        source=Source("derived", PAGE),
        statement=r"the best cell by test accuracy leads by less on other seeds",
        kind=Kind.ORDER,
        check=paired("sage_lead_again", "sage_lead", SEED),
        control=_independent_cells,
        control_statement="by √(2 ln m) standard deviations, as the best of m independent equal cells",
        formula=THEORY + "order_statistics.expected_maximum",
        test=SELECTION + "test_expected_maximum_against_known_values",
    ),
    Claim(
        id="sage-checkpoint",
        source=Source("derived", PAGE),
        statement=r"test accuracy at the best validation: below the run's maximum",
        kind=Kind.ORDER,
        check=_over_cells("sage_test_accuracy", "sage_largest_accuracy"),
        control=_independent_looks,
        control_statement="by the expected maximum of independent errors, one a look",
        formula=THEORY + "order_statistics.expected_maximum",
        test=SELECTION + "test_expected_maximum_against_known_values",
    ),
    Claim(
        id="sage-batch-size",
        source=Source("liu2026full", "Remark 3.1"),
        statement=r"cross-entropy, Adam: $T$ smaller at $b = n_{train}$ than at the smallest $b$",
        kind=Kind.ORDER,
        check=_ends("sage_divisor", "sage_fan_out"),
        control=_ends("sage_divisor", "sage_fan_out", exponent=1.0),
        control_statement="T falls as 1/b, as published",
        formula=THEORY + "published_rates.paper_elasticities",
        test=RATES,
    ),
    Claim(
        id="sage-fan-out",
        source=Source("liu2026full", "Remark 3.1"),
        statement=r"cross-entropy, Adam: $T$ smaller at the largest $\beta$ than at the least",
        kind=Kind.ORDER,
        check=_ends("sage_fan_out", "sage_divisor"),
        control=_ends("sage_fan_out", "sage_divisor", exponent=1.0),
        control_statement="T falls as 1/β, a sample's variance, or faster: β^(−5/2) as published",
        formula=THEORY + "published_rates.paper_elasticities",
        test=RATES,
    ),
    Claim(
        id="sage-exponents",
        source=Source("liu2026full", "Theorem 2"),
        statement=r"exponents of $T$: at most 0.6 of the theorem's $(-1, -5/2)$ in size",
        kind=Kind.LOWER,
        check=_exponents(),
        control=_exponents(as_steep=True),
        control_statement="at least as steep as the theorem's",
        formula=THEORY + "published_rates.paper_elasticities",
        test=RATES,
    ),
)
