"""Claims about trust regions and improvement bounds; their numbers are the variables of `region.run`."""

import numpy as np
import xarray as xr

from boundlab.analysis.evidence import means_against, values_against
from boundlab.claims import Check, Claim, Evidence, Kind, Source

THEORY = "boundlab.theory.policy_optimization."
STEPS = "tests/theory/policy_optimization/test_trust_region.py::"
BOUNDS = "tests/theory/policy_optimization/test_improvement.py::"
MODELS = "tests/models/test_tabular_mdp.py::"
PAGE = "docs/policy_optimization.md#"
STEP = Source("derived", PAGE + "trust-region-step")
RETRACTION = Source("derived", PAGE + "retraction")
IMPROVEMENT = Source("derived", PAGE + "improvement-bounds")
FINITE = Source("derived", PAGE + "finite-horizon")
# Relative rounding of gains, which are differences of returns.
ROUNDING = 1e-7
# The same of inequalities, which some cases attain.
TOUCH = 1e-9
# Relative rounding of a maximiser found by comparing values.
SEARCH = 1e-5
# What the step gains of its guarantee at least: 2 − 1/8 discounted, 2 − 1/2 in H steps.
LEAST, LEAST_FINITE = 15 / 8, 3 / 2


def _against(
    value: str,
    reference: str,
    *,
    factor: float = 1.0,
    tolerance: float = TOUCH,
    where: str | None = None,
    kind: tuple[str, ...] = (),
    horizons: tuple[int, ...] = (),
) -> Check:
    """Check of exact values against factor·reference, in the cases that are selected.

    `where`: a variable that is 1 there; `kind`: names of cases; `horizons`: of trees.
    """

    def check(dataset: xr.Dataset) -> Evidence:
        values = dataset[f"region_{value}"]
        chosen = np.ones(values.shape, bool)
        if where is not None:
            chosen &= dataset[f"region_{where}"].values > 0
        if kind:
            tree = values.dims == ("region_tree",)
            chosen &= np.isin(dataset["region_tree_kind" if tree else "region_kind"].values, kind)
        if horizons:
            chosen &= np.isin(dataset["region_horizon"].values, horizons)
        return Evidence(
            exact=values.values[chosen],
            reference=factor * dataset[f"region_{reference}"].values[chosen],
            tolerance=tolerance,
        )

    return check


def _simulated(reference: str) -> Check:
    return means_against("region_simulated", f"region_simulated_{reference}", "region_seed")


MOVING = ("random", "small step")

CLAIMS = (
    Claim(
        id="region-closed-form",
        source=STEP,
        statement=r"$\delta/2$ from the worst actions to the best solves the LP",
        kind=Kind.IDENTITY,
        check=values_against((("region_step", "region_program"),), tolerance=ROUNDING),
        control=values_against((("region_unlimited", "region_program"),), tolerance=ROUNDING),
        control_statement="all of δ/2 from the worst one, as if it had it",
        formula=THEORY + "tv_trpo_step",
        test=STEPS + "test_gain_is_that_of_the_linear_program",
    ),
    Claim(
        id="region-retraction",
        source=Source("li2026fibration", "Lemma D.9"),
        statement=r"Censored and centred: $\hat D(\mathrm{proj}\,G(\Delta))\leq\delta$",
        kind=Kind.UPPER,
        check=_against("after", "radius_apc"),
        control=_against("after_alone", "radius_apc"),
        control_statement="each ratio clipped at Tδ alone, without the coupling",
        formula=THEORY + "retraction",
        test=STEPS + "test_retraction_lands_inside",
    ),
    Claim(
        id="region-retraction-strict",
        source=RETRACTION,
        statement=r"It lands within $2\delta-\hat D(\Delta)$, further in than it was out",
        kind=Kind.UPPER,
        check=_against("both", "twice"),
        control=_against("both_raw", "twice"),
        control_statement="also if ratios don't average to 1",
        formula=THEORY + "retraction",
        test=STEPS + "test_retraction_lands_inside",
    ),
    Claim(
        id="region-apc-maximum",
        source=Source("li2026fibration", "Theorem D.10"),
        statement=r"APC at the closed form: $\delta T(\max A-\min A)/2$",
        kind=Kind.IDENTITY,
        check=values_against((("region_apc_best", "region_apc_maximum"),), tolerance=TOUCH),
        control=values_against((("region_apc_best", "region_apc_one"),), tolerance=TOUCH),
        control_statement="δT max|A|, all of the radius at one action",
        formula=THEORY + "apc_objective",
        test=STEPS + "test_censored_objective_needs_the_identities",
    ),
    Claim(
        id="region-apc-upper",
        source=Source("li2026fibration", "Theorem D.10"),
        statement=r"No centred $\Delta$, inside or outside, has more APC",
        kind=Kind.UPPER,
        check=_against("apc_random", "apc_maximum"),
        control=_against("apc_raw", "apc_maximum"),
        control_statement="nor has any other Δ: unconstrained, without the centring",
        formula=THEORY + "apc_objective",
        test=STEPS + "test_censoring_by_hand",
    ),
    Claim(
        id="region-step",
        source=STEP,
        statement=r"Step at radius $t^*$ gains $M^2/(16\gamma\|A\|_\infty)$ at least",
        kind=Kind.LOWER,
        check=_against("step_gain", "guarantee", where="feasible"),
        control=_against("step_gain", "guarantee", where="feasible", factor=4.0),
        control_statement="four times that: the ½ of total variation counted twice",
        formula=THEORY + "guaranteed_gain",
        test=STEPS + "test_radius_maximises_the_bound",
    ),
    Claim(
        id="region-step-least",
        source=STEP,
        statement=r"and in fact $15/8$ of it, by the $1/2$ that $\hat D$ lacks",
        kind=Kind.LOWER,
        check=_against("step_gain", "guarantee", where="feasible", factor=LEAST),
        control=_against("step_gain", "guarantee", where="feasible", factor=2.0),
        control_statement="twice that: what is gained to first order",
        formula=THEORY + "guaranteed_gain",
        test=STEPS + "test_radius_maximises_the_bound",
    ),
    Claim(
        id="region-step-most",
        source=STEP,
        statement=r"and at most $17/8$ of it",
        kind=Kind.UPPER,
        check=_against("step_gain", "guarantee", where="feasible", factor=4 - LEAST),
        control=_against("step_gain", "guarantee", where="feasible", factor=2.0),
        control_statement="no more than to first order",
        formula=THEORY + "guaranteed_gain",
        test=STEPS + "test_radius_maximises_the_bound",
    ),
    Claim(
        id="region-radius",
        source=Source("li2026fibration", "Theorem D.3"),
        statement=r"The bound is largest at $t^*=(1-\gamma)M/(8\gamma\|A\|_\infty)$",
        kind=Kind.IDENTITY,
        check=_against("radius_found", "radius", where="feasible", tolerance=SEARCH),
        control=_against("radius_found", "radius_square", where="feasible", tolerance=SEARCH),
        control_statement="(1 − γ)² for 1 − γ, as in the paper's Definition 3.2",
        formula=THEORY + "trust_region_radius",
        test=STEPS + "test_radius_maximises_the_bound",
    ),
    Claim(
        id="region-difference",
        source=IMPROVEMENT,
        statement=r"$J(\pi')-J(\pi)=\sum_s d_{\pi'}(s)\sum_a \pi' A_\pi$",
        kind=Kind.IDENTITY,
        check=_against("gain", "difference", kind=MOVING, tolerance=ROUNDING),
        control=_against("gain", "surrogate", kind=MOVING, tolerance=ROUNDING),
        control_statement="by the old occupancy: the surrogate is exact",
        formula="boundlab.models.tabular_mdp.solve_mdp",
        test=MODELS + "test_solution_by_sums_over_time",
    ),
    Claim(
        id="region-trpo",
        source=Source("li2026fibration", "Section 2"),
        statement=r"TRPO's bound: penalty $4\gamma\|A\|_\infty D_{TV}^2/(1-\gamma)^2$",
        kind=Kind.LOWER,
        check=_against("gain", "trpo"),
        control=_against("gain", "trpo_halved"),
        control_statement="without the 4: the ½ of total variation counted twice",
        formula=THEORY + "improvement_bound_discounted",
        test=BOUNDS + "test_no_bound_is_violated",
    ),
    Claim(
        id="region-achiam",
        source=IMPROVEMENT,
        statement=r"Mean variation: penalty $2\gamma\epsilon'\sum_s d_\pi D_{TV}/(1-\gamma)$",
        kind=Kind.LOWER,
        check=_against("gain", "achiam"),
        control=_against("gain", "achiam_normalised"),
        control_statement="with the normalised occupancy and J that isn't",
        formula=THEORY + "achiam_bound",
        test=BOUNDS + "test_no_bound_is_violated",
    ),
    Claim(
        id="region-mixture",
        source=IMPROVEMENT,
        statement=r"Kakade–Langford's bound of $(1-\alpha)\pi+\alpha\pi'$",
        kind=Kind.LOWER,
        check=_against("mixture_gain", "mixture"),
        control=_against("mixture_gain", "mixture_single"),
        control_statement="half of the penalty: ε′ as if all expected advantages had one sign",
        formula=THEORY + "kakade_langford_bound",
        test=BOUNDS + "test_no_bound_is_violated",
    ),
    Claim(
        id="region-mixture-attained",
        source=IMPROVEMENT,
        statement=r"which is attained where gains lead astray",
        kind=Kind.IDENTITY,
        check=_against("mixture_gain", "mixture", kind=("mixture",), tolerance=ROUNDING),
        control=_against("mixture_gain", "mixture_single", kind=("mixture",), tolerance=ROUNDING),
        control_statement="with half of the penalty",
        formula=THEORY + "kakade_langford_bound",
        test=BOUNDS + "test_worst_case_attains_the_bounds",
    ),
    Claim(
        id="region-finite",
        source=FINITE,
        statement=r"$H$ steps: penalty $4\alpha\epsilon\sum_{t<H}(1-(1-\alpha)^t)$",
        kind=Kind.LOWER,
        check=_against("tree_gain", "tree_bound"),
        control=_against("tree_gain", "tree_bound_halved"),
        control_statement="without the 4: the ½ of total variation counted twice",
        formula=THEORY + "improvement_bound_finite",
        test=BOUNDS + "test_worst_case_attains_the_finite_bound",
    ),
    Claim(
        id="region-finite-attained",
        source=FINITE,
        statement=r"which is attained where gains lead astray, at every $H$",
        kind=Kind.IDENTITY,
        check=_against(
            "tree_gain", "tree_bound", kind=("worst",), horizons=(2, 3, 4, 5), tolerance=ROUNDING
        ),
        control=_against(
            "tree_gain",
            "tree_bound_loose",
            kind=("worst",),
            horizons=(2, 3, 4, 5),
            tolerance=ROUNDING,
        ),
        control_statement="its closed form 2H(H − 1)εα² is",
        formula=THEORY + "improvement_bound_finite",
        test=BOUNDS + "test_worst_case_attains_the_finite_bound",
    ),
    Claim(
        id="region-one-step",
        source=FINITE,
        statement=r"The surrogate is exact for $H=1$, however far $\pi'$ is",
        kind=Kind.IDENTITY,
        check=_against("tree_gain", "tree_surrogate", horizons=(1,), tolerance=ROUNDING),
        control=_against("tree_gain", "tree_surrogate", horizons=(2,), tolerance=ROUNDING),
        control_statement="for H = 2, too",
        formula=THEORY + "improvement_bound_finite",
        test=BOUNDS + "test_finite_bound_at_the_edges",
    ),
    Claim(
        id="region-finite-radius",
        source=FINITE,
        statement=r"Without discount the bound is largest at $M/(H(H-1)\epsilon)$",
        kind=Kind.IDENTITY,
        check=_against("tree_radius_found", "tree_radius", where="tree_proper", tolerance=SEARCH),
        control=_against(
            "tree_radius_found", "tree_radius_square", where="tree_proper", tolerance=SEARCH
        ),
        control_statement="H² for H(H − 1)",
        formula=THEORY + "trust_region_radius_finite",
        test=STEPS + "test_radius_maximises_the_bound",
    ),
    Claim(
        id="region-finite-step",
        source=FINITE,
        statement=r"Its step gains $\frac{3}{2}M^2/(2H(H-1)\epsilon)>0$: nothing vanishes",
        kind=Kind.LOWER,
        check=_against(
            "tree_step_gain", "tree_guarantee", where="tree_proper", factor=LEAST_FINITE
        ),
        control=_against("tree_step_gain", "tree_guarantee", where="tree_proper", factor=4.0),
        control_statement="four times M²/(2H(H − 1)ε): the ½ counted twice",
        formula=THEORY + "guaranteed_gain_finite",
        test=STEPS + "test_radius_maximises_the_bound",
    ),
    Claim(
        id="region-simulated",
        source=IMPROVEMENT,
        statement=r"Simulated improvement is $J(\pi')-J(\pi)$ of the solution",
        kind=Kind.EQUAL,
        check=_simulated("gain"),
        control=_simulated("surrogate"),
        control_statement="the surrogate gain, by the old occupancy",
        formula="boundlab.models.tabular_mdp.solve_mdp",
        test=MODELS + "test_solution_by_sums_over_time",
    ),
    Claim(
        id="region-simulated-bound",
        source=Source("li2026fibration", "Section 2"),
        statement=r"Simulated improvement is above TRPO's bound",
        kind=Kind.LOWER,
        check=_simulated("trpo"),
        control=_simulated("trpo_halved"),
        control_statement="above it without the 4",
        formula=THEORY + "improvement_bound_discounted",
        test=BOUNDS + "test_no_bound_is_violated",
    ),
)
