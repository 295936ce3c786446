"""Ridge regression on dependent rows: a graph mixes i.i.d. node features (the *node* reading).

F = G Z H^{½} with Z of independent N(0, 1) entries: every node is one sample, y = Fθ* + ε with
independent node noise, the test point has covariance H. Symbols: c_v eigenvalues of the row
covariance C = GGᵀ, h_j of H, t the rows' own cut (κ̃), η the effective number of samples.

    q = Σ_j x_j,  x_j = ηh_j/(ηh_j+λ);    Σ_v c_v/(c_v+t) = q;    η = t q.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from boundlab.checks import check_number, check_shape
from boundlab.precision import float64
from boundlab.theory.excess_risk import _arguments as arguments
from boundlab.theory.excess_risk.equivalent import filters, log_or_lowest, root, sum_in_parts
from boundlab.theory.excess_risk.profiles import RiskProfile
from boundlab.typing import Numbers, Scalar


@float64
def risk_correlated(
    row_spectrum: Numbers,
    feature_spectrum: Numbers,
    theta_sq: Numbers,
    noise_variance: Scalar,
    ridge: Scalar,
) -> RiskProfile:
    """Excess risk R of ridge regression whose n rows are correlated, one term a feature direction.

    F = G Z H^{½}, Z (n, p) of independent N(0, 1); y = Fθ* + ε. Of a number t > 0 let

        η = t Σ_v c_v/(c_v+t),    x_j = ηh_j/(ηh_j+λ),

    η the effective number of samples and x_j the learnt fraction of direction j. The left side of

        Σ_j x_j = Σ_v c_v/(c_v+t)

    grows with t and the right side falls: t is the one root. With df1 = Σ_j x_j, df2 = Σ_j x_j²,
    D = [Σ_v c_v²/(c_v+t)²]/[Σ_v c_v/(c_v+t)²], W = 1/(η + D(df1−df2)), b_j = (1−x_j)² h_j θ*_j²:

        bias_j = b_j + D W x_j² Σ_k b_k,    var_j = σ² W x_j².

    For C = I this is `risk` with μ = h, N = n (then D = 1, η = n − df1, W = 1/(n−df2)).

    Args:
        row_spectrum: c_v, eigenvalues of C = GGᵀ, (n,), ≥ 0, one a sample, no 1/n. The number of
            samples is its length; rows without variance, c_v = 0, don't count.
        feature_spectrum: h_j, eigenvalues of the feature covariance H, (p,), ≥ 0.
        theta_sq: squared components of θ* in H's eigenbasis, (p,), ≥ 0.
        noise_variance: σ² ≥ 0, of each node's label, not mixed by the graph.
        ridge: λ > 0, un-normalised: ‖Fθ−y‖² + λ‖θ‖².

    Returns:
        Bias and variance, both (p,), R = E‖θ̂−θ*‖²_H without ½, test point independent of F.

    Raises:
        ValueError: an argument is out of range, or a spectrum is all zero; it is named.

    Source: derived; same object as atanasov2024risk.

    """
    rows = arguments.spectrum(row_spectrum, "row_spectrum")
    features = arguments.spectrum(feature_spectrum, "feature_spectrum")
    check_shape("theta_sq", theta_sq, features.shape, "one entry for each feature direction")
    check_number("ridge", ridge, 0.0, low_open=True)
    return _profile(
        rows,
        features,
        arguments.per_direction("theta_sq", theta_sq, features),
        arguments.scalar("noise_variance", noise_variance),
        arguments.scalar("ridge", ridge),
    )


@jax.jit
def _profile(
    rows: Float[Array, " n"],
    features: Float[Array, " p"],
    theta_sq: Float[Array, " p"],
    noise_variance: Float[Array, ""],
    ridge: Float[Array, ""],
) -> RiskProfile:
    def samples(cut: Float[Array, ""]) -> Float[Array, ""]:
        """η = Σ_v c t/(c+t), between 0 and Σc."""
        return jnp.sum(rows * filters(rows, cut).missed)

    def residual(log_cut: Float[Array, ""]) -> Float[Array, ""]:
        # df1 − Σc/(c+t): increases in t, since η does and the rows' sum falls.
        cut = jnp.exp(log_cut)
        by_features = sum_in_parts(features, ridge / samples(cut))
        by_rows = sum_in_parts(rows, cut)
        return (by_features.head - by_rows.head) + (by_rows.rest - by_features.rest)

    # df1 ≤ ηΣh/λ gives the lower end; df1 ≥ the largest feature's share, at η ≥ Σc/2, the upper.
    low = log_or_lowest(ridge) - log_or_lowest(jnp.sum(features))
    high = jnp.sum(rows) + 2 * ridge / jnp.max(features)
    cut = jnp.exp(root(residual, low - 1e-9, log_or_lowest(high) + 1e-9))

    eta = samples(cut)
    learnt, missed = filters(features, ridge / eta)
    row_learnt, row_missed = filters(rows, cut)
    # −dη/dq: (t Σc²/(c+t)²) / (t Σc/(c+t)²).
    trade = cut * jnp.sum(row_learnt**2) / jnp.sum(row_learnt * row_missed)
    spread = learnt**2 / (eta + trade * jnp.sum(learnt * missed))
    direct = missed**2 * features * theta_sq
    return RiskProfile(
        bias=direct + trade * spread * jnp.sum(direct), variance=noise_variance * spread
    )
