"""Which ridge has the least risk: a scan over the effective ridge κ, then a root of the derivative.

λ = κ(N − df1) is explicit in κ, so the scan solves no equation. With Q = Σ(1−𝓛_i)² p_i the total
risk is R = N(Q+σ²)/(N−df2) − σ², and dR/d log κ has the sign of

    G = (N−df2) Σ(1−𝓛_i)² 𝓛_i p_i − (Q+σ²) Σ𝓛_i² (1−𝓛_i),

a difference of two positive terms: minima are found to rounding even where R itself is flat.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from boundlab.theory.excess_risk.equivalent import (
    LOWEST_LOG,
    bisect,
    count_minus_sum,
    filters,
    log_or_lowest,
    rank,
    root,
    smallest_positive,
    solve_effective_ridge,
)

# Each direction's terms are smooth in log κ on a scale of several e-folds; a usual scan covers
# 10 to 50 of them, the longest 700.
SCAN_POINTS = 512
# Local minima that are refined, the best ones of the scan first.
CANDIDATES = 4


@jax.jit
def tune_ridge(
    mu: Float[Array, " d"],
    theta_sq: Float[Array, " d"],
    noise_variance: Float[Array, ""],
    num_samples: Float[Array, ""],
) -> Float[Array, ""]:
    """Ridge of least total risk; see `boundlab.theory.excess_risk.ridge.best_ridge`."""
    power = mu * theta_sq

    def total_and_slope(log_kappa: Float[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        kappa = jnp.exp(log_kappa)
        learnt, missed = filters(mu, kappa)
        unspent = count_minus_sum(num_samples, mu, kappa) + jnp.sum(learnt * missed)
        left = jnp.sum(missed**2 * power)
        slope = unspent * jnp.sum(missed**2 * learnt * power)
        slope -= (left + noise_variance) * jnp.sum(learnt**2 * missed)
        # bias + variance; N(Q+σ²)/(N−df2) − σ² would cancel.
        total = (num_samples * left + noise_variance * jnp.sum(learnt**2)) / unspent
        return total, slope

    def slope_at(log_kappa: Float[Array, ""]) -> Float[Array, ""]:
        return total_and_slope(log_kappa)[1]

    low, high = jax.lax.stop_gradient(_scan_range(mu, theta_sq, noise_variance, num_samples))
    grid = jnp.linspace(low, high, SCAN_POINTS)
    totals, slopes = jax.lax.map(total_and_slope, grid, batch_size=32)
    minimum_inside = (slopes[:-1] < 0) & (slopes[1:] >= 0)
    ranking = jnp.where(minimum_inside, jnp.minimum(totals[:-1], totals[1:]), jnp.inf)
    _, cells = jax.lax.top_k(-ranking, CANDIDATES)
    # A cell is at most 3 e-folds wide.
    found = jax.vmap(lambda a, b: bisect(slope_at, a, b, 54))(grid[cells], grid[cells + 1])
    refined = jnp.where(minimum_inside[cells], jax.vmap(total_and_slope)(found)[0], jnp.inf)
    best = jnp.argmin(refined)
    # Nothing is left to halve: this makes the minimum differentiable.
    log_kappa = root(slope_at, found[best], found[best], steps=0)
    kappa = jnp.exp(log_kappa)
    ridge = kappa * jnp.maximum(count_minus_sum(num_samples, mu, kappa), 0.0)

    enough = num_samples >= rank(mu)
    # With fewer samples than directions the scan starts at λ = 0, which may itself be a minimum.
    at_start = ~enough & (slopes[0] >= 0) & (totals[0] <= refined[best])
    ridgeless = at_start | (enough & (noise_variance == 0))
    no_minimum = jnp.isinf(refined[best])
    return jnp.where(ridgeless, 0.0, jnp.where(no_minimum, jnp.inf, ridge))


def _scan_range(
    mu: Float[Array, " d"],
    theta_sq: Float[Array, " d"],
    noise_variance: Float[Array, ""],
    num_samples: Float[Array, ""],
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Ends of log κ outside of which the risk is provably monotone."""
    # For κ ≤ μ_min the slope is negative if 8Nκ Σθ² < σ²; with N < rank, λ ≥ 0 asks for κ ≥ κ(0).
    signal = jnp.sum(jnp.where(mu > 0, theta_sq, 0.0))
    low = jnp.minimum(
        log_or_lowest(smallest_positive(mu)),
        log_or_lowest(noise_variance) - log_or_lowest(8 * num_samples * signal),
    )
    least = solve_effective_ridge(mu, jnp.zeros_like(noise_variance), num_samples)
    low = jnp.where(num_samples < rank(mu), log_or_lowest(least), low)
    # For κ ≥ max(μ_max, 2Σμ/N) it is positive if κN Σpμ > 16 (Σp+σ²) Σμ².
    scaled = mu / jnp.max(mu)
    pull = jnp.sum(scaled * mu * theta_sq)
    push = 16 * (jnp.sum(mu * theta_sq) + noise_variance) * jnp.sum(scaled * mu) / num_samples
    turn = jnp.where(pull > 0, push / jnp.where(pull > 0, pull, 1.0), 0.0)
    high = jnp.maximum(jnp.maximum(jnp.max(mu), 2 * jnp.sum(mu) / num_samples), turn)
    low = jnp.clip(low, LOWEST_LOG, -LOWEST_LOG)
    return low, jnp.maximum(log_or_lowest(high), low + 1.0)
