"""Gates of FiberPO and of its hierarchy: values, Jacobians, bounds, and where they push the wrong way.

The library's gates and their derivatives by automatic differentiation, at drawn ratios and at ratios made
for one regime, beside the closed forms and beside what they are taken for elsewhere. Nothing is
repeated over seeds: each number is exact to rounding. Sequences have up to six tokens, one has none.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from boundlab.analysis.datasets import describe
from boundlab.analysis.policy_optimization.config import Config
from boundlab.analysis.policy_optimization.gates_cases import (
    FIBER,
    LIMIT,
    MINUS,
    PLUS,
    ends,
    fiber_log_gate,
    long_sequences,
    rollback,
    variables,
)
from boundlab.analysis.policy_optimization.gates_claims import CLAIMS as CLAIMS
from boundlab.analysis.policy_optimization.gates_maps import maps
from boundlab.experiment import Repeat
from boundlab.models import fiber_bundle
from boundlab.models.gates import aggregate_gate, fiber_gate, hierarchy_gate
from boundlab.theory import policy_optimization as theory

LENGTHS = np.array([6, 5, 4, 6, 3, 0])
MASK = np.arange(6)[None] < LENGTHS[:, None]
# Two groups in the first domain, one in the second.
GROUPS, DOMAINS = np.array([0, 0, 1, 2, 2, 2]), np.array([0, 0, 1])
DOMAIN_BUDGETS = ((PLUS, MINUS), (0.1, 0.08), (0.15, 0.1))
SCALES = (0.02, 0.1, 0.3)
# Standard deviation of log-ratios that drive every gate to its ends.
WIDE = 3.0
# All tokens of a sequence alike: gates must pass the move on, in either channel.
COMMON = np.array([0.1, 0.1, 0.1, -0.045, -0.045, 0.0])
# Inside the rollback of C⁺ for six tokens: .12 to .14.
ROLLED = 0.125


def run(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Errors of closed forms and of what gates are taken for, ends of log G, rollback, and maps."""
    del repeat  # exact: nothing is repeated over keys
    parts = [
        _jacobians(config, jax.random.fold_in(key, 0)),
        _values(config, jax.random.fold_in(key, 1)),
        ends(),
        rollback(),
        long_sequences(),
        maps(config, FIBER),
    ]
    return describe(xr.merge(parts), "1")


def _drawn(config: Config, key: jax.Array) -> np.ndarray:
    """Log-ratios (batches, B, T) at every scale; padding holds 0 here, so that ratios exist."""
    shape = (len(SCALES), config.gates_batches, *MASK.shape)
    scale = np.array(SCALES)[:, None, None, None]
    drawn = scale * np.asarray(jax.random.normal(key, shape, dtype=jnp.float64))
    return np.where(MASK, drawn, 0.0).reshape(-1, *MASK.shape)


def _jacobians(config: Config, key: jax.Array) -> xr.Dataset:
    """Jacobians by automatic differentiation, at drawn ratios, on policy and in common mode."""
    drawn = _drawn(config, key)
    common = np.where(MASK, COMMON[:, None], 0.0)
    found = _differentiated(np.concatenate([drawn, np.zeros((1, *MASK.shape)), common[None]]))
    found = {name: np.asarray(values) for name, values in found.items()}
    words = {
        "jacobian_error": "largest error of Proposition 5.2",
        "uncoupled_error": "the same for each token's clip alone",
        "off_trajectory": "largest derivative between sequences, FiberPO",
        "cross_domain": "largest derivative between domains, FiberPO-Domain",
        "cross_trajectory": "largest derivative between sequences, FiberPO-Domain",
    }
    count = len(drawn)
    parts = [
        variables("gates_batch", {name: found[name][:count] for name in words}, words),
        variables(
            "gates_gate",
            {
                "on_policy": [found[f"{name}_identity"][count] for name in ("fiber", "domain")],
                "on_policy_sign": [found["sign_identity"][count]] * 2,
            },
            {
                "on_policy": "largest entry of J - I at r = 1",
                "on_policy_sign": "the same where the sign of 0 is 0",
            },
        ).assign_coords(gates_gate=["FiberPO", "FiberPO-Domain"]),
        variables(
            "gates_common",
            {
                "common": [found["fiber_identity"][-1]],
                "common_clip": [found["clip_identity"][-1]],
            },
            {
                "common": "largest entry of J - I where all tokens moved alike",
                "common_clip": "the same for PPO's clip",
            },
        ),
    ]
    scales = np.repeat(SCALES, config.gates_batches)
    attrs = {"long_name": "standard deviation of the log-ratios", "units": "1"}
    return xr.merge(parts).assign_coords(gates_scale=("gates_batch", scales, attrs))


@jax.jit
def _differentiated(ratios: jax.Array) -> dict[str, jax.Array]:
    batch = len(LENGTHS)
    both = MASK[:, :, None] & MASK[:, None, :]
    identity = np.where(both, np.eye(6)[None], 0.0)
    same = np.eye(batch, dtype=bool)[:, None, :, None]
    domain = DOMAINS[GROUPS]
    related = (domain[:, None] == domain[None])[:, None, :, None]
    shape = (batch, 6, batch, 6)
    at = np.arange(batch)

    def largest(values: Any) -> jax.Array:
        return jnp.max(jnp.abs(values))

    def jacobian(gate: Any, log_ratio: jax.Array) -> jax.Array:
        def gated(ratio: jax.Array) -> jax.Array:
            return jnp.where(MASK, jnp.exp(gate(jnp.log(ratio))), 0.0)

        return jax.jacrev(gated)(jnp.exp(log_ratio))

    def one(log_ratio: jax.Array) -> dict[str, jax.Array]:
        log_gate, info = fiber_gate(log_ratio, MASK, *FIBER)
        fiber = jacobian(lambda x: fiber_gate(x, MASK, *FIBER)[0], log_ratio)
        domains = jacobian(
            lambda x: hierarchy_gate(x, MASK, (GROUPS, DOMAINS), DOMAIN_BUDGETS, LIMIT)[0],
            log_ratio,
        )
        own = jnp.where(MASK & (jnp.abs(info.u) <= LIMIT), jnp.exp(log_gate - log_ratio), 0.0)
        clip = (jnp.abs(jnp.expm1(log_ratio)) <= LIMIT).astype(log_ratio.dtype)
        blocks = fiber[at, :, at, :]
        across = jnp.where(np.broadcast_to(same, shape), 0.0, domains)
        return {
            "jacobian_error": largest(blocks - theory.fiber_jacobian(log_ratio, MASK, *FIBER)),
            "uncoupled_error": largest(blocks - identity * own[:, :, None].repeat(6, axis=2)),
            "off_trajectory": largest(jnp.where(np.broadcast_to(same, shape), 0.0, fiber)),
            "cross_domain": largest(jnp.where(np.broadcast_to(related, shape), 0.0, domains)),
            "cross_trajectory": largest(across),
            "fiber_identity": largest(blocks - identity),
            "domain_identity": jnp.maximum(
                largest(domains[at, :, at, :] - identity), largest(across)
            ),
            "sign_identity": largest(jacobian(_sign_gate, log_ratio)[at, :, at, :] - identity),
            "clip_identity": largest(identity * (clip - 1.0)[:, :, None].repeat(6, axis=2)),
        }

    # A batch at a time: (B·T)² derivatives of each.
    return jax.lax.map(one, ratios)


def _sign_gate(log_ratio: jax.Array) -> jax.Array:
    """FiberPO with l = sgn ρ where the sign of 0 is 0, as jnp.sign has it."""
    ratio = jnp.where(MASK, log_ratio, 0.0)
    sign, length = jnp.sign(ratio), np.maximum(LENGTHS, 1.0)
    plus, minus = (jnp.sum(jnp.maximum(part, 0.0), axis=1) / length for part in (ratio, -ratio))
    base = aggregate_gate(plus, PLUS, length) - aggregate_gate(minus, MINUS, length)
    own, other = (
        jnp.where(ratio > 0, one[:, None].repeat(6, axis=1), two[:, None].repeat(6, axis=1))
        for one, two in ((plus, minus), (minus, plus))
    )
    u, v = sign * ratio - own, -other
    inner = jnp.clip(sign * u, -LIMIT, LIMIT) - jnp.clip(sign * v, -LIMIT, LIMIT)
    return base[:, None].repeat(6, axis=1) + inner


def _values(config: Config, key: jax.Array) -> xr.Dataset:
    """Values of the gate by three routes, its symmetries and slopes, at drawn ratios."""
    drawn = _drawn(config, key)
    wide_key, move_key, gain_key, box_key = (jax.random.fold_in(key, n) for n in range(4))

    def normal(key: jax.Array, shape: tuple[int, ...]) -> np.ndarray:
        return np.asarray(jax.random.normal(key, shape, dtype=jnp.float64))

    wide = WIDE * normal(wide_key, (config.gates_batches, *MASK.shape))
    ratios = np.concatenate([drawn, np.where(MASK, wide, 0.0), np.full((1, *MASK.shape), ROLLED)])
    moves = 1e-3 * normal(move_key, ratios.shape)
    moves[-1] = 1e-3
    found = _compared(ratios, moves, normal(gain_key, ratios.shape))
    words = {
        "theory_error": "largest error of log G by its definition",
        "clamp_error": "largest error of a symmetric clamp of the mean log-ratio",
        "density_error": "largest error of log G by densities",
        "gated_base_error": "the same with residuals of the gated base",
        "reflecting": "largest aggregate left after the base is taken away",
        "padded_kernel": "the same for a kernel of 1/6 a token, whatever the length",
        "depth_error": "largest change of log G by levels of one sequence each",
        "loose_level_error": "the same where such a level has twice the budgets",
        "symmetry_error": "largest error under ρ → −ρ with budgets exchanged, and permutations",
        "symmetry_kept_error": "the same with budgets kept",
        "largest_log_gate": "largest log G",
        "smallest_log_gate": "smallest log G",
        "slope": "largest change of log G over that of ρ, six tokens",
        "pessimistic_excess": "largest surrogate of a sequence less the linear one, pessimistic",
        "plain_excess": "the same for FiberPO as published",
    }
    values = {name: np.asarray(part) for name, part in found.items()}
    # Drawn inside the box, and at its corners: every pattern of signs.
    radius = float(theory.identity_box(((PLUS, MINUS),), LIMIT))
    corners = np.array(np.meshgrid(*[[-1.0, 1.0]] * 6)).reshape(6, -1).T
    inside = np.asarray(jax.random.uniform(box_key, (128, 6), jnp.float64, -1.0, 1.0))
    units = np.concatenate([corners, inside])
    box = {}
    for name, size in {"box_error": radius, "budget_box_error": min(PLUS, MINUS)}.items():
        log_gate = fiber_log_gate(size * units, np.ones(units.shape, dtype=bool))
        box[name] = np.abs(np.asarray(log_gate) - size * units).max(axis=1)
    said = {
        "box_error": "largest |log G - ρ| of a sequence in the identity box",
        "budget_box_error": "the same in a box given by the budgets alone",
    }
    return xr.merge([variables("gates_draw", values, words), variables("gates_corner", box, said)])


@jax.jit
def _compared(ratios: jax.Array, moves: jax.Array, gains: jax.Array) -> dict[str, jax.Array]:
    order = np.array([3, 1, 0, 2])
    alone = np.arange(len(LENGTHS))[::-1].copy()
    pair, loose = (PLUS, MINUS), (2 * PLUS, 2 * MINUS)
    lengths = np.maximum(LENGTHS, 1.0)

    def gate(ratio: jax.Array, *budgets: float) -> jax.Array:
        return fiber_gate(ratio, MASK, *budgets)[0]

    def largest(values: Any) -> jax.Array:
        return jnp.max(jnp.abs(values))

    def one(ratio: jax.Array, move: jax.Array, gain: jax.Array) -> dict[str, jax.Array]:
        log_gate = gate(ratio, *FIBER)
        mean = jnp.clip(jnp.sum(ratio, axis=1) / lengths, -(PLUS + MINUS), PLUS + MINUS)
        mean = mean[:, None].repeat(6, axis=1)
        clamp = jnp.where(MASK, mean + jnp.clip(ratio - mean, -LIMIT, LIMIT), 0.0)
        # The first four tokens are there in the sequences of four or more.
        turned = ratio.at[:3, :4].set(ratio[:3, order])
        turned_gate = log_gate.at[:3, :4].set(log_gate[:3, order])
        density = fiber_bundle.ratio_density(ratio, MASK)
        levels = [
            hierarchy_gate(ratio, MASK, parents, budgets, LIMIT)[0] - log_gate
            for parents, budgets in (((), (pair,)), ((alone, alone), (pair,) * 3))
        ]
        gained, linear = jnp.exp(log_gate) * gain, jnp.exp(ratio) * gain
        moved = jnp.max(jnp.abs(move[0]))
        return {
            "theory_error": largest(log_gate - theory.fiber_log_gate(ratio, MASK, *FIBER)),
            "clamp_error": largest(log_gate - clamp),
            "density_error": largest(log_gate - fiber_bundle.density_gate(ratio, MASK, *FIBER)),
            "gated_base_error": largest(
                log_gate - fiber_bundle.density_gate(ratio, MASK, *FIBER, residual_of_gated=True)
            ),
            "reflecting": fiber_bundle.check_reflecting(density, MASK),
            "padded_kernel": fiber_bundle.check_reflecting(density, MASK, _padded_kernel),
            "depth_error": jnp.maximum(*map(largest, levels)),
            "loose_level_error": largest(
                hierarchy_gate(ratio, MASK, (alone,), (pair, loose), LIMIT)[0] - log_gate
            ),
            "symmetry_error": jnp.maximum(
                largest(gate(-ratio, MINUS, PLUS, LIMIT) + log_gate),
                largest(gate(turned, *FIBER) - turned_gate),
            ),
            "symmetry_kept_error": largest(gate(-ratio, *FIBER) + log_gate),
            "largest_log_gate": jnp.max(log_gate),
            "smallest_log_gate": jnp.min(log_gate),
            "slope": largest((gate(ratio + move, *FIBER) - log_gate)[0]) / moved,
            "pessimistic_excess": _excess(jnp.minimum(gained, linear) - linear),
            "plain_excess": _excess(gained - linear),
        }

    return jax.lax.map(lambda parts: one(*parts), (ratios, moves, gains))


def _excess(difference: jax.Array) -> jax.Array:
    """The largest mean over a sequence's tokens, of those with tokens."""
    total = jnp.sum(jnp.where(MASK, difference, 0.0), axis=1)
    return jnp.max((total / np.maximum(LENGTHS, 1.0))[LENGTHS > 0])


def _padded_kernel(base: jax.Array, mask: Any) -> jax.Array:
    """What is given to each token if the padded length takes the place of its sequence's own."""
    scale = np.maximum(LENGTHS, 1.0) / MASK.shape[1]
    return fiber_bundle.kernel(base * scale[:, None].repeat(2, axis=1), mask)
