"""The family of policy losses: the library's values and gradients beside the same written out.

What is recorded is how far the two are apart, relative to the largest entry, and how far a plausible
wrong theory is; and what the figure shows: the pull of each loss on one token, and on a small batch.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
import xarray as xr

from boundlab.analysis.datasets import describe
from boundlab.analysis.policy_optimization import losses_cases as cases
from boundlab.analysis.policy_optimization.config import Config
from boundlab.analysis.policy_optimization.losses_claims import CLAIMS as CLAIMS
from boundlab.experiment import Repeat
from boundlab.models.policy_losses import PolicyBatch
from boundlab.theory.policy_optimization.coupled_gates import fiber
from boundlab.theory.policy_optimization.on_policy import token_weights

# Rows that clip the ratio of a token, and what is left of them without the min.
CLIPPED = ("ppo", "dual_clip", "grpo", "dapo", "bnpo", "dr_grpo")
# Rows with a surrogate that no other claim speaks of.
SURROGATES = ("gspo", "sapo", "apc", "fiberpo", "fiberpo_pessimistic", "fiberpo_domain")
COUPLED = ("apc", "fiberpo", "fiberpo_pessimistic", "fiberpo_domain")
# Size of log-ratios that alternate in sign, and no more tokens than an even number.
SWINGS = np.array([0.05, 0.1, 0.2, 0.3])
# Rows that the figure shows as functions of one token's ratio; the others pull as one of these does.
ALIKE = ("grpo", "dapo", "bnpo", "dr_grpo", "luspo", "fiberpo_domain")
SHOWN = tuple(row for row in cases.ROWS if row not in ALIKE)
RATIOS = np.linspace(0.4, 1.9, 151)
PULLED = 0.3  # probability of the token that is pulled, under the old policy


def run(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Distances of the library from theory by claim, pulls, and the reference batch."""
    random = cases.draw(key, config.losses_batches)
    sizes = [len(random.log_prob)] * 3 + [len(SWINGS), 1]
    groups = [random, _on_policy(random), _junk(random), _alternating(), cases.reference()]
    pulls = _pull_batches()
    everything = PolicyBatch(
        *(
            None if fields[0] is None else np.concatenate(fields)
            for fields in zip(*groups, pulls, strict=True)
        )
    )
    found = jax.tree.map(np.asarray, cases.answers(everything))
    parts = np.split(np.arange(len(everything.log_prob)), np.cumsum(sizes))
    plain, start, padded, swung, shown, pulled = (
        {row: (value[at], gradient[at]) for row, (value, gradient) in found.items()} for at in parts
    )
    dataset = xr.merge(
        [
            _start(groups[1], start),
            _values(random, plain),
            _gradients(random, plain),
            _padding(random, plain, padded),
            _micro_batches(random, plain),
            _blind_spot(groups[3], swung),
            _reference(shown),
            _pulls(pulled),
        ]
    )
    return describe(dataset, "1")


def _distance(found: Any, expected: Any) -> np.ndarray:
    """Largest difference in each batch, relative to the largest entry expected there if any isn't 0."""
    flat, other = (np.reshape(np.asarray(x), (len(found), -1)) for x in (found, expected))
    scale = np.abs(other).max(axis=1)
    return np.abs(flat - other).max(axis=1) / np.where(scale > 0, scale, 1.0)


def _compared(name: str, rows: Sequence[str], found: Any, right: Any, wrong: Any) -> xr.Dataset:
    """Distances by batch and row from the right and the wrong theory, functions of a row."""
    dims = ("losses_seed", f"losses_{name}_row")
    described = {"units": "1"}
    apart = {
        f"losses_{name}": (right, "distance of the library from theory"),
        f"losses_{name}_wrong": (wrong, "its distance from a wrong theory"),
    }
    return xr.Dataset(
        {
            variable: (
                dims,
                np.stack([_distance(found(row), theory(row)) for row in rows], axis=1),
                {"long_name": words, **described},
            )
            for variable, (theory, words) in apart.items()
        },
        coords={dims[1]: list(rows)},
    )


def _all(row: str, batch: PolicyBatch, kind: str, **changed: Any) -> np.ndarray:
    return np.stack(
        [cases.expected(row, batch, at, kind, **changed) for at in range(len(batch.log_prob))]
    )


def _start(batch: PolicyBatch, found: dict[str, Any]) -> xr.Dataset:
    """Gradients on policy, against −μA and against a gate whose sign is 0 there."""
    gain = batch.advantage
    mean = np.where(cases.MASK, gain, 0.0).sum(axis=2, keepdims=True)
    mean = mean / np.maximum(cases.LENGTHS, 1)[:, None] * np.ones_like(gain)

    def right(row: str) -> np.ndarray:
        return -np.asarray(cases.weights(row)) * (mean if row == "gmpo" else gain)

    def sign_at_zero(row: str) -> np.ndarray:
        repeated = np.broadcast_to(np.asarray(cases.weights(row)), gain.shape)
        return np.asarray(cases.sign_gate_gradient(gain, repeated))

    rows = tuple(cases.ROWS)
    return _compared("start", rows, lambda row: found[row][1], right, sign_at_zero)


def _values(batch: PolicyBatch, found: dict[str, Any]) -> xr.Dataset:
    """Values of losses that have a surrogate."""
    step = np.where(cases.MASK, batch.log_prob - batch.log_prob_old, 0.0)

    def value(row: str) -> np.ndarray:
        return found[row][0]

    def right(row: str) -> np.ndarray:
        return _all(row, batch, "value")

    def without_min(row: str) -> np.ndarray:
        options = cases.ROWS[row][2]
        gate = np.clip(np.exp(step), 1 - options["epsilon_low"], 1 + options["epsilon_high"])
        return -(np.asarray(cases.weights(row)) * gate * batch.advantage).sum(axis=(1, 2))

    def sides_exchanged(row: str) -> np.ndarray:
        low, high = (cases.ROWS[row][2][name] for name in ("epsilon_low", "epsilon_high"))
        return _all(row, batch, "value", epsilon_low=high, epsilon_high=low)

    def unclipped(row: str) -> np.ndarray:
        every = np.asarray(cases.weights(row)) * np.exp(step) * batch.advantage
        return -every.sum(axis=(1, 2))

    def token_means(row: str) -> np.ndarray:
        return _all(row, batch, "value", weights=cases.weights("gspo"))

    def padded_length(row: str) -> np.ndarray:
        return _all(row, batch, "value", weights=_padded_weights())

    def tokens_clipped(row: str) -> np.ndarray:
        return _all("grpo", batch, "value", **cases.ROWS[row][2])

    return xr.merge(
        [
            _compared("clipped", CLIPPED, value, right, without_min),
            _compared("sides", ("dapo",), value, right, sides_exchanged),
            _compared("surrogate", SURROGATES, value, right, unclipped),
            _compared("luspo", ("luspo",), value, right, token_means),
            _compared("norm", ("dr_grpo",), value, right, padded_length),
            _compared("gmpo", ("gmpo",), value, right, tokens_clipped),
        ]
    )


def _padded_weights() -> np.ndarray:
    """Weights of Dr.GRPO that divides by the padded length."""
    return np.asarray(token_weights(cases.MASK, "seq-mean-token-sum-norm"))


def _gradients(batch: PolicyBatch, found: dict[str, Any]) -> xr.Dataset:
    """Gradients: of scores, whose value means nothing, and of gates that couple tokens."""
    step = batch.log_prob - batch.log_prob_old

    def gradient(row: str) -> np.ndarray:
        return found[row][1]

    def right(row: str) -> np.ndarray:
        return _all(row, batch, "gradient")

    def cap_is_epsilon(row: str) -> np.ndarray:
        capped = np.minimum(np.exp(step), cases.ROWS[row][2]["epsilon_high"])
        return -np.asarray(cases.weights(row)) * capped * batch.advantage

    def sides_exchanged(row: str) -> np.ndarray:
        mirrored = [
            cases.expected(row, batch, at, "gradient", advantage=-gain)
            for at, gain in enumerate(batch.advantage)
        ]
        return -np.stack(mirrored)

    def no_half(row: str) -> np.ndarray:
        return _all(row, batch, "gradient", beta=2.0 * cases.ROWS[row][2]["beta"])

    def ratio_masked(row: str) -> np.ndarray:
        ratio = np.exp(step)
        limit, gain = cases.ROWS[row][2]["threshold"], batch.advantage
        kept = np.where(gain > 0, ratio - 1 <= limit, ratio - 1 >= -limit)
        return -np.asarray(cases.weights(row)) * ratio * kept * gain

    return xr.merge(
        [
            _compared("cispo", ("cispo",), gradient, right, cap_is_epsilon),
            _compared("vespo", ("vespo",), gradient, right, sides_exchanged),
            _compared("dppo", ("dppo",), gradient, right, ratio_masked),
            _compared("dro", ("dro",), gradient, right, no_half),
            _compared(
                "coupled", COUPLED, gradient, right, lambda row: _gate_held_fixed(row, batch)
            ),
        ]
    )


def _gate_held_fixed(row: str, batch: PolicyBatch) -> np.ndarray:
    """−μGA, as if FiberPO's gate were a weight without a gradient, in place of any coupled gate."""
    gradients = np.zeros(batch.log_prob.shape)
    pair = [(cases.FIBER["budget_plus"], cases.FIBER["budget_minus"])]
    places = np.nonzero(cases.MASK)
    for at, step in enumerate(batch.log_prob - batch.log_prob_old):
        gate = fiber(step[places], [places[0]], pair, cases.FIBER["epsilon"]).value
        share = np.asarray(cases.weights(row))[places] * batch.advantage[at][places]
        gradients[at][places] = -share * gate
    return gradients


def _padding(batch: PolicyBatch, plain: Any, padded: Any) -> xr.Dataset:
    """Loss and gradient with NaN and infinity in the padding; and means that count the padding."""

    def both(found: Any) -> Callable[[str], np.ndarray]:
        def joined(row: str) -> np.ndarray:
            value, gradient = found[row]
            return np.concatenate([value[:, None], gradient.reshape(len(value), -1)], axis=1)

        return joined

    def counts_padding(row: str) -> np.ndarray:
        rate = np.asarray(_padded_weights() / np.maximum(cases.weights("grpo"), 1e-9))
        value, gradient = plain[row]
        return np.concatenate([value[:, None], (gradient * rate).reshape(len(value), -1)], axis=1)

    rows = tuple(cases.ROWS)
    return _compared("padding", rows, both(padded), both(plain), counts_padding)


def _micro_batches(batch: PolicyBatch, plain: Any) -> xr.Dataset:
    """Sums of the losses of two halves against the whole batch's."""
    found = jax.tree.map(np.asarray, cases.split_answers(batch))
    whole = {row: plain[row][0] for row in cases.SPLIT}
    apart = _compared(
        "micro",
        cases.SPLIT,
        lambda row: found[row]["shared"],
        lambda row: whole[row],
        lambda row: found[row]["alone"],
    )
    return apart


def _on_policy(batch: PolicyBatch) -> PolicyBatch:
    return batch._replace(log_prob=batch.log_prob_old)


def _junk(batch: PolicyBatch) -> PolicyBatch:
    """The batch with other things in its padding."""
    return batch._replace(
        log_prob=np.where(batch.mask, batch.log_prob, np.nan),
        log_prob_old=np.where(batch.mask, batch.log_prob_old, np.inf),
        advantage=np.where(batch.mask, batch.advantage, -np.inf),
    )


def _alternating() -> PolicyBatch:
    """Log-ratios ±c in turn, all tokens unmasked; advantages of both signs."""
    signs = np.where(np.arange(cases.LENGTH) % 2 == 0, 1.0, -1.0)
    step = SWINGS[:, None, None] * np.broadcast_to(signs, (cases.COUNT, cases.LENGTH))
    gain = np.where(np.arange(cases.COUNT) % 2 == 0, 1.0, -0.5)[:, None] * np.ones_like(step)
    full = np.ones((cases.COUNT, cases.LENGTH), bool)
    return cases.stacked(step - 1.0, np.full_like(step, -1.0), gain, full)


def _blind_spot(batch: PolicyBatch, found: dict[str, Any]) -> xr.Dataset:
    """What GSPO and FiberPO see of log-ratios that cancel in the mean."""
    weights = np.asarray(cases.weights("gspo", batch.mask[0]))
    seen = np.asarray(cases.channels(batch.log_prob - batch.log_prob_old))
    coordinate = (
        "losses_swing",
        SWINGS,
        {"long_name": "size of alternating log-ratios", "units": "1"},
    )
    return xr.Dataset(
        {
            "losses_blind": (
                "losses_swing",
                _distance(found["gspo"][1], -weights * batch.advantage),
                {"long_name": "distance of GSPO's gradient from the one on policy", "units": "1"},
            ),
            "losses_blind_wrong": (
                "losses_swing",
                _distance(found["grpo"][1], -weights * batch.advantage),
                {"long_name": "the same of a gate that sees the tokens, GRPO's", "units": "1"},
            ),
            "losses_moved": (
                "losses_swing",
                np.abs(np.expm1(batch.log_prob - batch.log_prob_old)).mean(axis=(1, 2)),
                {"long_name": "mean distance of the ratios from 1", "units": "1"},
            ),
            "losses_channels": (
                ("losses_swing", "losses_channel"),
                seen,
                {"long_name": "aggregates of FiberPO, log s", "units": "1"},
            ),
            "losses_channels_theory": (
                "losses_swing",
                SWINGS / 2,
                {"long_name": "half the size of the log-ratios", "units": "1"},
            ),
            "losses_channels_wrong": (
                "losses_swing",
                0.0 * SWINGS,
                {"long_name": "aggregate without channels, as GSPO's log s", "units": "1"},
            ),
        },
        coords={"losses_swing": coordinate, "losses_channel": ["plus", "minus"]},
    )


def _reference(found: dict[str, Any]) -> xr.Dataset:
    """Gradient of the reference batch's tokens, in units of the gradient on policy."""
    batch = cases.reference()
    rows, mask = tuple(cases.ROWS), batch.mask[0]
    scaled = [
        (found[row][1][0] / np.where(mask, -cases.weights(row, mask) * batch.advantage[0], 1))[mask]
        for row in rows
    ]
    names = [
        f"{b + 1}.{t + 1}"
        for b, length in enumerate(cases.REFERENCE_LENGTHS)
        for t in range(length)
    ]
    step = (batch.log_prob - batch.log_prob_old)[0][mask]
    gain = batch.advantage[0][mask]
    return xr.Dataset(
        {
            "losses_share": (
                ("losses_row", "losses_token"),
                np.stack(scaled),
                {"long_name": "gradient in units of the one on policy", "units": "1"},
            ),
            "losses_token_ratio": (
                "losses_token",
                np.exp(step),
                {"long_name": "ratio", "units": "1"},
            ),
            "losses_token_advantage": (
                "losses_token",
                gain,
                {"long_name": "advantage", "units": "1"},
            ),
        },
        coords={"losses_row": list(rows), "losses_token": names},
    )


def _pull_batches() -> PolicyBatch:
    """Sequences of which only the first token has moved: a ratio each, for A > 0, then for A < 0."""
    # Filled up to whole batches with the first ones.
    lead = (-(-2 * len(RATIOS) // cases.COUNT), cases.COUNT)
    flat = np.resize(np.log(RATIOS), lead)
    gain = np.where(np.arange(flat.size) < len(RATIOS), 1.0, -1.0)
    step = np.zeros((*lead, cases.LENGTH))
    step[:, :, 0] = flat
    old = np.full_like(step, np.log(PULLED))
    own = np.arange(cases.COUNT)
    full = np.ones((cases.COUNT, cases.LENGTH), bool)
    repeated = np.repeat(gain.reshape(lead)[:, :, None], cases.LENGTH, axis=2)
    return cases.stacked(old + step, old, repeated, full, (own, own))


def _pulls(found: dict[str, Any]) -> xr.Dataset:
    """Gradient of that token in units of the one on policy."""
    full = np.ones((cases.COUNT, cases.LENGTH), bool)
    pulls = []
    for row in SHOWN:
        weight = float(np.asarray(cases.weights(row, full))[0, 0])
        own = found[row][1][:, :, 0].ravel()[: 2 * len(RATIOS)].reshape(2, -1)
        pulls.append(-own / weight * np.array([[1.0], [-1.0]]))
    return xr.Dataset(
        {
            "losses_pull": (
                ("losses_shown", "losses_sign", "losses_ratio"),
                np.stack(pulls),
                {"long_name": "gradient in units of the one on policy", "units": "1"},
            )
        },
        coords={
            "losses_shown": list(SHOWN),
            "losses_sign": ["A > 0", "A < 0"],
            "losses_ratio": ("losses_ratio", RATIOS, {"long_name": "ratio r", "units": "1"}),
        },
    )
