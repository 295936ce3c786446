"""A PAC-Bayes bound for transductive training with sampled neighbourhoods."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from boundlab.checks import check_number
from boundlab.precision import float64
from boundlab.theory.fanout._outcome import nan_unless
from boundlab.typing import Numbers


@float64
def pac_bayes_bound(
    empirical_loss: Numbers,
    kl_divergence: Numbers,
    num_train: Numbers,
    failure_probability: Numbers,
    inverse_temperature: Numbers,
    discrepancy: Numbers = 0.0,
) -> Float[Array, "..."]:
    """Upper bound on a posterior's test loss from its training loss on sampled neighbourhoods.

    L̂ + (1/λ)[KL + ln(1/δ) + λ²/(8n)] + D. For a loss in [0, 1], labels that are independent given the
    features, and a prior P and λ fixed before the labels are seen, it holds with probability ≥ 1 − δ
    over the training labels for all posteriors Q at once, when L̂ = E_Q L̂_train^β is the loss on the
    training nodes with fan-out β and D = E_Q[L_test − L_train^β], the difference of the *expected*
    losses of test nodes with all neighbours and training nodes with sampled ones. Gaussian
    Q = N(W, κ²I), P = N(0, κ²I): KL = ‖W‖²_F/(2κ²).

    Args:
        empirical_loss: L̂ in [0, 1], mean over the training nodes. All arguments broadcast and may be
            traced.
        kl_divergence: KL(Q‖P) ≥ 0, in nats.
        num_train: n ≥ 1 training nodes; any real number, as the formula has a meaning for all.
        failure_probability: δ in (0, 1).
        inverse_temperature: λ > 0; √(8n(KL + ln(1/δ))) would be best, but may not depend on the data.
        discrepancy: D, or an upper bound of it; finite, of either sign.

    Returns:
        The bound in the broadcast shape, a JAX array; it may exceed 1. NaN where a traced argument is
        out of range.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived (change of measure, Markov's inequality and Hoeffding's lemma),
    docs/fanout.md#generalisation-bound; the published form leaves the bounded loss out.

    """
    check_number("empirical_loss", empirical_loss, 0.0, 1.0)
    check_number("kl_divergence", kl_divergence, 0.0)
    check_number("num_train", num_train, 1.0)
    check_number(
        "failure_probability", failure_probability, 0.0, 1.0, low_open=True, high_open=True
    )
    check_number("inverse_temperature", inverse_temperature, 0.0, low_open=True)
    check_number("discrepancy", discrepancy)
    loss, kl, n, delta, rate, shift = (
        jnp.asarray(value, jnp.float64)
        for value in (
            empirical_loss,
            kl_divergence,
            num_train,
            failure_probability,
            inverse_temperature,
            discrepancy,
        )
    )
    return _bound(loss, kl, n, delta, rate, shift)


@jax.jit
def _bound(
    loss: Float[Array, "..."],
    kl: Float[Array, "..."],
    n: Float[Array, "..."],
    delta: Float[Array, "..."],
    rate: Float[Array, "..."],
    shift: Float[Array, "..."],
) -> Float[Array, "..."]:
    valid = (loss >= 0.0) & (loss <= 1.0) & (kl >= 0.0) & (n >= 1.0) & (rate > 0.0)
    valid = valid & (delta > 0.0) & (delta < 1.0) & jnp.isfinite(shift)
    return nan_unless(valid, loss + (kl - jnp.log(delta)) / rate + rate / (8 * n) + shift)
