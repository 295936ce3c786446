"""Claims about gates; their numbers are the variables of `gates.run`, all exact to rounding."""

import numpy as np
import xarray as xr

from boundlab.analysis.datasets import case_labels, column
from boundlab.analysis.evidence import values_against
from boundlab.claims import Check, Claim, Evidence, Kind, Source

THEORY = "boundlab.theory.policy_optimization."
GATES = "boundlab.models.gates."
BUNDLE = "boundlab.models.fiber_bundle."
JACOBIAN_TESTS = "tests/theory/policy_optimization/test_jacobian.py::"
GATE_TESTS = "tests/models/test_gates.py::"
BUNDLE_TESTS = "tests/models/test_fiber_bundle.py::"
PAGE = "docs/policy_optimization.md#"
# Rounding of gates, whose terms are of the order of the log-ratios, times the T of a rollback.
ROUNDING = 1e-12
# Derivatives between sequences that would show in training.
SEEN = 1e-3


def at_most(*names: str, bound: float = ROUNDING) -> Check:
    """Check that every entry of the variables is at most `bound`."""

    def check(dataset: xr.Dataset) -> Evidence:
        labels = [f"{name}, {case}" for name in names for case in case_labels(dataset, name)]
        return Evidence(
            exact=np.concatenate([column(dataset, name) for name in names]),
            reference=bound,
            labels=tuple(labels),
        )

    return check


def _ends(bound: str) -> Check:
    """Check that no log G leaves the two bounds, and that it comes to them."""

    def check(dataset: xr.Dataset) -> Evidence:
        lower, upper = dataset[bound].values
        smallest, largest = (
            column(dataset, f"gates_{name}_log_gate") for name in ("smallest", "largest")
        )
        return Evidence(
            exact=np.concatenate([largest, dataset["gates_end"].values[1:], -smallest]),
            reference=np.concatenate(
                [np.full(len(largest) + 1, upper), np.full(len(smallest), -lower)]
            )
            + ROUNDING,
        )

    return check


def _slopes(bound: str | float) -> Check:
    """Check that no slope of six tokens' gates is above `bound`."""

    def check(dataset: xr.Dataset) -> Evidence:
        limit = float(dataset[bound]) if isinstance(bound, str) else bound
        return Evidence(exact=column(dataset, "gates_slope"), reference=limit)

    return check


def _positive(name: str) -> Check:
    """Check that every sign in the variable is +1."""
    return lambda dataset: Evidence(
        exact=column(dataset, name), reference=1.0, labels=case_labels(dataset, name)
    )


CLAIMS = (
    Claim(
        id="gates-definition",
        source=Source("li2026fibration", "Definition 5.1"),
        statement=r"$\log G$ is gated aggregates plus clipped residuals, by channel",
        kind=Kind.UPPER,
        check=at_most("gates_theory_error"),
        control=at_most("gates_clamp_error"),
        control_statement="a symmetric clamp of the mean log-ratio, without channels or rollback",
        formula=THEORY + "fiber_log_gate",
        test=JACOBIAN_TESTS + "test_values_by_loops",
    ),
    Claim(
        id="gates-jacobian",
        source=Source("li2026fibration", "Proposition 5.2"),
        statement=r"$\partial G_i/\partial r_j$ is the closed form, 0 between sequences",
        kind=Kind.UPPER,
        check=at_most("gates_jacobian_error", "gates_off_trajectory"),
        control=at_most("gates_uncoupled_error", "gates_off_trajectory"),
        control_statement="each token's own clip alone, as in PPO: tokens aren't coupled",
        formula=THEORY + "fiber_jacobian",
        test=JACOBIAN_TESTS + "test_jacobian_by_central_differences",
    ),
    Claim(
        id="gates-on-policy",
        source=Source("li2026fibration", "Proposition 5.4"),
        statement=r"At $r=1$ the Jacobian is the identity, with a hierarchy too",
        kind=Kind.UPPER,
        check=at_most("gates_on_policy"),
        control=at_most("gates_on_policy_sign"),
        control_statement="it is with the sign of 0 taken for 0, as jnp.sign has it",
        formula=THEORY + "fiber_jacobian",
        test=JACOBIAN_TESTS + "test_on_policy_it_is_the_identity",
    ),
    Claim(
        id="gates-box",
        source=Source("derived", PAGE + "identity-box"),
        statement=r"$G=r$ where all $|\log r|\leq\min(\varepsilon,C^+,C^-)$",
        kind=Kind.UPPER,
        check=at_most("gates_box_error"),
        control=at_most("gates_budget_box_error"),
        control_statement="wherever they are within the budgets, min(C⁺, C⁻)",
        formula=THEORY + "identity_box",
        test=JACOBIAN_TESTS + "test_identity_box_by_corners",
    ),
    Claim(
        id="gates-bounds",
        source=Source("derived", PAGE + "gate-bounds"),
        statement=r"$-(C^-+2\varepsilon)\leq\log G\leq C^++2\varepsilon$, whatever the ratios",
        kind=Kind.UPPER,
        check=_ends("gates_end_bound"),
        control=_ends("gates_end_one_limit"),
        control_statement="with one ε, the token's own clip",
        formula=THEORY + "gate_bounds",
        test=JACOBIAN_TESTS + "test_bounds_by_random_and_extreme_ratios",
    ),
    Claim(
        id="gates-ends",
        source=Source("derived", PAGE + "gate-bounds"),
        statement=r"Both bounds of $\log G$ are reached",
        kind=Kind.IDENTITY,
        check=values_against((("gates_end", "gates_end_bound"),), tolerance=ROUNDING),
        control=values_against((("gates_end", "gates_end_one_limit"),), tolerance=ROUNDING),
        control_statement="only those with one ε are",
        formula=THEORY + "gate_bounds",
        test=JACOBIAN_TESTS + "test_bounds_by_random_and_extreme_ratios",
    ),
    Claim(
        id="gates-symmetry",
        source=Source("derived", PAGE + "gates"),
        statement=r"$\rho\to-\rho$ swaps budgets and flips $\log G$; tokens permute",
        kind=Kind.UPPER,
        check=at_most("gates_symmetry_error"),
        control=at_most("gates_symmetry_kept_error"),
        control_statement="the sign flips with the budgets kept",
        formula=GATES + "fiber_gate",
        test=GATE_TESTS + "test_gates_by_loops",
    ),
    Claim(
        id="gates-lipschitz",
        source=Source("derived", PAGE + "gate-jacobian"),
        statement=r"$\log G$ changes at most $T+2$ times as much as $\log r$",
        kind=Kind.UPPER,
        check=_slopes("gates_slope_bound"),
        control=_slopes(3.0),
        control_statement="at most 3 times: a rollback as steep as the pass",
        formula=THEORY + "gate_lipschitz",
        test=JACOBIAN_TESTS + "test_lipschitz_constant_by_slopes",
    ),
    Claim(
        id="gates-density",
        source=Source("li2026fibration", "Section 4"),
        statement=r"Gated as densities of a fiber bundle, it is the same gate",
        kind=Kind.UPPER,
        check=at_most("gates_density_error"),
        control=at_most("gates_gated_base_error"),
        control_statement="with residuals taken against the gated base",
        formula=BUNDLE + "density_gate",
        test=BUNDLE_TESTS + "test_it_is_the_gate",
    ),
    Claim(
        id="gates-reflecting",
        source=Source("li2026fibration", "Section 4"),
        statement=r"$\pi_*K=\mathrm{id}$: residuals have no aggregate",
        kind=Kind.UPPER,
        check=at_most("gates_reflecting"),
        control=at_most("gates_padded_kernel"),
        control_statement="with the padded length in place of the number of tokens",
        formula=BUNDLE + "check_reflecting",
        test=BUNDLE_TESTS + "test_only_the_kernel_over_unmasked_tokens_is_reflecting",
    ),
    Claim(
        id="gates-singleton",
        source=Source("derived", PAGE + "hierarchy"),
        statement=r"Levels of one sequence each, same budgets, change nothing",
        kind=Kind.UPPER,
        check=at_most("gates_depth_error"),
        control=at_most("gates_loose_level_error"),
        control_statement="they change nothing whatever their budgets (twice as large)",
        formula=GATES + "hierarchy_gate",
        test=GATE_TESTS + "test_singleton_levels_change_nothing",
    ),
    Claim(
        id="gates-domain",
        source=Source("derived", PAGE + "hierarchy"),
        statement=r"A hierarchy couples sequences, never domains",
        kind=Kind.UPPER,
        check=at_most("gates_cross_domain"),
        control=at_most("gates_cross_trajectory", bound=SEEN),
        control_statement="nor sequences, to 1e-3: block-diagonal as FiberPO",
        formula=GATES + "hierarchy_gate",
        test=GATE_TESTS + "test_gates_by_loops",
    ),
    Claim(
        id="gates-common",
        source=Source("derived", PAGE + "gate-jacobian"),
        statement=r"A move of all tokens alike passes beyond $\varepsilon$, up to the budget",
        kind=Kind.UPPER,
        check=at_most("gates_common"),
        control=at_most("gates_common_clip"),
        control_statement="as it does through PPO's clip with the same ε",
        formula=THEORY + "fiber_jacobian",
        test=JACOBIAN_TESTS + "test_jacobian_by_central_differences",
    ),
    Claim(
        id="gates-rollback",
        source=Source("derived", PAGE + "rollback"),
        statement=r"In rollback the gradient is $-A\,G$ a token, in either channel",
        kind=Kind.IDENTITY,
        check=values_against((("gates_rollback", "gates_rollback_theory"),), tolerance=ROUNDING),
        control=values_against(
            (("gates_rollback", "gates_rollback_restoring"),), tolerance=ROUNDING
        ),
        control_statement="rollback always leads back to the old policy",
        formula=THEORY + "fiber_gradient",
        test=JACOBIAN_TESTS + "test_signs_of_rollback_by_hand",
    ),
    Claim(
        id="gates-pessimistic",
        source=Source("derived", PAGE + "pessimistic-fiberpo"),
        statement=r"Tokens alike: $\min(rA,GA)$ leads back from rollback",
        kind=Kind.IDENTITY,
        check=_positive("gates_restores_pessimistic"),
        control=_positive("gates_restores"),
        control_statement="G A does without the minimum",
        formula=THEORY + "fiber_gradient",
        test=JACOBIAN_TESTS + "test_signs_of_rollback_by_hand",
    ),
    Claim(
        id="gates-surrogate",
        source=Source("derived", PAGE + "pessimistic-fiberpo"),
        statement=r"Pessimistic FiberPO is never above the linear surrogate",
        kind=Kind.UPPER,
        check=at_most("gates_pessimistic_excess"),
        control=at_most("gates_plain_excess"),
        control_statement="nor is FiberPO as published",
        formula=GATES + "fiber_gate",
        test=GATE_TESTS + "test_gates_by_loops",
    ),
    Claim(
        id="gates-long",
        source=Source("derived", PAGE + "rollback"),
        statement=r"For $T\to\infty$ the aggregate is cut to 0 beyond $C$",
        kind=Kind.IDENTITY,
        check=values_against((("gates_long", "gates_long_censored"),), tolerance=ROUNDING),
        control=values_against((("gates_long", "gates_long_clip"),), tolerance=ROUNDING),
        control_statement="it is clipped at ±C, as the paper's text has it",
        formula=THEORY + "censored_aggregate",
        test=JACOBIAN_TESTS + "test_censored_aggregate_is_the_limit",
    ),
)
