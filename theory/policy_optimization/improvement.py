"""Lower bounds of J(π′) − J(π), the improvement of a policy, from quantities of the old one.

Symbols and units, for all of them: J(π) = E Σ_t γᵗ r_t is not normalised; the occupancy d_π(s) sums to
1/(1 − γ); D_TV(s) = ½ Σ_a |π′(a|s) − π(a|s)|, with the ½; L = Σ_s d_π(s) Σ_a π′(a|s)A_π(s, a), the
surrogate gain, is what π′ would gain if it visited states as π does. Where the states are the prefixes of
sequences of H tokens, γ = 1 and d_π(s) is the chance of reaching s.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from boundlab.checks import check_integer, check_number, check_shape, fail
from boundlab.precision import float64, is_traced
from boundlab.typing import Count, Scalar

# Total variations are computed: a complete change may come out above 1 by rounding.
ROUNDING = 1e-9
# What each argument may be; a discount of 1 is refused.
RANGES = {
    "surrogate_gain": (-np.inf, np.inf),
    "advantage_max": (0.0, np.inf),
    "expected_advantage_max": (0.0, np.inf),
    "divergence": (0.0, 1.0 + ROUNDING),
    "mean_divergence": (0.0, np.inf),
    "mixture": (0.0, 1.0),
    "discount": (0.0, 1.0),
}
# The series in αH is used up to here, where its next term is below 1e-16 of the first.
SERIES_UNTIL, SERIES_TERMS = 0.1, 10


@float64
def improvement_bound_discounted(
    surrogate_gain: Scalar, advantage_max: Scalar, divergence: Scalar, discount: Scalar
) -> Float[Array, ""]:
    """Bound of trust-region policy optimisation, with the largest total variation over states:

        J(π′) − J(π) ≥ L − 4γε D²/(1 − γ)²,    ε = max|A_π|,  D = max_s D_TV(s).

    Args:
        surrogate_gain: L, with d_π that sums to 1/(1 − γ). May be traced, as all others.
        advantage_max: ε ≥ 0.
        divergence: D in [0, 1], with the ½; at most radius/2 after `tv_trpo_step(…, radius)`.
        discount: γ in [0, 1).

    Returns:
        The bound, in units of the return; L itself at γ = 0.

    Raises:
        ValueError: an argument is out of range or no single number; it is named.

    Source: schulman2015trust, Theorem 1; li2026fibration, Section 2.

    """
    gain, largest, far, gamma = _numbers(
        surrogate_gain=surrogate_gain,
        advantage_max=advantage_max,
        divergence=divergence,
        discount=discount,
    )
    return gain - 4.0 * gamma * largest * (far / (1.0 - gamma)) ** 2


@float64
def achiam_bound(
    surrogate_gain: Scalar,
    expected_advantage_max: Scalar,
    mean_divergence: Scalar,
    discount: Scalar,
) -> Float[Array, ""]:
    """Bound with the total variation averaged over the states that the old policy visits:

        J(π′) − J(π) ≥ L − (2γε′/(1 − γ)) Σ_s d_π(s)D_TV(s),    ε′ = max_s |Σ_a π′(a|s)A_π(s, a)|.

    Args:
        surrogate_gain: L, with d_π that sums to 1/(1 − γ). May be traced, as all others.
        expected_advantage_max: ε′ ≥ 0, of the new policy.
        mean_divergence: Σ_s d_π(s)D_TV(s), from 0 to 1/(1 − γ), with the ½.
        discount: γ in [0, 1).

    Returns:
        The bound, in units of the return.

    Raises:
        ValueError: an argument is out of range or no single number; it is named.

    Source: achiam2017constrained, Corollary 1 (there d and J are multiplied by 1 − γ).

    """
    gain, largest, far, gamma = _numbers(
        surrogate_gain=surrogate_gain,
        expected_advantage_max=expected_advantage_max,
        mean_divergence=mean_divergence,
        discount=discount,
    )
    if not is_traced(mean_divergence, discount) and far * (1.0 - gamma) > 1.0 + ROUNDING:
        accepted = f"a number ≤ 1/(1 − discount) = {1 / (1 - float(gamma)):.6g}"
        raise fail("mean_divergence", f"{float(far):.6g}", accepted)
    return gain - 2.0 * gamma * largest * far / (1.0 - gamma)


@float64
def kakade_langford_bound(
    surrogate_gain: Scalar, expected_advantage_max: Scalar, mixture: Scalar, discount: Scalar
) -> Float[Array, ""]:
    """Bound for the mixture (1 − α)π + απ′, the step of conservative policy iteration:

        J((1−α)π + απ′) − J(π) ≥ αL − 2γε′α²/((1 − γ)(1 − γ(1 − α))),  ε′ = max_s |Σ_a π′(a|s)A_π(s, a)|.

    Args:
        surrogate_gain: L of π′ itself, not of the mixture. May be traced, as all others.
        expected_advantage_max: ε′ ≥ 0 of π′ itself.
        mixture: α in [0, 1].
        discount: γ in [0, 1).

    Returns:
        The bound, in units of the return. It is attained (docs/policy_optimization.md).

    Raises:
        ValueError: an argument is out of range or no single number; it is named.

    Source: kakade2002approximately, Theorem 4.1 (there J is multiplied by 1 − γ).

    """
    gain, largest, share, gamma = _numbers(
        surrogate_gain=surrogate_gain,
        expected_advantage_max=expected_advantage_max,
        mixture=mixture,
        discount=discount,
    )
    never_left = (1.0 - gamma) * (1.0 - gamma * (1.0 - share))
    return share * gain - 2.0 * gamma * largest * share**2 / never_left


@float64
def improvement_bound_finite(
    surrogate_gain: Scalar, advantage_max: Scalar, divergence: Scalar, horizon: Count
) -> Float[Array, ""]:
    """Bound for sequences of H steps without discount, which doesn't vanish:

        J(π′) − J(π) ≥ L − 4αε Σ_{t<H} (1 − (1 − α)ᵗ) ≥ L − 2H(H − 1)εα²,

    with ε = max|A_π| and α = max_s D_TV(s); the first form is returned. L is exact for H = 1.

    Args:
        surrogate_gain: L = Σ_{t<H} E_{s_t∼π} Σ_a π′(a|s_t)A_π(s_t, a). May be traced, as all others.
        advantage_max: ε ≥ 0.
        divergence: α in [0, 1], with the ½.
        horizon: H ≥ 1, an integer.

    Returns:
        The bound, in units of the return. It is attained for every H and α ≤ ½.

    Raises:
        ValueError: an argument is out of range or no single number; it is named.

    Source: derived, docs/policy_optimization.md#finite-horizon.

    """
    gain, largest, far = _numbers(
        surrogate_gain=surrogate_gain,
        advantage_max=advantage_max,
        divergence=divergence,
    )
    steps = horizon_number(horizon, 1)
    return gain - 4.0 * largest * _escaped(far, steps)


def horizon_number(horizon: Any, minimum: int) -> Float[Array, ""]:
    """`horizon` as a float64, checked where it isn't traced."""
    check_shape("horizon", horizon, ())
    if is_traced(horizon):
        return jnp.asarray(horizon).astype(jnp.float64)
    return jnp.asarray(float(check_integer("horizon", horizon, minimum)), jnp.float64)


@jax.jit
def _escaped(far: Float[Array, ""], steps: Float[Array, ""]) -> Float[Array, ""]:
    """α Σ_{t<H} (1 − (1 − α)ᵗ) = αH − 1 + (1 − α)^H, without cancellation.

    Where αH is small by the binomial series Σ_{k≥2} C(H, k)(−α)ᵏ, nested.
    """
    near = far * steps <= SERIES_UNTIL
    small, large = jnp.where(near, far, 0.0), jnp.where(near, 0.5, far)
    nested = jnp.ones_like(far)
    for k in range(SERIES_TERMS, 2, -1):
        nested = 1.0 - (steps - (k - 1.0)) * small / k * nested
    series = 0.5 * steps * (steps - 1.0) * small**2 * nested
    # −(1 − (1 − α)^H); the first loses no digits of a small α, the second bears α = 1.
    partly = large < 0.9
    first = jnp.expm1(steps * jnp.log1p(-jnp.where(partly, large, 0.5)))
    second = (1.0 - large) ** steps - 1.0
    return jnp.where(near, series, large * steps + jnp.where(partly, first, second))


def _numbers(**named: Any) -> list[Float[Array, ""]]:
    """The arguments, each a single number in its range, as float64."""
    for name, value in named.items():
        check_shape(name, value, (), "one number: map over more by jax.vmap")
        low, high = RANGES[name]
        check_number(name, value, low, high, high_open=name == "discount")
    return [jnp.asarray(value).astype(jnp.float64) for value in named.values()]
