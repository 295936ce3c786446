"""Claims about the digits with a carry; their numbers are the variables of `digits.run`."""

from collections.abc import Callable

import numpy as np
import xarray as xr

from boundlab.analysis.datasets import case_labels, column
from boundlab.analysis.evidence import means_against
from boundlab.claims import Check, Claim, Evidence, Kind, Source

RISK = "boundlab.theory.team_learning.regression_risk"
CROSSOVER = "boundlab.theory.team_learning.regression_crossover"
TESTS = "tests/analysis/team_learning/test_digits.py::"
SOURCE = Source("derived", "docs/team_learning.md#digits")
ADVICE = Source("derived", "docs/team_learning.md#advice")
ADVICE_TEST = "tests/analysis/team_learning/test_advice.py::test_budgets_by_drawing_choices"
# What the theory of Gaussian inputs and linear labels leaves unexplained on the digits, relative.
MODEL_ERROR = 0.1
# The same of a difference of two risks.
DIFFERENCE_ERROR = 0.25
# What the law behind the advice leaves unexplained of a team's failure rates on real episodes.
TEAM_ERROR = 0.25
# Budgets at which failures are frequent enough to be counted.
OFTEN = (64, 128)
# Sample sizes this far from n* are held to be on one side of it.
APART = 1.3
FEW, MANY = 8, 16
SEED = "digits_seed"
Cells = Callable[[xr.Dataset], xr.Dataset]


def _risk(name: str, reference: str) -> Check:
    return means_against(f"digits_{name}", f"digits_{reference}", SEED, tolerance=MODEL_ERROR)


def _below(smaller: str, larger: str, cells: Cells) -> Check:
    """One learner's risk below another's, paired by shuffle, in some cells."""

    def check(dataset: xr.Dataset) -> Evidence:
        part = cells(dataset)
        return Evidence(
            samples=column(part, f"digits_{smaller}", SEED),
            compared_with=column(part, f"digits_{larger}", SEED),
            labels=case_labels(part, f"digits_{smaller}", SEED),
        )

    return check


def _cells(dim: int, coupling: float | None = None, *, last: bool = False) -> Cells:
    def chosen(dataset: xr.Dataset) -> xr.Dataset:
        part = dataset.sel(digits_dim=[dim])
        if coupling is not None:
            part = part.sel(digits_coupling=[coupling])
        return part.isel(digits_samples=[-1]) if last else part

    return chosen


def _price(*, separable: bool) -> Check:
    """What one agent's risk exceeds that of agents on their own inputs by, without a carry."""

    def check(dataset: xr.Dataset) -> Evidence:
        part = dataset.sel(digits_coupling=[0.0])
        own = part["digits_blind"]
        both = xr.Dataset({"price": part["digits_sarl"] - own})
        theory = part["digits_sarl_theory"] - part["digits_blind_theory"]
        expected = theory.values.ravel()
        return Evidence(
            samples=column(both, "price", SEED),
            reference=np.zeros_like(expected) if separable else expected,
            tolerance=DIFFERENCE_ERROR,
            labels=case_labels(both, "price", SEED),
        )

    return check


def _sides(*, factor: float) -> Check:
    """The blind team is ahead for n well below factor·n* and behind well above, paired by shuffle."""

    def check(dataset: xr.Dataset) -> Evidence:
        ahead, behind, labels = [], [], []
        for dim in dataset["digits_dim"].values:
            for coupling in dataset["digits_coupling"].values:
                cell = dataset.sel(digits_dim=dim, digits_coupling=coupling)
                crossover = factor * float(cell["digits_crossover"])
                for n in dataset["digits_samples"].values:
                    if crossover / APART < n < crossover * APART:
                        continue
                    at = cell.sel(digits_samples=n)
                    pair = (at["digits_blind"].values, at["digits_sarl"].values)
                    winner, loser = pair if n < crossover else pair[::-1]
                    ahead.append(winner)
                    behind.append(loser)
                    labels.append(f"dim {dim}, coupling {coupling:g}, n {n}")
        return Evidence(
            samples=np.stack(ahead, axis=1),
            compared_with=np.stack(behind, axis=1),
            labels=tuple(labels),
        )

    return check


def _equal_at_crossover(*, neglected: bool) -> Check:
    """Ratio of the two risks at the predicted n*."""

    def check(dataset: xr.Dataset) -> Evidence:
        ratio = column(dataset, "digits_ratio_at_crossover", SEED)
        wrong = column(dataset, "digits_ratio_unneglected")
        return Evidence(
            samples=ratio,
            reference=np.ones(ratio.shape[1]) if neglected else wrong,
            tolerance=MODEL_ERROR,
            labels=case_labels(dataset, "digits_ratio_at_crossover", SEED),
        )

    return check


def _episodes(learner: str, law: Callable[[xr.Dataset], xr.DataArray], tolerance: float) -> Check:
    """Failure rates of a learner on drawn episodes against a law."""

    def check(dataset: xr.Dataset) -> Evidence:
        often = dataset.sel(digits_budget=list(OFTEN))
        part = often.sel(digits_learner=learner)
        return Evidence(
            samples=column(part, "digits_failed", "digits_trial"),
            reference=law(often).values,
            tolerance=tolerance,
            labels=case_labels(part, "digits_failed", "digits_trial"),
        )

    return check


def _law(learner: str) -> Callable[[xr.Dataset], xr.DataArray]:
    return lambda dataset: dataset["digits_failure"].sel(digits_learner=learner)


def _unequal(dataset: xr.Dataset) -> xr.DataArray:
    return dataset["digits_failure_unequal"]


CLAIMS = (
    Claim(
        id="digits-sarl",
        source=SOURCE,
        statement=r"Digits, one agent: risk $S\,g_D(n)$ to 10%, with nothing Gaussian",
        kind=Kind.EQUAL,
        check=_risk("sarl", "sarl_theory"),
        control=_risk("sarl", "sarl_hardest"),
        control_statement="it pays for the hardest subtask's d alone",
        formula=RISK,
        test=TESTS + "test_the_growth_of_the_risk_with_gaussian_inputs",
    ),
    Claim(
        id="digits-blind",
        source=SOURCE,
        statement=r"Digits, blind team: risk $(S+F)\,g_d(n)$ to 10%",
        kind=Kind.EQUAL,
        check=_risk("blind", "blind_theory"),
        control=_risk("blind", "blind_unneglected"),
        control_statement="to neglect the carry costs nothing",
        formula=RISK,
        test=TESTS + "test_the_growth_of_the_risk_with_gaussian_inputs",
    ),
    Claim(
        id="digits-price",
        source=SOURCE,
        statement=r"Digits, no carry: one agent pays $S(g_D-g_d)$ more, to 25%",
        kind=Kind.EQUAL,
        check=_price(separable=False),
        control=_price(separable=True),
        control_statement="joint and separate fits coincide, as for a separable reward",
        formula=RISK,
        test=TESTS + "test_the_growth_of_the_risk_with_gaussian_inputs",
    ),
    Claim(
        id="digits-aware",
        source=SOURCE,
        statement=r"Digits, $d=16$: a team that knows the carry beats one agent",
        kind=Kind.ORDER,
        check=_below("aware", "sarl", _cells(MANY)),
        control=_below("blind", "sarl", _cells(MANY, 1.0)),
        control_statement="so does a team that doesn't know it",
        formula=RISK,
        test=TESTS + "test_the_growth_of_the_risk_with_gaussian_inputs",
    ),
    Claim(
        id="digits-rollout",
        source=SOURCE,
        statement=r"Digits, $d=8$: rounded carries cost that lead by $n=400$ at $\lambda=1$",
        kind=Kind.ORDER,
        check=_below("sarl", "aware", _cells(FEW, 1.0, last=True)),
        control=_below("sarl", "aware", _cells(FEW, 0.0, last=True)),
        control_statement="the lead is lost without a carry, too",
        formula=RISK,
        test="tests/models/test_digit_tasks.py::test_learners_by_scikit_learn",
    ),
    Claim(
        id="digits-sides",
        source=SOURCE,
        statement=r"Digits: a blind team leads for $n<n^*/1.3$, one agent for $n>1.3\,n^*$",
        kind=Kind.ORDER,
        check=_sides(factor=1.0),
        control=_sides(factor=3.0),
        control_statement="n* counts agent-samples, so that it is K times as large",
        formula=CROSSOVER,
        test=TESTS + "test_the_crossing_makes_both_risks_equal",
    ),
    Claim(
        id="digits-crossover",
        source=SOURCE,
        statement=r"Digits: equal risks at $n^*=D+2+(D-d)S/F$, to 10%",
        kind=Kind.EQUAL,
        check=_equal_at_crossover(neglected=True),
        control=_equal_at_crossover(neglected=False),
        control_statement="F = 0: the team is ahead by g_d/g_D",
        formula=CROSSOVER,
        test=TESTS + "test_the_crossing_makes_both_risks_equal",
    ),
    Claim(
        id="digits-team",
        source=ADVICE,
        statement=r"Model sizes for digits: a team fails as the advice predicts, to 25%",
        kind=Kind.EQUAL,
        check=_episodes("team", _law("team"), TEAM_ERROR),
        control=_episodes("team", lambda dataset: dataset["digits_failure_alone"], TEAM_ERROR),
        control_statement="teammates add no variance",
        formula="boundlab.analysis.team_learning.advice.advise",
        test=ADVICE_TEST,
    ),
    Claim(
        id="digits-single-more",
        source=ADVICE,
        statement=r"Sizes for digits: one agent fails more often than by equal noise",
        kind=Kind.LOWER,
        check=_episodes("one agent", _law("one agent"), 0.0),
        control=_episodes("one agent", _unequal, 0.0),
        control_statement="more often than by Gaussian noise of each joint action's own size",
        formula="boundlab.analysis.team_learning.advice.advise",
        test=ADVICE_TEST,
    ),
    Claim(
        id="digits-single-less",
        source=ADVICE,
        statement=r"Sizes for digits: one agent fails less often than by unequal noise",
        kind=Kind.UPPER,
        check=_episodes("one agent", _unequal, 0.0),
        control=_episodes("one agent", _law("team"), 0.0),
        control_statement="no more often than a team",
        formula="boundlab.analysis.team_learning.advice.advise",
        test=TESTS + "test_largest_of_unequal_normals",
    ),
)
