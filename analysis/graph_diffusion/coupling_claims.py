"""Claims about coupled systems; their numbers are the variables of `coupling.run`."""

import xarray as xr

from boundlab.analysis.datasets import case_labels, column
from boundlab.analysis.evidence import means_against, values_against
from boundlab.claims import Check, Claim, Evidence, Kind, Source

THEORY = "boundlab.theory.graph_diffusion."
SYSTEMS = "tests/theory/graph_diffusion/test_systems.py::"
DRIFT = "tests/theory/graph_diffusion/test_coupled_drift.py::"
COUPLED = Source("derived", "docs/graph_diffusion.md#coupled-systems")
PRICE = Source("derived", "docs/graph_diffusion.md#price-of-decoupling")
COUPLED_DRIFT = Source("derived", "docs/graph_diffusion.md#coupled-drift")
# Relative rounding of divergences and of their sums.
ROUNDING = 1e-8
# What the finest grid leaves of the KL beside the mutual information, relative.
FINEST = 5e-3
# Relative error of the late rate, where faster modes have not quite died out.
LATE_ERROR = 1e-3


def _error_of(sampler: str) -> Check:
    """Exact KL of one sampler under the bound for joint scores."""

    def check(dataset: xr.Dataset) -> Evidence:
        part = dataset.sel(coupling_sampler=sampler)
        return Evidence(
            exact=column(part, "coupling_kl"),
            reference=column(part, "coupling_bound"),
            tolerance=ROUNDING,
            labels=case_labels(part, "coupling_bound"),
        )

    return check


def _price(*, with_information: bool) -> Check:
    """KL with marginal scores as a sum, at every number of steps."""

    def check(dataset: xr.Dataset) -> Evidence:
        part = dataset.sel(coupling_sampler="marginal")
        information = float(dataset["coupling_information"]) if with_information else 0.0
        return Evidence(
            exact=column(part, "coupling_kl"),
            reference=column(part, "coupling_kl_of_blocks") + information,
            tolerance=ROUNDING,
            labels=case_labels(part, "coupling_bound"),
        )

    return check


def _variance(order: str, theory: str) -> Check:
    return means_against(f"coupling_variance_{order}", f"coupling_theory_{theory}", "coupling_seed")


CLAIMS = (
    Claim(
        id="coupling-law",
        source=COUPLED,
        statement=r"Coupled sampler: drawn variances are those of $V\to AVA^\top+Q$",
        kind=Kind.EQUAL,
        check=_variance("jacobi", "joint_jacobi"),
        control=_variance("jacobi", "marginal_jacobi"),
        control_statement="the recursion with marginal scores",
        formula=THEORY + "joint_reverse",
        test=SYSTEMS + "test_recursion_by_one_linear_map",
    ),
    Claim(
        id="coupling-order",
        source=COUPLED,
        statement=r"Gauss-Seidel: the structure's score sees the new features",
        kind=Kind.EQUAL,
        check=_variance("gauss_seidel", "joint_gauss_seidel"),
        control=_variance("gauss_seidel", "joint_jacobi"),
        control_statement="both blocks step from the old pair",
        formula=THEORY + "joint_reverse",
        test=SYSTEMS + "test_recursion_by_one_linear_map",
    ),
    Claim(
        id="coupling-bound",
        source=Source("derived", "docs/graph_diffusion.md#system-theorem"),
        statement=r"Joint scores: $KL\leq KL(q_T\,\|\,\gamma)+D_X+D_A$",
        kind=Kind.UPPER,
        check=_error_of("joint, Jacobi"),
        control=_error_of("marginal"),
        control_statement="the same bound for marginal scores",
        formula=THEORY + "system_bound",
        test=SYSTEMS + "test_terms_by_adaptive_quadrature",
    ),
    Claim(
        id="coupling-price",
        source=PRICE,
        statement=r"Marginal scores: $KL=I(X_\delta;A_\delta)+KL_X+KL_A$ at every $N$",
        kind=Kind.IDENTITY,
        check=_price(with_information=True),
        control=_price(with_information=False),
        control_statement="the errors of the two blocks add up to it",
        formula=THEORY + "mutual_information",
        test=SYSTEMS + "test_marginal_scores_cost_the_mutual_information",
    ),
    Claim(
        id="coupling-limit",
        source=PRICE,
        statement=r"Marginal scores: $KL\to I(X;A)$ as the steps shrink",
        kind=Kind.IDENTITY,
        check=values_against((("coupling_price", "coupling_price_theory"),), tolerance=FINEST),
        control=values_against((("coupling_price", "coupling_price_weak"),), tolerance=FINEST),
        control_statement="½Σρ², what weak correlations cost",
        formula=THEORY + "mutual_information",
        test=SYSTEMS + "test_marginal_scores_cost_the_mutual_information",
    ),
    Claim(
        id="coupling-drift-rate",
        source=COUPLED_DRIFT,
        statement=r"Coupled drift: $KL(q_t\,\|\,\gamma)$ falls as $e^{-4(1-k)t}$",
        kind=Kind.IDENTITY,
        check=values_against((("coupling_rate", "coupling_rate_theory"),), tolerance=LATE_ERROR),
        control=values_against(
            (("coupling_rate", "coupling_rate_decoupled"),), tolerance=LATE_ERROR
        ),
        control_statement="as without coupling, e⁻⁴ᵗ",
        formula=THEORY + "coupled_drift_covariance",
        test=DRIFT + "test_covariance_by_matrix_exponentials",
    ),
    Claim(
        id="coupling-drift-law",
        source=COUPLED_DRIFT,
        statement=r"Coupled drift: drawn variances are those of the recursion",
        kind=Kind.EQUAL,
        check=_variance("drift", "drift"),
        control=_variance("drift", "no_drift"),
        control_statement="the recursion without coupling",
        formula=THEORY + "coupled_drift_reverse",
        test=DRIFT + "test_sampler_by_matrix_exponentials",
    ),
    Claim(
        id="coupling-drift-bound",
        source=COUPLED_DRIFT,
        statement=r"Coupled drift: $KL\leq KL(q_T\,\|\,\gamma)+\int\mathrm{E}\,d^\top K d\,dt$",
        kind=Kind.UPPER,
        check=values_against((("coupling_drift_kl", "coupling_drift_bound"),), tolerance=ROUNDING),
        control=values_against(
            (("coupling_drift_kl", "coupling_drift_initialization"),), tolerance=ROUNDING
        ),
        control_statement="the initialisation term covers the error alone",
        formula=THEORY + "coupled_drift_bound",
        test=DRIFT + "test_bound_by_adaptive_quadrature",
    ),
)
