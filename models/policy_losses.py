"""Masked policy losses under one interface: `policy_loss(name, **options)(batch) -> (loss, metrics)`.

    loss = aggregate(per-token loss × behaviour weight, mask, aggregation)

Every loss computes in the type of `log_prob`, in float32 where that is narrower, and is differentiated by
`log_prob` alone. Ratios are e^ρ with ρ clipped to ±20, beyond which their gradient is 0. What masked
positions hold changes nothing, not one bit. A number that isn't finite at a token is refused, or where
values are traced makes loss, metrics and the token's gradient NaN. See docs/policy_optimization.md for
the choice of a loss.
"""

import difflib
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from boundlab.checks import check_number, check_shape, fail, shown
from boundlab.models import policy_ratio_losses as ratios
from boundlab.models import policy_score_losses as scores
from boundlab.models.behavior_weights import behavior_options, behavior_weights, sequence_weights
from boundlab.models.policy_aggregation import (
    aggregate as aggregate,
)
from boundlab.models.policy_aggregation import (
    check_aggregation,
    combine,
    mean_of_sequences,
)
from boundlab.models.policy_batch import CleanBatch, check_batch, clean, exp_ratio
from boundlab.models.policy_batch import PolicyBatch as PolicyBatch
from boundlab.models.policy_estimators import group_advantage as group_advantage
from boundlab.models.policy_estimators import kl_estimate as kl_estimate

Metrics = dict[str, Float[Array, ""]]
LossFunction = Callable[[PolicyBatch], tuple[Float[Array, ""], Metrics]]


class Loss(NamedTuple):
    """One loss of the family: its function, its own options and their defaults, how it is combined."""

    function: Callable[..., ratios.PerToken]
    options: Mapping[str, Any]
    aggregation: str | None
    """Default; None: one loss a sequence, of which the mean is taken."""
    needs: tuple[str, ...] = ()
    """Fields of the batch that may not be None."""
    splits: bool = True
    """Whether losses of micro-batches can add up to the whole batch's."""


def _clip(low: float, high: float) -> dict[str, float]:
    return {"epsilon_low": low, "epsilon_high": high}


TOKENS, SEQUENCES = "token-mean", "seq-mean-token-mean"
# Budgets of FiberPO's training runs are not published: these are the settings of its figure 4.
FIBER = {"budget_plus": 0.12, "budget_minus": 0.05, "epsilon": 0.04}
LOSSES: Mapping[str, Loss] = MappingProxyType(
    {
        "ppo": Loss(ratios.clipped, _clip(0.2, 0.2), TOKENS),
        "dual_clip": Loss(ratios.dual_clipped, {**_clip(0.2, 0.2), "dual_clip": 3.0}, TOKENS),
        "grpo": Loss(ratios.clipped, _clip(0.2, 0.2), SEQUENCES),
        "dapo": Loss(ratios.clipped, _clip(0.2, 0.28), TOKENS),
        "bnpo": Loss(ratios.clipped, _clip(0.2, 0.2), TOKENS, splits=False),
        "dr_grpo": Loss(ratios.clipped, _clip(0.2, 0.2), "seq-mean-token-sum-norm"),
        "luspo": Loss(ratios.sequence_clipped, _clip(2e-3, 2.5e-3), "seq-mean-token-sum"),
        "gspo": Loss(ratios.sequence_clipped, _clip(3e-4, 4e-4), SEQUENCES),
        "gmpo": Loss(ratios.geometric, _clip(0.4, 0.4), None),
        "cispo": Loss(scores.clipped_weight, _clip(1.0, 0.28), TOKENS),
        "sapo": Loss(
            ratios.soft_gated,
            {"temperature_positive": 1.0, "temperature_negative": 1.05},
            SEQUENCES,
        ),
        "vespo": Loss(scores.sequence_weight, {}, TOKENS),
        "dppo": Loss(scores.masked_by_probability, {"threshold": 0.15}, TOKENS),
        "dro": Loss(scores.squared_penalty, {"beta": 0.5}, TOKENS),
        "apc": Loss(ratios.censored, {"radius": 0.1}, SEQUENCES),
        "fiberpo": Loss(ratios.fiber_gated, {**FIBER, "pessimistic": False}, SEQUENCES),
        "fiberpo_domain": Loss(
            ratios.hierarchy_gated,
            {"budgets": ((0.12, 0.05),) * 3, "epsilon": 0.04},
            SEQUENCES,
            needs=("group_id", "domain_id"),
            splits=False,
        ),
    }
)
# Options of every loss, but that a mean over sequences (gmpo) takes neither of the first two.
COMMON = (
    "aggregation",
    "norm",
    "denominator",
    "behavior_weight",
    "behavior_low",
    "behavior_high",
    "behavior_threshold",
)
MAY_BE_ZERO = ("radius", "budget_plus", "budget_minus", "threshold", "beta")


class _Common(NamedTuple):
    """The options that every loss has, checked."""

    aggregation: str | None
    norm: Any
    denominator: Any
    behavior_weight: str | None
    behavior: dict[str, Any]


def policy_loss(name: str, **options: Any) -> LossFunction:
    """One loss of the family, as a function of a `PolicyBatch`.

    Args:
        name: a key of `LOSSES`: ppo, dual_clip, grpo, dapo, bnpo, dr_grpo, luspo, gspo, gmpo, cispo,
            sapo, vespo, dppo, dro, apc, fiberpo, fiberpo_domain.
        **options: the loss's own, with the defaults of `LOSSES`:
            `epsilon_low`, `epsilon_high` > 0, clip at 1 − ε_low and 1 + ε_high (gmpo: the log-ratio at
            −ε_low and ε_high; cispo: ε_low ≥ 1 for no lower limit); `dual_clip` c > 1;
            `temperature_positive`, `temperature_negative` > 0; `threshold` κ ≥ 0 of dppo; `beta` ≥ 0;
            `radius` δ ≥ 0 of apc; `budget_plus`, `budget_minus` ≥ 0, `epsilon` > 0, `pessimistic` (bool)
            of fiberpo; `budgets`, pairs (C⁺, C⁻) of sequence, group and domain, and `epsilon` of
            fiberpo_domain. And those of every loss: `aggregation` (see `aggregate`; not for gmpo),
            `norm`, `denominator` (not for bnpo, fiberpo_domain and m2po, which need the whole batch),
            `behavior_weight` with `behavior_low`, `behavior_high`, `behavior_threshold` (see
            `boundlab.models.behavior_weights`). Numbers may be traced.

    Returns:
        fn(batch) -> (loss, metrics). The loss is to be minimised, and 0 where all is masked. Metrics are
        scalars without a gradient over the tokens: `mean_ratio` mean r; `effective_sample_size`
        (Σr)²/(nΣr²); `clip_fraction`, the share where the gate acts (the clipped branch is the smaller;
        FiberPO: |u| > ε; 0 for losses that cut nothing off); `mean_behavior_weight` where one is used;
        FiberPO and -Domain: `plus_passed`, `plus_rolled_back`, `plus_zeroed` and the same of `minus`,
        shares of the sequences. All are 0 where all is masked. Of a traced batch whose token holds NaN
        or infinity in any field (−inf too), the loss, all metrics and the token's gradient are NaN.

    Raises:
        ValueError: an unknown name, an option that the loss doesn't use or that is out of range; from fn,
            a batch that doesn't fit or isn't finite at a token. The option or field is named.

    Source: docs/policy_optimization.md#loss-family, by loss.

    """
    if not isinstance(name, str) or name not in LOSSES:
        near = difflib.get_close_matches(
            name if isinstance(name, str) else "", LOSSES, n=3, cutoff=0.4
        )
        hint = f"; nearest: {', '.join(near)}" if near else ""
        raise fail("name", shown(name), "one of " + ", ".join(LOSSES) + hint)
    loss = LOSSES[name]
    for option in options:
        if option not in loss.options and option not in COMMON:
            accepted = f"no such option: {name} takes {', '.join((*loss.options, *COMMON))}"
            raise fail(option, shown(options[option]), accepted)
    common = _common_options(name, loss, options)
    own = {**loss.options, **{k: v for k, v in options.items() if k in loss.options}}
    for option, value in own.items():
        _check_option(option, value)

    def evaluate(batch: PolicyBatch) -> tuple[Float[Array, ""], Metrics]:
        check_batch(batch, needs=loss.needs)
        return _evaluate(loss, own, common, clean(batch))

    return evaluate


def _evaluate(
    loss: Loss, own: dict[str, Any], common: _Common, batch: CleanBatch
) -> tuple[Float[Array, ""], Metrics]:
    found = loss.function(batch, **own)
    metrics = _metrics(batch, found)
    values = found.loss
    if common.behavior_weight is not None:
        weights = behavior_weights(common.behavior_weight, batch, **common.behavior)
        tokens = jnp.maximum(jnp.sum(batch.lengths), 1.0)
        metrics["mean_behavior_weight"] = jnp.sum(weights) / tokens
        values = values * (
            sequence_weights(weights, batch) if common.aggregation is None else weights
        )
    if common.aggregation is None:
        total = mean_of_sequences(values, batch.lengths, common.denominator)
    else:
        total = combine(values, batch.lengths, common.aggregation, common.norm, common.denominator)
    return total, metrics


def _metrics(batch: CleanBatch, found: ratios.PerToken) -> Metrics:
    ratio = jnp.where(batch.mask, jax.lax.stop_gradient(exp_ratio(batch.log_ratio)), 0.0)
    tokens = jnp.maximum(jnp.sum(batch.lengths), 1.0)
    total, squares = jnp.sum(ratio), jnp.sum(ratio**2)
    size = total**2 / (tokens * jnp.where(squares > 0.0, squares, 1.0))
    metrics = {
        "mean_ratio": total / tokens,
        "effective_sample_size": size,
        "clip_fraction": jnp.sum(found.gated & batch.mask, dtype=ratio.dtype) / tokens,
        **found.extra,
    }
    # A share counts comparisons, which hide NaN.
    hidden, mean = jnp.isnan(metrics["mean_ratio"]), metrics["mean_ratio"]
    return {
        name: jax.lax.stop_gradient(jnp.where(hidden, mean, value))
        for name, value in metrics.items()
    }


def _common_options(name: str, loss: Loss, options: dict[str, Any]) -> _Common:
    given = {option: options.get(option) for option in COMMON}
    kind = given["behavior_weight"]
    if loss.aggregation is None:
        for option in ("aggregation", "norm"):
            if given[option] is not None:
                raise fail(option, shown(given[option]), f"none: {name} is a mean over sequences")
    mode = loss.aggregation if given["aggregation"] is None else given["aggregation"]
    checked = SEQUENCES if loss.aggregation is None else mode
    check_aggregation(checked, given["norm"], given["denominator"])
    behavior = behavior_options(
        kind, given["behavior_low"], given["behavior_high"], given["behavior_threshold"]
    )
    if given["denominator"] is not None and not (loss.splits and kind != "m2po"):
        needing = name if not loss.splits else "behavior_weight 'm2po'"
        raise fail(
            "denominator", shown(given["denominator"]), f"none: {needing} needs the whole batch"
        )
    return _Common(mode, given["norm"], given["denominator"], kind, behavior)


def _check_option(name: str, value: Any) -> None:
    if name == "pessimistic":
        if not isinstance(value, bool | np.bool):
            raise fail(name, shown(value), "True or False")
    elif name == "budgets":
        _check_budgets(value)
    else:
        check_shape(name, value, (), "one number")
        at_least = 1.0 if name == "dual_clip" else 0.0
        check_number(name, value, at_least, low_open=name not in MAY_BE_ZERO)


def _check_budgets(value: Any) -> None:
    accepted = "three pairs (C⁺, C⁻): of sequence, group and domain"
    if isinstance(value, tuple | list):
        if len(value) != 3:
            raise fail("budgets", f"{len(value)} of them", accepted)
        for pair in value:
            for budget in pair if isinstance(pair, tuple | list) and len(pair) == 2 else [pair]:
                check_shape("budgets", budget, () if budget is not pair else (2,), accepted)
                check_number("budgets", budget, 0)
    else:
        check_shape("budgets", value, (3, 2), accepted)
        check_number("budgets", value, 0)
