"""Claims about drift and variable lengths; their numbers are the variables of `drift.run`."""

from collections.abc import Callable

import numpy as np
import xarray as xr

from boundlab.analysis.evidence import means_against
from boundlab.claims import Check, Claim, Evidence, Kind, Source

LOSSES = "boundlab.models.policy_losses.policy_loss"
THEORY = "boundlab.theory.policy_optimization."
LOOPS = "tests/analysis/policy_optimization/test_drift.py::"
LENGTHS = "tests/theory/policy_optimization/test_lengths.py::"
DRIFT = Source("derived", "docs/policy_optimization.md#drift")
VARIABLE = Source("derived", "docs/policy_optimization.md#variable-lengths")
# Relative rounding of gradients that are added up over all sequences.
ROUNDING = 1e-9
# Relative difference of one long inner loop of small steps and a short one of large steps.
STEPS = 0.05
# The steps of an inner loop after which one with the mean over H = 4 tokens is compared.
SHORT = 125

Values = Callable[[xr.Dataset], xr.DataArray]


def moved(loss: str, *variants: str, variable: str = "moved", step: int = -1) -> Values:
    """What a loss has done at the end, or at another step: (seed, variant)."""

    def values(dataset: xr.Dataset) -> xr.DataArray:
        of = dataset[f"drift_{variable}"].sel(drift_loss=loss, drift_variant=list(variants))
        at = of.isel(drift_step=-1) if step < 0 else of.sel(drift_step=step)
        return at.drop_vars(("drift_loss", "drift_step"))

    return values


def rival(name: str, *variants: str) -> Values:
    """The same of a gate that passes for another's, at the end."""

    def values(dataset: xr.Dataset) -> xr.DataArray:
        of = dataset[f"drift_{name}"]
        return of.sel(drift_variant=list(variants)) if variants else of

    return values


def ordered(*pairs: tuple[Values, Values]) -> Check:
    """The first of each pair is the smaller one, paired by seed."""

    def check(dataset: xr.Dataset) -> Evidence:
        return Evidence(
            samples=_columns(dataset, [one for one, _ in pairs]),
            compared_with=_columns(dataset, [other for _, other in pairs]),
        )

    return check


def at_most(values: Values, reference: str) -> Check:
    """A mean over seeds is at most a variable of the dataset."""

    def check(dataset: xr.Dataset) -> Evidence:
        return Evidence(
            samples=_columns(dataset, [values]), reference=float(dataset[reference].values)
        )

    return check


def at_most_twice(values: Values, other: Values) -> Check:
    """The first is at most twice the second, in the mean of their difference."""

    def check(dataset: xr.Dataset) -> Evidence:
        excess = _columns(dataset, [values]) - 2 * _columns(dataset, [other])
        return Evidence(samples=excess, reference=0.0)

    return check


def same(values: Values, other: Values, tolerance: float) -> Check:
    """The mean ratio of two values of a seed is 1."""

    def check(dataset: xr.Dataset) -> Evidence:
        ratio = _columns(dataset, [values]) / _columns(dataset, [other])
        return Evidence(samples=ratio, reference=1.0, tolerance=tolerance)

    return check


def gradients(aggregation: str, reference: str, fixed: bool | None = None) -> Check:
    """Cosine with ∇J and size relative to it of one loss's gradient, against a reference.

    `fixed`: only trees whose sequences all have one length, or only the others. `reference`: another
    aggregation's closed form; `true`, ∇J; `mean`, ∇J over the mean length.
    """

    def check(dataset: xr.Dataset) -> Evidence:
        same_length = dataset["drift_spread"].values < ROUNDING
        kept = np.flatnonzero(
            np.full(same_length.shape, True) if fixed is None else same_length == fixed
        )
        part = dataset.isel(drift_tree=kept)
        of = part.sel(drift_aggregation=aggregation)
        if reference in ("true", "mean"):
            cosine = np.ones(len(kept))
            size = 1 / part["drift_length"].values if reference == "mean" else cosine
        else:
            closed = part.sel(drift_aggregation=reference)
            cosine, size = (closed[f"drift_{n}_theory"].values for n in ("cosine", "size"))
        return Evidence(
            exact=np.concatenate([of["drift_cosine"].values, of["drift_size"].values]),
            reference=np.concatenate([cosine, size]),
            tolerance=ROUNDING,
        )

    return check


def _columns(dataset: xr.Dataset, chosen: list[Values]) -> np.ndarray:
    """(seeds, cases) of all values, one after another."""
    columns = []
    for values in chosen:
        found = values(dataset)
        columns.append(found.transpose("drift_seed", ...).values.reshape(len(found.drift_seed), -1))
    return np.ascontiguousarray(np.concatenate(columns, axis=1))


EVERY = ("sum", "mean", "sequence")
CLAIMS = (
    Claim(
        id="drift-fiberpo-grpo",
        source=DRIFT,
        statement=r"500 exact steps: FiberPO moves less far from $\pi_{old}$ than GRPO",
        kind=Kind.ORDER,
        check=ordered((moved("FiberPO", *EVERY), moved("GRPO", *EVERY))),
        control=ordered((rival("clamped", *EVERY), moved("GRPO", *EVERY))),
        control_statement="so does a symmetric clamp of FiberPO's total budget passed off as it",
        formula=LOSSES,
        test=LOOPS + "test_inner_loop_without_differentiation",
    ),
    Claim(
        id="drift-budget",
        source=DRIFT,
        statement=r"FiberPO: mean $|r-1|\leq C^++C^-$ after 500 exact steps",
        kind=Kind.UPPER,
        check=at_most(moved("FiberPO", *EVERY), "drift_budget"),
        control=at_most(rival("clamped", *EVERY), "drift_budget"),
        control_statement="a symmetric clamp at C⁺ + C⁻ keeps it too",
        formula=LOSSES,
        test=LOOPS + "test_inner_loop_without_differentiation",
    ),
    Claim(
        id="drift-grpo-gspo",
        source=DRIFT,
        statement=r"Sum over tokens, own advantages: GRPO moves less than GSPO",
        kind=Kind.ORDER,
        check=ordered((moved("GRPO", "sum"), moved("GSPO", "sum"))),
        control=ordered((moved("GRPO", "sum"), rival("signed"))),
        control_statement="also than GSPO with one sign a sequence",
        formula=LOSSES,
        test=LOOPS + "test_inner_loop_without_differentiation",
    ),
    Claim(
        id="drift-gspo-sequence",
        source=DRIFT,
        statement=r"A sequence has one advantage or sign: GSPO moves less",
        kind=Kind.ORDER,
        check=ordered(
            (moved("GSPO", "sequence"), moved("FiberPO", "sequence")),
            (rival("signed"), moved("FiberPO", "sum")),
        ),
        control=ordered((moved("GSPO", "sum"), moved("FiberPO", "sum"))),
        control_statement="also in the token form with the tokens' own advantages",
        formula=LOSSES,
        test=LOOPS + "test_inner_loop_without_differentiation",
    ),
    Claim(
        id="drift-overlap",
        source=DRIFT,
        statement=r"Mean over tokens: GSPO moves less than twice as far as GRPO",
        kind=Kind.UPPER,
        check=at_most_twice(moved("GSPO", "mean"), moved("GRPO", "mean")),
        control=at_most_twice(moved("GSPO", "sum"), moved("GRPO", "sum")),
        control_statement="so it does with the sum over tokens",
        formula=LOSSES,
        test=LOOPS + "test_inner_loop_without_differentiation",
    ),
    Claim(
        id="drift-short",
        source=DRIFT,
        statement=r"The mean over $H$ tokens is an inner loop $H$ times shorter",
        kind=Kind.EQUAL,
        check=same(moved("GRPO", "mean"), moved("GRPO", "sum", step=SHORT), STEPS),
        control=same(moved("GRPO", "mean"), moved("GRPO", "sum"), STEPS),
        control_statement="the mean changes nothing: only the direction counts",
        formula=LOSSES,
        test=LOOPS + "test_inner_loop_without_differentiation",
    ),
    Claim(
        id="drift-gain",
        source=DRIFT,
        statement=r"Gains in $J$: FiberPO's the least, GSPO's the most",
        kind=Kind.ORDER,
        check=ordered(
            (moved("FiberPO", "sum", variable="gained"), moved("GRPO", "sum", variable="gained")),
            (moved("GRPO", "sum", variable="gained"), moved("GSPO", "sum", variable="gained")),
        ),
        control=ordered(
            *(
                (moved(a, "sequence", variable="gained"), moved(b, "sequence", variable="gained"))
                for a, b in (("FiberPO", "GRPO"), ("GRPO", "GSPO"))
            )
        ),
        control_statement="also where all tokens of a sequence have its advantage",
        formula=LOSSES,
        test=LOOPS + "test_inner_loop_without_differentiation",
    ),
    Claim(
        id="drift-length-own",
        source=VARIABLE,
        statement=r"Mean over tokens: ascent along $d\pi(mA-\Sigma\pi mA)$, $m=E[1/T|s,a]$",
        kind=Kind.IDENTITY,
        check=gradients("mean, own", "mean, own"),
        control=gradients("mean, own", "mean"),
        control_statement="along ∇J, over the mean length",
        formula=THEORY + "length_weighted_gradient",
        test=LENGTHS + "test_token_advantages_by_differentiation",
    ),
    Claim(
        id="drift-length-fixed",
        source=VARIABLE,
        statement=r"Sequences of one length $H$: it is $\nabla J/H$",
        kind=Kind.IDENTITY,
        check=gradients("mean, own", "mean", fixed=True),
        control=gradients("mean, own", "mean", fixed=False),
        control_statement="∇J over the mean length where lengths differ",
        formula=THEORY + "length_weighted_gradient",
        test=LENGTHS + "test_token_advantages_by_differentiation",
    ),
    Claim(
        id="drift-length-sequence",
        source=VARIABLE,
        statement=r"With $R-J$ for every token it climbs $E[(R-J)/T]$",
        kind=Kind.IDENTITY,
        check=gradients("mean, sequence's", "mean, sequence's"),
        control=gradients("mean, sequence's", "mean, own"),
        control_statement="as with the tokens' own advantages",
        formula=THEORY + "length_weighted_gradient",
        test=LENGTHS + "test_rewards_over_lengths",
    ),
    Claim(
        id="drift-length-sum",
        source=VARIABLE,
        statement=r"The sum over tokens points along $\nabla J$ at any lengths",
        kind=Kind.IDENTITY,
        check=gradients("sum, own", "true"),
        control=gradients("mean, own", "mean"),
        control_statement="so does the mean over tokens",
        formula=THEORY + "length_weighted_gradient",
        test=LENGTHS + "test_token_advantages_by_differentiation",
    ),
    Claim(
        id="drift-alone",
        source=VARIABLE,
        statement=r"Of $n$ sequences' prefixes, $\Sigma_s nd(1-d)^{n-1}$ are seen once",
        kind=Kind.EQUAL,
        check=means_against("drift_alone", "drift_alone_theory", "drift_batch_seed"),
        control=means_against("drift_alone", "drift_alone_even", "drift_batch_seed"),
        control_statement="as if all tokens were equally likely",
        formula=THEORY + "expected_single_visits",
        test=LENGTHS + "test_single_visits_by_enumeration",
    ),
)
