"""Claims about the learning curves of SGD and ridge."""

from boundlab.analysis.evidence import means_against
from boundlab.claims import Check, Claim, Kind, Source

THEORY = "boundlab.theory.excess_risk"
TESTS = "tests/theory/excess_risk"


def _regularized(check: Check) -> Check:
    """The same check on the positive ridges alone."""
    return lambda dataset: check(dataset.sel(curves_ridge=dataset.curves_ridge > 0))


def _least_squares(check: Check) -> Check:
    """The same check on ordinary least squares alone."""
    return lambda dataset: check(dataset.sel(curves_ridge=0.0))


SGD = f"{THEORY}.sgd"
RIDGE = f"{THEORY}.ridge"
CLAIMS = (
    Claim(
        id="sgd-exact",
        source=Source("derived", "docs/excess_risk.md#exact-risk-of-sgd"),
        statement=r"$E\,R(\bar\theta)=\sum_i \mu_i n^{-2}\sum_{t\geq s} w_i(t)\,s_i(t)$",
        kind=Kind.EQUAL,
        check=means_against("curves_sgd_risk", "curves_sgd_exact"),
        control=means_against("curves_sgd_risk", "curves_sgd_exact", factor=0.5),
        control_statement="half of it (the excess of the ½-loss)",
        formula=f"{SGD}.tail_averaged_risk",
        test=f"{TESTS}/test_sgd_exact.py::test_full_matrices_and_all_pairs_of_iterates",
    ),
    Claim(
        id="sgd-bias",
        source=Source("derived", "docs/excess_risk.md#exact-risk-of-sgd"),
        statement=r"noise-free risk: the bias of all directions, head and tail",
        kind=Kind.EQUAL,
        check=means_against("curves_bias_risk", "curves_bias_exact"),
        control=means_against("curves_bias_risk", "curves_head_bias"),
        control_statement="the tail's term dropped",
        formula=f"{SGD}.tail_averaged_risk",
        test=f"{TESTS}/test_sgd_exact.py::test_plain_loop",
    ),
    Claim(
        id="sgd-variance",
        source=Source("derived", "docs/excess_risk.md#exact-risk-of-sgd"),
        statement=r"risk from $\theta_0=\theta^*$: the variance, by how far each $\mu_i$ is learnt",
        kind=Kind.EQUAL,
        check=means_against("curves_variance_risk", "curves_variance_exact"),
        control=means_against("curves_variance_risk", "curves_unfiltered_variance"),
        control_statement="2σ²/N for every direction, learnt or not",
        formula=f"{SGD}.tail_averaged_risk",
        test=f"{TESTS}/test_sgd_exact.py::test_plain_loop",
    ),
    Claim(
        id="sgd-upper",
        source=Source("derived", "docs/excess_risk.md#bounds-for-sgd"),
        statement=r"$E\,R \leq \sum_i p_i\varphi_i^2 + (\sigma^2+2\|\theta^*\|_M^2)\,D/(1-h)$",
        kind=Kind.UPPER,
        check=means_against("curves_sgd_risk", "curves_sgd_upper"),
        control=means_against("curves_sgd_risk", "curves_sgd_filtered"),
        control_statement="the filtered signal alone, D dropped",
        formula=f"{SGD}.risk_bounds",
        test=f"{TESTS}/test_sgd_bounds.py::test_two_sided_bound_parts_by_hand",
    ),
    Claim(
        id="sgd-lower",
        source=Source("derived", "docs/excess_risk.md#bounds-for-sgd"),
        statement=r"$E\,R \geq \sum_i p_i\varphi_i^2 + \sigma^2 V$",
        kind=Kind.LOWER,
        check=means_against("curves_sgd_risk", "curves_sgd_lower"),
        control=means_against("curves_sgd_risk", "curves_signal_power"),
        control_statement="the whole signal, nothing learnt",
        formula=f"{SGD}.risk_bounds",
        test=f"{TESTS}/test_sgd_bounds.py::test_two_sided_bound_parts_by_hand",
    ),
    Claim(
        id="published-upper",
        source=Source("zou2023benign", "Theorem 2.1 on R, reconstructed"),
        statement=r"average of all iterates: $E\,R \leq 4\,(EB+EV)$, Gaussian $\alpha=3$",
        kind=Kind.UPPER,
        check=means_against("curves_average_risk", "curves_published_upper"),
        control=means_against("curves_average_risk", "curves_published_head_only"),
        control_statement="the tail of the spectrum ignored",
        formula=f"{SGD}.zou_bounds",
        test=f"{TESTS}/test_sgd_bounds.py::test_published_bounds_term_by_term",
    ),
    Claim(
        id="published-lower",
        source=Source("zou2023benign", "Theorem 2.2 on R, reconstructed"),
        statement=r"all iterates averaged: $E\,R\geq$ the form with constants 1/100, 1/50",
        kind=Kind.LOWER,
        check=means_against("curves_average_risk", "curves_published_lower"),
        control=means_against("curves_average_risk", "curves_published_no_constants"),
        control_statement="the same without its constants",
        formula=f"{SGD}.zou_bounds",
        test=f"{TESTS}/test_sgd_bounds.py::test_published_bounds_term_by_term",
    ),
    Claim(
        id="ridge-equivalent",
        source=Source("simon2023eigenlearning", "deterministic equivalent, reconstructed"),
        statement=r"$E\,R \approx E_0\sum_i(\kappa/(\mu_i+\kappa))^2p_i + \sigma^2(E_0-1)$ (2 %)",
        kind=Kind.EQUAL,
        check=_regularized(
            means_against(
                "curves_ridge_risk", "curves_ridge_equivalent", seed="design", tolerance=0.02
            )
        ),
        control=_regularized(
            means_against(
                "curves_ridge_risk", "curves_ridge_normalized", seed="design", tolerance=0.02
            )
        ),
        control_statement="λ taken for Nλ",
        formula=f"{RIDGE}.risk",
        test=f"{TESTS}/test_ridge_monte_carlo.py::test_total_risk",
    ),
    Claim(
        id="least-squares",
        source=Source("derived", "docs/excess_risk.md#least-squares-ignores-the-graph"),
        statement=r"$\lambda=0$, $N\geq 2d$: $E\,R=\sigma^2 d/(N-d-1)$ whatever the graph",
        kind=Kind.EQUAL,
        check=_least_squares(means_against("curves_ridge_risk", "curves_ols", seed="design")),
        control=_least_squares(
            means_against("curves_ridge_risk", "curves_ols_naive", seed="design")
        ),
        control_statement="σ²d/N",
        formula=f"{RIDGE}.ols_risk",
        test=f"{TESTS}/test_ridge.py::test_ordinary_least_squares",
    ),
    Claim(
        id="ridge-upper",
        source=Source("su2025interplay", "form of Theorem 4.2, reconstructed; constants derived"),
        statement=r"$E\,R \leq E_0(\kappa^2\|\theta^*\|^2_{M^{-1}_{0:K}}+\|\theta^*\|^2_{M_{K:\infty}}"
        r"+\sigma^2(K+\kappa^{-2}\sum_{i>K}\mu_i^2)/N)$",
        kind=Kind.UPPER,
        check=_regularized(means_against("curves_ridge_risk", "curves_ridge_upper", seed="design")),
        control=_regularized(
            means_against("curves_ridge_risk", "curves_ridge_lower", seed="design")
        ),
        control_statement="a quarter of it",
        formula=f"{RIDGE}.risk_bounds",
        test=f"{TESTS}/test_ridge.py::test_bounds_hold_and_are_head_and_tail_sums",
    ),
    Claim(
        id="ridge-lower",
        source=Source("su2025interplay", "form of Theorem 4.2, reconstructed; constants derived"),
        statement=r"$E\,R$ is at least a quarter of the upper side",
        kind=Kind.LOWER,
        check=_regularized(means_against("curves_ridge_risk", "curves_ridge_lower", seed="design")),
        control=_regularized(
            means_against("curves_ridge_risk", "curves_ridge_upper", seed="design")
        ),
        control_statement="the upper side itself",
        formula=f"{RIDGE}.risk_bounds",
        test=f"{TESTS}/test_ridge.py::test_bounds_hold_and_are_head_and_tail_sums",
    ),
)
