"""Claims about stale policy gradients and gradient alignment control, all derived here.

Their numbers are the variables of `alignment.run`.
"""

import numpy as np
import xarray as xr

from boundlab.analysis.datasets import case_labels, column
from boundlab.analysis.evidence import values_against
from boundlab.claims import Check, Claim, Evidence, Kind, Source

THEORY = "boundlab.theory.policy_optimization.alignment."
TESTS = "tests/theory/policy_optimization/test_alignment.py::"
BANDIT = Source("derived", "docs/policy_optimization.md#stale-policy-gradient")
CONTROL = Source("derived", "docs/policy_optimization.md#gradient-alignment-control")
BOUND = Source("derived", "docs/policy_optimization.md#projection-bound")
CONTROL_TEST = "tests/models/test_gac.py::"
ROUNDING = 1e-9


def seed_of(dataset: xr.Dataset, name: str) -> str:
    """The dim of the runs behind a variable."""
    return next(str(dim) for dim in dataset[name].dims if str(dim).endswith("seed"))


def learner(
    name: str,
    who: str,
    reference: float | str,
    compared_with: str | None = None,
    dim: str = "alignment_learner",
) -> Check:
    """Check of one learner's samples against a number or a variable, or (`order`) another learner's."""

    def check(dataset: xr.Dataset) -> Evidence:
        chosen = dataset[[name]].sel({dim: who})
        seed = seed_of(dataset, name)
        samples = column(chosen, name, seed)
        labels = case_labels(chosen, name, seed)
        if compared_with is not None:
            other = column(dataset[[name]].sel({dim: compared_with}), name, seed)
            return Evidence(samples=samples, compared_with=other, labels=labels)
        level = float(dataset[reference]) if isinstance(reference, str) else reference
        return Evidence(samples=samples, reference=level, labels=labels)

    return check


def fresh_cosine(name: str) -> Check:
    """Check of the mean cosine of fresh gradients against the threshold of control."""

    def check(dataset: xr.Dataset) -> Evidence:
        chosen = dataset[[name]]
        if "alignment_learner" in chosen.dims:
            chosen = chosen.sel(alignment_learner="fresh")
        return Evidence(
            samples=column(chosen, name, seed_of(dataset, name)),
            reference=float(dataset["alignment_low"]),
        )

    return check


# Losses are compared by their logarithms: those of learners that diverge span decades.
BOUNDED, DIVERGED = float(np.log10(5.0)), 9.0

CLAIMS = (
    Claim(
        id="alignment-stale",
        source=BANDIT,
        statement=r"Old actions, uncorrected: the gradient is $\nabla J$ at the old $\theta$",
        kind=Kind.IDENTITY,
        check=values_against((("alignment_uncorrected", "alignment_at_old"),), tolerance=ROUNDING),
        control=values_against(
            (("alignment_uncorrected", "alignment_at_new"),), tolerance=ROUNDING
        ),
        control_statement="the gradient at the new θ",
        formula=THEORY + "stale_policy_gradient",
        test=TESTS + "test_stale_gradient_by_enumeration",
    ),
    Claim(
        id="alignment-corrected",
        source=BANDIT,
        statement=r"Weighted by the ratio, without entropy: $\nabla J$ at the new $\theta$",
        kind=Kind.IDENTITY,
        check=values_against(
            (("alignment_corrected", "alignment_plain_at_new"),), tolerance=ROUNDING
        ),
        control=values_against(
            (("alignment_corrected", "alignment_plain_at_old"),), tolerance=ROUNDING
        ),
        control_statement="the gradient at the old θ, as without the ratio",
        formula=THEORY + "stale_policy_gradient",
        test=TESTS + "test_stale_gradient_is_that_of_the_objective",
    ),
    Claim(
        id="alignment-limit",
        source=BANDIT,
        statement=r"Stale ascent leaves the optimum if and only if $\eta>\eta_c$ (3% about it)",
        kind=Kind.IDENTITY,
        check=values_against((("alignment_leaves", "alignment_predicted"),)),
        control=values_against((("alignment_leaves", "alignment_diagonal"),)),
        control_statement="the limit of diag π alone, as if logits moved one at a time",
        formula=THEORY + "bandit_step_limit",
        test=TESTS + "test_step_limit_by_eigenvalues",
    ),
    Claim(
        id="alignment-cosine",
        source=CONTROL,
        statement=r"Kept share $\kappa$: cosine of the update $\kappa c/\sqrt{1-c^2+\kappa^2c^2}$",
        kind=Kind.IDENTITY,
        check=values_against(
            (("alignment_cosine", "alignment_cosine_theory"),), tolerance=ROUNDING
        ),
        control=values_against((("alignment_cosine", "alignment_cosine_low"),), tolerance=ROUNDING),
        control_statement="c_low for κ = c_low/c, too",
        formula=THEORY + "projected_cosine",
        test=TESTS + "test_projection_by_vectors",
    ),
    Claim(
        id="alignment-norm",
        source=CONTROL,
        statement=r"Norm of the update over the gradient's: $\sqrt{1-c^2+\kappa^2c^2}$",
        kind=Kind.IDENTITY,
        check=values_against((("alignment_norm", "alignment_norm_theory"),), tolerance=ROUNDING),
        control=values_against((("alignment_norm", "alignment_norm_added"),), tolerance=ROUNDING),
        control_statement="1 − (1 − κ)|c|, as if lengths added",
        formula=THEORY + "projected_norm",
        test=TESTS + "test_projection_by_vectors",
    ),
    Claim(
        id="alignment-across",
        source=CONTROL,
        statement="What is across the last gradient isn't changed",
        kind=Kind.IDENTITY,
        check=values_against(
            (("alignment_across", "alignment_across_theory"),), tolerance=ROUNDING
        ),
        control=values_against(
            (("alignment_across", "alignment_across_scaled"),), tolerance=ROUNDING
        ),
        control_statement="updates are scaled back to the gradient's norm",
        formula=THEORY + "projected_norm",
        test=TESTS + "test_projection_by_vectors",
    ),
    Claim(
        id="alignment-leaves",
        source=CONTROL,
        statement="The cosine is that of all leaves as one vector",
        kind=Kind.IDENTITY,
        check=values_against((("alignment_seen", "alignment_wanted"),), tolerance=ROUNDING),
        control=values_against((("alignment_seen", "alignment_leaf_mean"),), tolerance=ROUNDING),
        control_statement="the mean of the leaves' own cosines",
        formula="boundlab.models.gac.gac",
        test=CONTROL_TEST + "test_walk_by_hand",
    ),
    Claim(
        id="alignment-bound",
        source=BOUND,
        statement=r"Non-convex, delays to 9: $\min\|\nabla f\|^2\leq 2(f_0-f^*)/(\kappa\eta T)$",
        kind=Kind.UPPER,
        check=values_against(
            (
                ("alignment_least", "alignment_bound"),
                ("alignment_plain_least", "alignment_plain_bound"),
            )
        ),
        control=values_against((("alignment_least", "alignment_bound_dropped"),)),
        control_statement="the bound without κ, as if projecting cost nothing",
        formula=THEORY + "projection_bound",
        test=TESTS + "test_projection_bound_on_non_convex_runs",
    ),
    Claim(
        id="alignment-bandit-stale",
        source=BANDIT,
        statement=r"Bandit, delay 8, $\eta=1.5\eta_c$: a gap above .03 is left",
        kind=Kind.LOWER,
        check=learner("alignment_gap_capped", "stale", 0.03),
        control=learner("alignment_gap_capped", "fresh", 0.03),
        control_statement="the step is too long whatever the delay: with fresh gradients, too",
        formula=THEORY + "bandit_step_limit",
        test=TESTS + "test_step_limit_by_eigenvalues",
    ),
    Claim(
        id="alignment-bandit-control",
        source=CONTROL,
        statement=r"There alignment control closes the gap below $10^{-4}$",
        kind=Kind.UPPER,
        check=learner("alignment_gap_tail", "controlled", 1e-4),
        control=learner("alignment_gap_capped", "stale", 1e-4),
        control_statement="it closes by itself",
        formula="boundlab.models.gac.gac",
        test=CONTROL_TEST + "test_walk_by_hand",
    ),
    Claim(
        id="alignment-quadratic-stale",
        source=CONTROL,
        statement=r"Quadratic, $\eta=1.3\eta_c$: stale loss above $10^9$ by step 1,500",
        kind=Kind.LOWER,
        check=learner("alignment_log_grown", "stale", DIVERGED),
        control=learner("alignment_log_grown", "fresh", DIVERGED),
        control_statement="the step is too long whatever the delay: with fresh gradients, too",
        formula="boundlab.theory.policy_optimization.staleness.delayed_sgd_limit",
        test="tests/theory/policy_optimization/test_staleness.py::test_limit_by_companion_eigenvalues",
    ),
    Claim(
        id="alignment-quadratic-control",
        source=CONTROL,
        statement="There control keeps the loss below 5",
        kind=Kind.UPPER,
        check=learner("alignment_log_tail", "controlled", BOUNDED),
        control=learner("alignment_log_tail", "stale", BOUNDED),
        control_statement="it stays there by itself",
        formula="boundlab.models.gac.gac",
        test=CONTROL_TEST + "test_walk_by_hand",
    ),
    Claim(
        id="alignment-not-fresh",
        source=CONTROL,
        statement="But it isn't as good as fresh: more than twice the loss",
        kind=Kind.LOWER,
        check=learner("alignment_excess", "controlled", 2.0),
        control=learner("alignment_excess", "fresh", 2.0),
        control_statement="the closed form of fresh gradients is off by that factor itself",
        formula="boundlab.theory.policy_optimization.staleness.parameter_variance",
        test="tests/theory/policy_optimization/test_staleness.py::test_moments_by_lyapunov",
    ),
    Claim(
        id="alignment-short-step",
        source=CONTROL,
        statement=r"Half of $\eta_c$ without control ends lower than $1.3\eta_c$ with it",
        kind=Kind.ORDER,
        check=learner("alignment_log_tail", "short", 0.0, "controlled"),
        control=learner("alignment_log_tail", "stale", 0.0, "controlled"),
        control_statement="any step without control does",
        formula="boundlab.theory.policy_optimization.staleness.delayed_sgd_limit",
        test="tests/theory/policy_optimization/test_staleness.py::test_limit_by_companion_eigenvalues",
    ),
    Claim(
        id="alignment-no-detector",
        source=CONTROL,
        statement=r"Noise that vanishes at the optimum: fresh gradients have $c>c_{low}$",
        kind=Kind.LOWER,
        check=fresh_cosine("alignment_bandit_cosine"),
        control=fresh_cosine("alignment_long_cosine"),
        control_statement="under constant noise, too: high cosines mean delay nowhere",
        formula="boundlab.models.softmax_bandit.stale_bandit",
        test="tests/models/test_softmax_bandit.py::test_noise_vanishes_at_the_optimum",
    ),
    Claim(
        id="alignment-deadlock",
        source=CONTROL,
        statement=r"Far away, $c_{high}=.3$, no end to skips: all but the first are skipped",
        kind=Kind.IDENTITY,
        check=values_against((("alignment_frozen", "alignment_all"),)),
        control=values_against((("alignment_frozen", "alignment_start_only"),)),
        control_statement="only those of gradients of the start",
        formula="boundlab.models.gac.gac",
        test=CONTROL_TEST + "test_walk_by_hand",
    ),
    Claim(
        id="alignment-deadlock-ends",
        source=CONTROL,
        statement="At most five skips in a row: the loss halves",
        kind=Kind.UPPER,
        check=learner("alignment_left", "five in a row", 0.5, dim="alignment_skipping"),
        control=learner("alignment_left", "no end", 0.5, dim="alignment_skipping"),
        control_statement="it halves without an end to skips",
        formula="boundlab.models.gac.gac",
        test=CONTROL_TEST + "test_walk_by_hand",
    ),
)
