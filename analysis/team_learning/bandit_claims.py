"""Claims about bandit feedback; their numbers are the variables of `bandit.run`."""

import numpy as np
import xarray as xr

from boundlab.analysis.datasets import case_labels, column
from boundlab.analysis.evidence import means_against
from boundlab.claims import Check, Claim, Evidence, Kind, Source

THEORY = "boundlab.theory.team_learning."
TEST = "tests/theory/team_learning/test_regret.py"
BANDIT = Source("derived", "docs/team_learning.md#bandit-feedback")
PRICE = Source("derived", "docs/team_learning.md#credit-assignment")
SEED = "bandit_seed"
# Relative bias of a quantile of so many trials, to second order in its error, at 256 trials.
QUANTILE = 0.02
# Relative error of taking teammates' outcomes as Gaussian and errors as independent, and that of
# counting degrees of freedom in place of the law of a random design.
GAUSSIAN, DEGREES = 0.06, 0.1


def _needed(learners: tuple[str, ...], reference: str, *, teams_only: bool = False) -> Check:
    """Measured sample complexities of some learners against a theory of the same dims."""

    def check(dataset: xr.Dataset) -> Evidence:
        part = dataset.sel(bandit_learner=list(learners))
        if teams_only:
            part = part.isel(bandit_cell=np.flatnonzero(part["bandit_agents"].values > 1))
        return means_against("bandit_measured", reference, SEED, tolerance=QUANTILE)(part)

    return check


def _price(power_of_mean: int) -> Check:
    """Measured N of team rewards over own rewards' exact N, against K^p (mean outcome) and K² (judge)."""

    def check(dataset: xr.Dataset) -> Evidence:
        part = dataset.isel(bandit_cell=np.flatnonzero(dataset["bandit_agents"].values > 1))
        agents = part["bandit_agents"]
        own = part["bandit_exact"].sel(bandit_learner="own", drop=True)
        signals = part["bandit_measured"].sel(bandit_learner=["outcome", "judge"])
        powers = xr.DataArray([power_of_mean, 2], dims="bandit_learner")
        ratio = xr.Dataset({"ratio": signals / own, "expected": agents**powers})
        order = [dim for dim in ratio["ratio"].dims if dim != SEED]
        return Evidence(
            samples=column(ratio, "ratio", SEED),
            reference=ratio["expected"].transpose(*order).values.ravel().astype(float),
            tolerance=QUANTILE,
            labels=case_labels(ratio, "ratio", SEED),
        )

    return check


def _bound(reference: str, factor: float = 1.0, *, of: str | None = None) -> Check:
    """Exact sample complexities against a bound; one agent's with all arms equally close.

    `of`: the learner whose bound is taken for all.
    """

    def check(dataset: xr.Dataset) -> Evidence:
        exact = dataset["bandit_exact"].copy()
        exact.loc[{"bandit_learner": "joint"}] = dataset["bandit_slippage"]
        bound = dataset[reference]
        if of is not None:
            bound = bound.sel(bandit_learner=of, drop=True).broadcast_like(exact)
        return Evidence(
            exact=exact.values.ravel(),
            reference=factor * bound.transpose(*exact.dims).values.ravel(),
            labels=case_labels(dataset, "bandit_exact"),
        )

    return check


def _failures(name: str, reference: str, tolerance: float, resolution: float) -> Check:
    return means_against(
        f"bandit_{name}_failure",
        f"bandit_{reference}",
        SEED,
        tolerance=tolerance,
        resolution=resolution,
    )


CLAIMS = (
    Claim(
        id="bandit-one-agent",
        source=BANDIT,
        statement="$N_{\\mathrm{SARL}}=A^K m$, with $m$ the root of the law of the largest mean",
        kind=Kind.EQUAL,
        check=_needed(("joint",), "bandit_exact", teams_only=True),
        control=_needed(("joint",), "bandit_slippage", teams_only=True),
        control_statement="all other joint actions are the least gap behind",
        formula=THEORY + "joint_trajectories_needed",
        test=TEST,
    ),
    Claim(
        id="bandit-own",
        source=BANDIT,
        statement="$N_{\\mathrm{own}}=A\\,m$ at agents' failure $1-(1-\\delta)^{1/K}$",
        kind=Kind.EQUAL,
        check=_needed(("own",), "bandit_exact"),
        control=_needed(("own",), "bandit_one_agent"),
        control_statement="each agent may fail with δ",
        formula=THEORY + "slippage_root",
        test="tests/theory/team_learning/test_selection.py",
    ),
    Claim(
        id="bandit-price",
        source=PRICE,
        statement="team rewards cost $K$ (mean) or $K^2$ (one judge) times as much",
        kind=Kind.EQUAL,
        check=_price(1),
        control=_price(2),
        control_statement="$K^2$ whatever the outcome's noise",
        formula=THEORY + "slippage_root",
        test="tests/theory/team_learning/test_selection.py",
    ),
    Claim(
        id="bandit-above",
        source=BANDIT,
        statement="$N\\leq 8\\,(\\ln|\\Pi|+\\ln(2/\\delta))\\,\\sigma^2/\\Delta^2$ per arm",
        kind=Kind.UPPER,
        check=_bound("bandit_above"),
        control=_bound("bandit_above", 0.25),
        control_statement="means may be off by the gap, not by half of it",
        formula=THEORY + "finite_class_samples",
        test="tests/theory/team_learning/test_bounds.py",
    ),
    Claim(
        id="bandit-below",
        source=Source("mannor2004sample", "lower bound; constants re-derived"),
        statement="$N\\geq (M-1)\\,\\sigma^2\\,\\mathrm{kl}(\\delta,1-\\delta)/(2\\Delta^2)$",
        kind=Kind.LOWER,
        check=_bound("bandit_below"),
        control=_bound("bandit_below", of="joint"),
        control_statement="teams too must try all $A^K$ joint actions",
        formula=THEORY + "pac_lower_bound",
        test="tests/theory/team_learning/test_selection_bounds.py",
    ),
    Claim(
        id="bandit-shared",
        source=PRICE,
        statement="shared rewards fail by $\\sigma_o^2+\\frac{K-1}{K^2}\\Delta^2\\frac{A-1}{A^2}$",
        kind=Kind.EQUAL,
        check=_failures("shared", "shared_theory", GAUSSIAN, 0.25),
        control=_failures("shared", "independent", GAUSSIAN, 0.25),
        control_statement="i.i.d. noise without the teammates' term",
        formula=THEORY + "slippage_failure",
        test="tests/theory/team_learning/test_selection.py",
    ),
    Claim(
        id="bandit-fitted",
        source=PRICE,
        statement="an additive fit fails by $\\sigma_o^2$ at $N(1-(K-1)(A-1)/(N-1))$",
        kind=Kind.EQUAL,
        check=_failures("fitted", "fitted_theory", DEGREES, 0.3),
        control=_failures("fitted", "shared_theory", DEGREES, 0.3),
        control_statement="teammates' variance stays",
        formula=THEORY + "slippage_failure",
        test="tests/theory/team_learning/test_selection.py",
    ),
    Claim(
        id="bandit-methods",
        source=BANDIT,
        statement="means, grouped maxima and trajectories have one regret",
        kind=Kind.EQUAL,
        check=means_against("bandit_regret", "bandit_regret_exact", SEED, resolution=0.15),
        control=means_against("bandit_regret", "bandit_regret_uncoupled", SEED, resolution=0.15),
        control_statement="the coupling moves no rewards",
        formula=THEORY + "selection_probabilities",
        test="tests/theory/team_learning/test_selection.py",
    ),
)
