"""Claims about the ladder of errors and bounds; their numbers are the variables of `ladder.run`."""

import numpy as np
import xarray as xr

from boundlab.analysis.datasets import case_labels, column
from boundlab.analysis.evidence import means_against, values_against
from boundlab.claims import Check, Claim, Evidence, Kind, Source

THEORY = "boundlab.theory.graph_diffusion."
TESTS = "tests/theory/graph_diffusion/"
SCHEMES = TESTS + "test_schemes.py::"
TERMS = TESTS + "test_discretization.py::"
STARTS = TESTS + "test_initialization.py::"
BOUNDS = TESTS + "test_bounds.py::"
PAGE = "docs/graph_diffusion.md#"
DISCRETISATION = Source("derived", PAGE + "discretisation")
INITIALISATION = Source("derived", PAGE + "initialisation")
SCORE_ERROR = Source("derived", PAGE + "score-error")
# Relative rounding of sums of many terms.
ROUNDING = 1e-9
# Relative error of 40-node quadrature, and of the entropies' difference.
QUADRATURE = 1e-11
# Relative error of D by its leading order at 1,000 steps.
LEADING = 2e-3
# Relative error of many small steps beside no steps at all.
FINE = 1e-3
# Relative error of an exponent read off two numbers of steps: KL, and bound.
KL_ORDER, BOUND_ORDER = 0.1, 0.03
# Least number of steps at which exponents are read off.
LATE = 200


def _case_bound(scheme: str, measured: str, bound: str) -> Check:
    """Exact values of one scheme under a bound, over the grid of cases."""

    def check(dataset: xr.Dataset) -> Evidence:
        part = dataset.sel(ladder_bounded=scheme)
        exact, reference = column(part, measured), column(part, bound)
        stated = ~np.isnan(reference)
        labels = case_labels(part, measured)
        return Evidence(
            exact=exact[stated],
            reference=reference[stated],
            tolerance=ROUNDING,
            labels=tuple(label for label, kept in zip(labels, stated, strict=True) if kept),
        )

    return check


def _exponent(name: str, claimed: float, tolerance: float, **chosen: str) -> Check:
    """Exponent of `name` in 1/N between neighbouring numbers of steps, from `LATE` on."""

    def check(dataset: xr.Dataset) -> Evidence:
        part = dataset.sel(chosen)
        part = part.isel(ladder_steps=np.flatnonzero(part["ladder_steps"].values >= LATE))
        steps = part["ladder_steps"].values
        values = part[name].transpose("ladder_steps", "ladder_eigenvalue").values
        fitted = -np.diff(np.log(values), axis=0) / np.diff(np.log(steps))[:, None]
        labels = [
            f"N {n}, λ {lam:g}" for n in steps[:-1] for lam in part["ladder_eigenvalue"].values
        ]
        return Evidence(
            exact=fitted.ravel(), reference=claimed, tolerance=tolerance, labels=tuple(labels)
        )

    return check


def _law(scheme: str, samples: str, reference: str) -> Check:
    against = means_against(samples, reference, "ladder_seed")
    return lambda dataset: against(dataset.sel(ladder_scheme=[scheme]))


def _sampled(short: str, scheme: str, words: str, step: str, other: str) -> Claim:
    """Drawn variances of one scheme; the control is another scheme's recursion."""
    return Claim(
        id=f"ladder-law-{short}",
        source=DISCRETISATION,
        statement=rf"{words}, variance $u'=a^2u+Q$, {step}",
        kind=Kind.EQUAL,
        check=_law(scheme, "ladder_variance", "ladder_variance_theory"),
        control=_law(scheme, "ladder_variance", "ladder_variance_other"),
        control_statement=f"the recursion of {other}",
        formula=THEORY + "reverse_moments",
        test=SCHEMES + "test_moments_by_one_linear_map",
    )


def _under(
    name: str,
    source: Source,
    statement: str,
    check: Check,
    control: tuple[Check, str],
    formula: str,
    test: str,
) -> Claim:
    return Claim(
        id=f"ladder-{name}",
        source=source,
        statement=statement,
        kind=Kind.UPPER,
        check=check,
        control=control[0],
        control_statement=control[1],
        formula=THEORY + formula,
        test=test,
    )


def _same(
    name: str,
    source: Source,
    statement: str,
    pair: tuple[str, str],
    wrong: tuple[str, str],
    tolerance: float,
    formula: str,
    test: str,
) -> Claim:
    """`pair`: value and reference; `wrong`: the control's reference and its words."""
    return Claim(
        id=f"ladder-{name}",
        source=source,
        statement=statement,
        kind=Kind.IDENTITY,
        check=values_against((pair,), tolerance=tolerance),
        control=values_against(((pair[0], wrong[0]),), tolerance=tolerance),
        control_statement=wrong[1],
        formula=THEORY + formula,
        test=test,
    )


def _order(
    name: str,
    statement: str,
    variable: str,
    exponents: tuple[float, float],
    wrong: str,
    tolerance: float,
    formula: str,
    **chosen: str,
) -> Claim:
    """`exponents`: of the claim and of its control."""
    return Claim(
        id=f"ladder-order-{name}",
        source=DISCRETISATION,
        statement=statement,
        kind=Kind.IDENTITY,
        check=_exponent(variable, exponents[0], tolerance, **chosen),
        control=_exponent(variable, exponents[1], tolerance, **chosen),
        control_statement=wrong,
        formula=THEORY + formula,
        test=SCHEMES + "test_published_kl_of_three_schemes",
    )


EI, EM = "exponential_integrator", "euler_maruyama"
DOMINANCE = BOUNDS + "test_exact_kl_is_below_the_path_bound"
CLAIMS = (
    _sampled("ei", EI, "Exponential integrator", r"$a=e^h-2(e^h-1)/v$", "the probability flow"),
    _sampled("em", EM, "Euler-Maruyama", r"$a=1+h-2h/v$", "the exponential integrator"),
    _sampled(
        "ancestral",
        "ancestral",
        "Ancestral",
        r"$Q=(1-\alpha)\sigma_t^2/\sigma_\tau^2$",
        "Euler–Maruyama",
    ),
    _sampled("flow", "probability_flow", "Probability flow", r"$Q=0$", "the ancestral sampler"),
    Claim(
        id="ladder-law-mean",
        source=SCORE_ERROR,
        statement=r"Score $(1+e)s+b$: drawn means are those of the recursion",
        kind=Kind.EQUAL,
        check=means_against("ladder_mean", "ladder_mean_theory", "ladder_seed"),
        control=means_against("ladder_mean", "ladder_mean_plain", "ladder_seed"),
        control_statement="the recursion with the exact score",
        formula=THEORY + "reverse_moments",
        test=SCHEMES + "test_moments_by_one_linear_map",
    ),
    _under(
        "bound",
        DISCRETISATION,
        r"Exponential integrator: $KL\leq KL(q_T\,\|\,\gamma)+D_{EI}$",
        _case_bound(EI, "ladder_case_kl", "ladder_case_bound"),
        (_case_bound(EI, "ladder_case_kl", "ladder_case_half"), "half of the path term: ½ twice"),
        "discretization_ei",
        DOMINANCE,
    ),
    _under(
        "bound-em",
        DISCRETISATION,
        r"Euler-Maruyama: $KL\leq KL(q_T\,\|\,\gamma)+D_{EM}$",
        _case_bound(EM, "ladder_case_kl", "ladder_case_bound"),
        (
            _case_bound(EM, "ladder_case_kl", "ladder_case_swapped"),
            "the exponential integrator's term covers Euler–Maruyama",
        ),
        "discretization_em",
        DOMINANCE,
    ),
    _under(
        "bound-score-error",
        SCORE_ERROR,
        r"Score $(1+e)s+b$, mean $\mu_0$: $KL\leq KL(q_T\,\|\,\gamma)+D_{e,b}$",
        _case_bound(EI, "ladder_error_kl", "ladder_error_bound"),
        (_case_bound(EI, "ladder_error_kl", "ladder_error_half"), "half of the score error's part"),
        "discretization_with_score_error",
        DOMINANCE,
    ),
    _under(
        "lipschitz",
        DISCRETISATION,
        r"Equal steps: $D_{EI}\leq(L^2h+Lh^2/3)(T-\delta)$, $L=\max(1,1/\lambda)$",
        _case_bound(EI, "ladder_case_path", "ladder_case_lipschitz"),
        (_case_bound(EI, "ladder_case_path", "ladder_case_unit_lipschitz"), "the bound with L = 1"),
        "bound_lipschitz",
        BOUNDS + "test_lipschitz_bound_is_above_the_exact_term",
    ),
    _order(
        "ei",
        r"Exponential integrator: the exact KL falls as $N^{-2}$",
        "ladder_kl",
        (2.0, 1.0),
        "it falls as 1/N, as its bound does",
        KL_ORDER,
        "reverse_moments",
        ladder_scheme=EI,
    ),
    _order(
        "em",
        r"Euler-Maruyama: the exact KL falls as $N^{-2}$",
        "ladder_kl",
        (2.0, 1.0),
        "it falls as 1/N, as its bound does",
        KL_ORDER,
        "reverse_moments",
        ladder_scheme=EM,
    ),
    _order(
        "w2",
        r"Exponential integrator: $W_2$ falls as $N^{-1}$",
        "ladder_w2",
        (1.0, 0.5),
        "it falls as 1/√N, as the root of the path bound does",
        BOUND_ORDER,
        "gaussian_w2",
        ladder_scheme=EI,
    ),
    _order(
        "path",
        r"The path bound's $D_{EI}$ falls as $N^{-1}$ only",
        "ladder_path",
        (1.0, 2.0),
        "it falls as 1/N², as the exact KL does",
        BOUND_ORDER,
        "discretization_ei",
        ladder_bounded=EI,
    ),
    _same(
        "closed-form",
        DISCRETISATION,
        r"$D_{EI}$ in closed form is its 40-node quadrature",
        ("ladder_closed_ei", "ladder_quadrature_ei"),
        ("ladder_quadrature_em", "the quadrature of Euler–Maruyama"),
        QUADRATURE,
        "discretization_ei",
        TERMS + "test_exponential_integrator_by_quadrature",
    ),
    _same(
        "closed-form-em",
        DISCRETISATION,
        r"$D_{EM}$ in closed form is its 40-node quadrature",
        ("ladder_closed_em", "ladder_quadrature_em"),
        ("ladder_quadrature_ei", "the quadrature of the exponential integrator"),
        QUADRATURE,
        "discretization_em",
        TERMS + "test_euler_maruyama_by_quadrature",
    ),
    _same(
        "entropy",
        Source("derived", PAGE + "contraction-identity"),
        r"$D_{EI}=H(q_T)-H(q_\delta)+d(T-\delta)-\sum c(h_k)J(t_k)$",
        ("ladder_by_entropy", "ladder_by_modes"),
        ("ladder_by_modes_em", "the term of Euler–Maruyama"),
        QUADRATURE,
        "bound_entropy_fisher",
        BOUNDS + "test_entropy_and_fisher_of_a_two_point_law",
    ),
    _same(
        "leading-order",
        DISCRETISATION,
        r"Small steps: $D_{EI}=h\int v^{-2}$",
        ("ladder_fine", "ladder_leading"),
        ("ladder_flat", "h(T − δ), with 1 for 1/v"),
        LEADING,
        "integrated_squared_precision",
        TERMS + "test_leading_order",
    ),
    _same(
        "fixed-point",
        DISCRETISATION,
        r"$\lambda=1$: variance $(e^h+1)/(3-e^h)$ (EI), $2/(2-h)$ (EM)",
        ("ladder_limit", "ladder_fixed_point"),
        ("ladder_other_fixed_point", "the fixed point of the other scheme"),
        ROUNDING,
        "reverse_moments",
        SCHEMES + "test_fixed_points_at_unit_variance",
    ),
    _same(
        "sde-start",
        INITIALISATION,
        r"Reverse SDE from $\gamma$: variance $v(\delta)+(1-v_T)e^{-2(T-\delta)}(v_\delta/v_T)^2$",
        ("ladder_sde_variance", "ladder_sde_theory"),
        ("ladder_flow_theory", "the probability flow's variance v(δ)/v(T)"),
        FINE,
        "reverse_sde_variance",
        SCHEMES + "test_reverse_equations_without_steps",
    ),
    _same(
        "flow-start",
        INITIALISATION,
        r"The probability flow keeps all of its start's KL",
        ("ladder_flow_kl", "ladder_start_kl"),
        ("ladder_sde_kl", "it forgets its start as the reverse SDE does"),
        ROUNDING,
        "probability_flow_variance",
        SCHEMES + "test_flow_keeps_the_kl_of_its_start",
    ),
    _same(
        "bias",
        SCORE_ERROR,
        r"Score bias $b$, $\lambda=1$: $KL=2b^2(1-e^{-(T-\delta)})^2$",
        ("ladder_bias_kl", "ladder_bias_theory"),
        ("ladder_bias_bound", "the bound b²(T − δ) is attained"),
        1e-2,
        "reverse_moments",
        SCHEMES + "test_moments_by_one_linear_map",
    ),
    _under(
        "bias-tight",
        SCORE_ERROR,
        r"Score bias $b$, $\lambda=1$: $KL\leq.82\,b^2(T-\delta)$, nearly attained",
        values_against((("ladder_bias_kl", "ladder_bias_bound"),), factor=0.82),
        (
            values_against((("ladder_bias_kl", "ladder_bias_bound"),), factor=0.5),
            "KL ≤ ½b²(T − δ): the ½ of Girsanov's theorem twice",
        ),
        "discretization_with_score_error",
        TERMS + "test_score_error_by_quadrature",
    ),
    _under(
        "start-universal",
        INITIALISATION,
        r"Any law: $KL(q_T\,\|\,\gamma)\leq\frac{1}{2}[e^{-B}(E|Z|^2-d)-d\log(1-e^{-B})]$",
        values_against((("ladder_law_kl", "ladder_law_bound"),)),
        (
            values_against((("ladder_law_kl", "ladder_law_gaussian"),)),
            "the KL of a Gaussian with the same two moments",
        ),
        "initialization_kl_universal",
        STARTS + "test_universal_bound_and_chi2_on_discrete_laws",
    ),
    _same(
        "start-chi2",
        INITIALISATION,
        r"$\chi^2(q_T\,\|\,\gamma)=\sum_j e^{-jB}(E\,He_j)^2/j!$",
        ("ladder_law_chi2", "ladder_law_series"),
        ("ladder_law_short_series", "mean and variance alone: two terms"),
        1e-8,
        "initialization_chi2",
        STARTS + "test_universal_bound_and_chi2_on_discrete_laws",
    ),
    _under(
        "start-log-chi2",
        INITIALISATION,
        r"$KL(q_T\,\|\,\gamma)\leq\log(1+\chi^2)$",
        values_against((("ladder_law_kl", "ladder_law_log_chi2"),)),
        (
            values_against((("ladder_law_kl", "ladder_law_gaussian"),)),
            "the KL of a Gaussian with the same two moments",
        ),
        "initialization_chi2",
        STARTS + "test_universal_bound_and_chi2_on_discrete_laws",
    ),
)
