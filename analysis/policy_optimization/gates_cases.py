"""Gates at ratios made for one regime: both ends of log G, rollback, and endless sequences."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from boundlab.models.gates import aggregate_gate, fiber_gate
from boundlab.theory import policy_optimization as theory

# C⁺, C⁻ and ε of all that is computed but the maps; PPO clips at the same ε.
PLUS, MINUS, LIMIT = 0.12, 0.05, 0.04
FIBER = (PLUS, MINUS, LIMIT)
# Ten tokens alike, by channel: C < |ρ| < 1.1 C.
TURNED = {"plus": 0.125, "minus": -0.0525}
# Where the limit of long sequences is looked at, in units of C, and how long they are.
OUTSIDE, LONG = np.array([-3.0, -1.2, -0.5, 0.0, 0.9, 1.0, 1.01, 1.5, 4.0]), 65_536.0

fiber_log_gate = jax.jit(lambda ratio, mask: fiber_gate(ratio, mask, *FIBER)[0])


def variables(dim: str, values: dict[str, Any], words: dict[str, str]) -> xr.Dataset:
    """Variables of one dim, described in words."""
    return xr.Dataset(
        {
            f"gates_{name}": (dim, np.asarray(values[name]), {"long_name": said, "units": "1"})
            for name, said in words.items()
        }
    )


def ends() -> xr.Dataset:
    """Both ends of log G, at ratios made for them: one channel full, the other zeroed."""
    size = 6
    up = np.array([0.0, 0.0, 0.0, 0.0, size * PLUS, -10.0])
    down = np.array([-0.0, 0.0, 0.0, 0.0, -size * MINUS, 10.0])
    found = np.asarray(fiber_log_gate(np.stack([down, up]), np.ones((2, size), dtype=bool)))
    bounds = theory.gate_bounds(*FIBER)
    values = {
        "end": [found[0].min(), found[1].max()],
        "end_bound": [float(bounds.lower), float(bounds.upper)],
        "end_one_limit": [float(bounds.lower) + LIMIT, float(bounds.upper) - LIMIT],
    }
    words = {
        "end": "log G at ratios made for its ends",
        "end_bound": "−(C⁻ + 2ε) and C⁺ + 2ε",
        "end_one_limit": "the same with one ε",
    }
    described = variables("gates_side", values, words)
    return described.assign_coords(gates_side=["lower", "upper"]).assign(
        gates_slope_bound=((), float(theory.gate_lipschitz(size)), {"long_name": "T + 2"})
    )


def rollback() -> xr.Dataset:
    """Gradients by a token's log-ratio where ten equal tokens are in rollback."""
    cases = [(channel, sign) for channel in TURNED for sign in (1.0, -1.0)]
    ones = np.ones((len(cases), 10))
    ratio = np.array([TURNED[channel] for channel, _ in cases])[:, None] * ones
    gain = np.array([sign for _, sign in cases])[:, None] * ones
    found = {name: np.asarray(part) for name, part in _surrogate_gradients(ratio, gain).items()}
    channel = np.sign(ratio[:, 0])
    exact = found["theory"]
    values = {
        "rollback": found["plain"],
        "rollback_theory": exact,
        "rollback_restoring": -channel * np.abs(exact),
        "restores": -channel * np.sign(found["plain"]),
        "restores_pessimistic": -channel * np.sign(found["pessimistic"]),
        "pessimistic_gradient": found["pessimistic"],
        "clip_gradient": found["clip"],
    }
    words = {
        "rollback": "gradient by a token's log-ratio in rollback",
        "rollback_theory": "its closed form",
        "rollback_restoring": "the same, turned back to ρ = 0 in every case",
        "restores": "1 where that gradient leads back to ρ = 0, −1 elsewhere",
        "restores_pessimistic": "the same of the pessimistic form",
        "pessimistic_gradient": "gradient of the pessimistic form",
        "clip_gradient": "gradient of PPO with the same ε",
    }
    names = [f"{channel}, A {'> 0' if sign > 0 else '< 0'}" for channel, sign in cases]
    return variables("gates_case", values, words).assign_coords(gates_case=names)


@jax.jit
def _surrogate_gradients(ratio: jax.Array, gain: jax.Array) -> dict[str, jax.Array]:
    mask = np.ones(ratio.shape, dtype=bool)

    def surrogate(ratio: jax.Array, form: str) -> jax.Array:
        linear = jnp.exp(ratio) * gain
        if form == "clip":
            gated = jnp.clip(jnp.exp(ratio), 1.0 - LIMIT, 1.0 + LIMIT) * gain
        else:
            gated = jnp.exp(fiber_gate(ratio, mask, *FIBER)[0]) * gain
        per_token = gated if form == "plain" else jnp.minimum(gated, linear)
        return jnp.sum(per_token) / ratio.shape[1]

    forms = ("plain", "pessimistic", "clip")
    exact = theory.fiber_gradient(ratio, mask, gain, *FIBER)[:, 0]
    return {"theory": exact} | {form: jax.grad(surrogate)(ratio, form)[:, 0] for form in forms}


def long_sequences() -> xr.Dataset:
    """The gate of an aggregate over many tokens, and two claims about its limit."""
    x = OUTSIDE * PLUS
    values = {
        "long": np.asarray(jax.jit(aggregate_gate)(x, PLUS, LONG)),
        "long_censored": np.asarray(theory.censored_aggregate(x, PLUS)),
        "long_clip": np.clip(x, -PLUS, PLUS),
    }
    words = {
        "long": f"gate of an aggregate over {LONG:g} tokens",
        "long_censored": "x up to the budget, 0 beyond",
        "long_clip": "x clipped at the budget",
    }
    attrs = {"long_name": "aggregate over its budget", "units": "1"}
    return variables("gates_aggregate", values, words).assign_coords(
        gates_aggregate=("gates_aggregate", OUTSIDE, attrs)
    )
