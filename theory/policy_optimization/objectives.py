"""The policy losses written out: the surrogate's value, and the gradient of every loss, token by token.

    L = −Σ μ_i G_i A_i,      ∂L/∂log π_j = −Σ_i μ_i A_i ∂G_i/∂ρ_j,

G_i the gated ratio of token i (the *ratio-gating formalism*). Losses in score form have no surrogate,
only a gradient. Symbols: ρ = log π_θ − log π_old with |ρ| < 20, r = e^ρ, μ weights of `token_weights`, 0
where masked. This is a slow reference: NumPy, one sequence after another, no traced arguments.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from boundlab.checks import check_choice, check_integer, check_number, check_shape, fail
from boundlab.precision import float64, is_traced
from boundlab.theory.policy_optimization.coupled_gates import Gate, censored, fiber

# By loss: the options that it takes.
CLIP = ("epsilon_low", "epsilon_high")
SURROGATES = {
    "ppo": CLIP,
    "dual_clip": (*CLIP, "dual_clip"),
    "gspo": CLIP,
    "gmpo": CLIP,
    "sapo": ("temperature_positive", "temperature_negative"),
    "apc": ("radius",),
    "fiberpo": ("budget_plus", "budget_minus", "epsilon"),
    "fiberpo_pessimistic": ("budget_plus", "budget_minus", "epsilon"),
    "fiberpo_domain": ("budgets", "epsilon"),
}
SCORES = {"cispo": CLIP, "vespo": (), "dppo": ("threshold",), "dro": ("beta",)}
Values = Float[np.ndarray, " tokens"]


@float64
def surrogate_loss(
    loss: str,
    log_ratio: Any,
    advantage: Any,
    weights: Any,
    *,
    group_id: Any = None,
    domain_id: Any = None,
    **options: Any,
) -> Float[Array, ""]:
    """Value L = −Σ μ_i G_i A_i of a loss that has a surrogate.

    Rows that gate alike are one: `ppo` serves grpo, dapo, bnpo, dr_grpo, and `gspo` (token form) luspo;
    they differ in μ. `fiberpo_pessimistic` has min(rA, GA) for GA.

    Args:
        loss: ppo, dual_clip, gspo, gmpo (μ must be 1/(N T_b)), sapo, apc, fiberpo, fiberpo_pessimistic,
            fiberpo_domain.
        log_ratio: ρ (B, T).
        advantage: A (B, T).
        weights: μ (B, T) ≥ 0; 0 marks a masked position.
        group_id: (B,) for fiberpo_domain, with `domain_id`.
        domain_id: (B,).
        **options: the loss's, named as in `boundlab.models.policy_losses`; all must be given.

    Returns:
        L.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: li2026fibration, eq. 2 and appendix C.4; docs/policy_optimization.md#loss-family by loss.

    """
    check_choice("loss", loss, SURROGATES)
    total = 0.0
    for _, rho, gain, weight, gate in _pieces(
        loss, log_ratio, log_ratio, advantage, weights, group_id, domain_id, options
    ):
        values = gate.value
        if loss == "fiberpo_pessimistic":
            values = np.where(np.exp(rho) * gain < values * gain, np.exp(rho), values)
        total -= float(np.sum(weight * values * gain))
    return jnp.asarray(total)


@float64
def loss_gradient(
    loss: str,
    log_ratio: Any,
    advantage: Any,
    weights: Any,
    *,
    log_prob: Any = None,
    group_id: Any = None,
    domain_id: Any = None,
    **options: Any,
) -> Float[Array, "sequences tokens"]:
    """Gradient ∂L/∂log π_θ of any loss, by the chain rule written out.

    Losses in score form give −μwA with their weight w, dro −μ(A − βρ).

    Args:
        loss: as of `surrogate_loss`, or cispo, vespo, dppo, dro.
        log_ratio: ρ (B, T).
        advantage: A (B, T).
        weights: μ (B, T) ≥ 0; 0 marks a masked position.
        log_prob: log π_θ (B, T), for dppo.
        group_id: (B,) for fiberpo_domain, with `domain_id`.
        domain_id: (B,).
        **options: as of `surrogate_loss`.

    Returns:
        (B, T), 0 where masked.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: li2026fibration, eq. 19 and Proposition 5.2; docs/policy_optimization.md#loss-family by loss.

    """
    check_choice("loss", loss, (*SURROGATES, *SCORES))
    if loss == "dppo" and log_prob is None:
        raise fail("log_prob", None, "(B, T) for dppo")
    log_prob = log_ratio if log_prob is None else log_prob
    check_shape("log_ratio", log_ratio, (None, None), "(sequences, tokens)")
    found = np.zeros(np.shape(log_ratio))
    for at, rho, gain, weight, gate in _pieces(
        loss, log_ratio, log_prob, advantage, weights, group_id, domain_id, options
    ):
        response = gate.jacobian
        if loss == "fiberpo_pessimistic":
            plain = np.exp(rho) * gain < gate.value * gain
            response = np.where(plain[:, None], np.diag(np.exp(rho)), response)
        slope = -(weight * gain) @ response
        if loss == "dro":
            slope = -weight * (gain - options["beta"] * rho)
        found[at] = slope
    return jnp.asarray(found)


def _pieces(
    loss: str,
    log_ratio: Any,
    log_prob: Any,
    advantage: Any,
    weights: Any,
    group_id: Any,
    domain_id: Any,
    options: dict[str, Any],
) -> list[tuple[Any, Values, Values, Values, Gate]]:
    """Places, ρ, A, μ and gate of the tokens that are coupled: a sequence each, or the whole batch."""
    arrays = {
        "log_ratio": log_ratio,
        "log_prob": log_prob,
        "advantage": advantage,
        "weights": weights,
    }
    check_shape("log_ratio", log_ratio, (None, None), "(sequences, tokens)")
    for name, value in arrays.items():
        if is_traced(value):
            raise fail(name, "a traced array", "numbers")
        check_shape(name, value, np.shape(log_ratio), "that of log_ratio")
    check_number("weights", weights, 0)
    kept = np.asarray(weights) > 0
    for name, value in arrays.items():
        check_number(name, value, where=kept)
        arrays[name] = np.asarray(value, np.float64)
    taken = {**SURROGATES, **SCORES}[loss]
    for name in (*options, *taken):
        if (name in options) != (name in taken):
            raise fail(name, options.get(name, "nothing"), f"the options {taken} of {loss}")
    for name, value in options.items():
        pairs_of = "pairs of sequence, group, domain"
        shape, what = ((3, 2), pairs_of) if name == "budgets" else ((), "one number")
        check_shape(name, value, shape, what)
        check_number(name, value, 0)
    if loss == "fiberpo_domain":
        above = [
            _ids("group_id", group_id, len(kept)),
            _ids("domain_id", domain_id, len(kept)),
        ]
        places: list[Any] = [np.nonzero(kept)]
    else:
        above = []
        places = [(np.full(row.sum(), b), np.flatnonzero(row)) for b, row in enumerate(kept)]
    pieces = []
    for at in [at for at in places if len(at[0])]:
        rho, logs, gain, weight = (arrays[name][at] for name in arrays)
        if loss.startswith("fiberpo"):
            nodes = [at[0], *(ids[at[0]] for ids in above)]
            pair = (options.get("budget_plus"), options.get("budget_minus"))
            pairs = np.asarray(options.get("budgets", [pair]), np.float64).tolist()
            limit = float(options["epsilon"])
            gate = fiber(rho, nodes, [(plus, minus) for plus, minus in pairs], limit)
        elif loss == "apc":
            gate = censored(rho, float(options["radius"]))
        else:
            gate = GATES[loss](rho, gain, logs, options)
        pieces.append((at, rho, gain, weight, gate))
    return pieces


def _ids(name: str, value: Any, count: int) -> Int[np.ndarray, " sequences"]:
    check_shape(name, value, (count,), "one integer a sequence")
    return np.array([check_integer(name, i, 0, count - 1) for i in np.asarray(value)])


def _clipped(rho: Values, gain: Values, _: Values, options: dict[str, Any]) -> Gate:
    ratio, sign = np.exp(rho), np.sign(gain)
    bounds = (1.0 - options["epsilon_low"], 1.0 + options["epsilon_high"])
    worse = np.minimum(np.clip(ratio, *bounds) * sign, ratio * sign)
    value = np.where(sign == 0, ratio, sign * worse)
    if "dual_clip" in options:
        value = np.where(sign < 0, np.minimum(value, options["dual_clip"]), value)
    return Gate(value, np.diag(np.where(value == ratio, ratio, 0.0)))


def _sequence(rho: Values, gain: Values, _: Values, options: dict[str, Any]) -> Gate:
    shared = np.full(len(rho), np.mean(rho))
    return _clipped(shared, gain, _, options)


def _geometric(rho: Values, gain: Values, _: Values, options: dict[str, Any]) -> Gate:
    sign = np.sign(gain)
    cut = np.clip(rho, -options["epsilon_low"], options["epsilon_high"])
    worse = sign * np.minimum(sign * rho, sign * cut)
    shared = np.exp(np.mean(worse))
    moves = np.where((worse == rho) & (sign != 0), 1.0, 0.0) / len(rho)
    return Gate(np.full(len(rho), shared), np.full((len(rho), 1), shared) * moves)


def _soft(rho: Values, gain: Values, _: Values, options: dict[str, Any]) -> Gate:
    ratio = np.exp(rho)
    scale = np.where(
        gain > 0, options["temperature_positive"], options["temperature_negative"]
    ).astype(np.float64)
    half = scale * (ratio - 1.0) / 2.0
    # 4σ(x)/τ, and 4σ′(x)r = r/cosh²(x/2)
    return Gate(2.0 * (1.0 + np.tanh(half)) / scale, np.diag(ratio / np.cosh(half) ** 2))


def _weighted(weight: Callable[..., Any]) -> Callable[..., Gate]:
    """A loss in score form: no value (NaN), its weight as the slope."""

    def gate(*arguments: Any) -> Gate:
        slope = np.asarray(weight(*arguments), np.float64)
        return Gate(np.full(len(slope), np.nan), np.diag(slope))

    return gate


def _vespo(rho: Values, gain: Values, _: Values, __: dict[str, Any]) -> Values:
    total = np.clip(np.sum(rho), np.log(1e-8), 20.0)
    power, scale = np.where(gain >= 0, 2.0, 3.0), np.where(gain >= 0, 3.0, 2.0)
    return np.exp(scale + power * total - scale * np.exp(total))


def _dppo(rho: Values, gain: Values, log_prob: Values, options: dict[str, Any]) -> Values:
    moved = np.exp(log_prob) - np.exp(log_prob - rho)
    kept = np.where(gain > 0, moved <= options["threshold"], moved >= -options["threshold"])
    return np.minimum(np.exp(rho), 20.0) * kept


GATES: dict[str, Callable[..., Gate]] = {
    "ppo": _clipped,
    "dual_clip": _clipped,
    "gspo": _sequence,
    "gmpo": _geometric,
    "sapo": _soft,
    "cispo": _weighted(
        lambda rho, _, __, options: np.clip(
            np.exp(rho), 1.0 - options["epsilon_low"], 1.0 + options["epsilon_high"]
        )
    ),
    "vespo": _weighted(_vespo),
    "dppo": _weighted(_dppo),
    "dro": _weighted(lambda rho, *_: np.ones(len(rho))),
}
