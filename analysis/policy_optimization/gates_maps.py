"""What is drawn of FiberPO's gate: its regimes over aggregates and ratios, a sweep, Jacobians.

Settings follow the paper's figures where it states them: base weights at C⁺ = .2, C⁻ = .1, two tokens,
regimes of three tokens at ε = .025, C⁺ = .15, C⁻ = .09, the sweep of ten tokens at .04, .12, .05 (with
the rollback of the definition, k = T = 10).
"""

from typing import Any

import jax
import numpy as np
import xarray as xr

from boundlab.analysis.policy_optimization.config import Config
from boundlab.models.gates import FiberInfo, aggregate_gate, fiber_gate
from boundlab.theory import policy_optimization as theory

BASE_BUDGETS, BASE_TOKENS = (0.2, 0.1), 2
SIMPLEX = (0.15, 0.09, 0.025)
# Ratios r = 1 + x·(1, −1, 0)/√2 + y·(1, 1, −2)/√6 of three tokens with Σr = 3.
REACH, NEAR = 1.2, 0.3
AXES = np.array([[1.0, -1.0, 0.0], [1.0, 1.0, -2.0]]) / np.sqrt([[2.0], [6.0]])
COUNTS = (2, 10, 100)
CLIP = 0.2
# Shape of the sweep's moves: ten tokens, mean 0, largest 1.
MOVES = np.array([1.0, 0.75, 0.5, 0.3, 0.15, -0.2, -0.35, -0.55, -0.7, -0.9])
# (log s⁺, log s⁻) of the Jacobians that are drawn, in an order of growing departure.
CASES = {
    "on policy": (0.0, 0.0),
    "fiber clip": (0.08, 0.03),
    "rollback of +": (0.125, 0.03),
    "rollback of −": (0.08, 0.055),
    "+ zeroed": (0.2, 0.03),
    "both zeroed": (0.2, 0.1),
}
# Shares of the channels' sums that the six tokens have: three up, three down.
SHARES = np.array([0.6, 0.3, 0.1, -0.15, -0.3, -0.55])


def maps(config: Config, budgets: tuple[float, float, float]) -> xr.Dataset:
    """Base weights, regimes of three tokens, gates along a sweep, and Jacobians by regime."""
    return xr.merge([_base(config), _simplex(config), _sweep(budgets), _blocks(budgets)])


def _base(config: Config) -> xr.Dataset:
    """Gates of several numbers of tokens, and log w over both aggregates."""
    x = np.linspace(-0.4, 0.4, 2 * config.gates_grid - 1)
    curves = [_gate(x, BASE_BUDGETS[0], float(count)) for count in COUNTS]
    s = np.linspace(0.0, 0.35, config.gates_grid)
    plus, minus = (_gate(s, budget, float(BASE_TOKENS)) for budget in BASE_BUDGETS)
    limit = np.asarray(theory.censored_aggregate(x, BASE_BUDGETS[0]))
    return xr.Dataset(
        {
            "gates_curve": (
                ("gates_count", "gates_x"),
                np.array(curves),
                {"long_name": "gated aggregate", "units": "1"},
            ),
            "gates_curve_limit": (
                "gates_x",
                limit,
                {"long_name": "gated aggregate of endless sequences", "units": "1"},
            ),
            "gates_base_weight": (
                ("gates_s_minus", "gates_s_plus"),
                plus[None, :] - minus[:, None],
                {"long_name": "log of the base weight", "units": "1"},
            ),
            "gates_base_budget": (
                "gates_channel",
                np.array(BASE_BUDGETS),
                {"long_name": "budgets of the map of base weights", "units": "1"},
            ),
            "gates_base_tokens": (
                (),
                float(BASE_TOKENS),
                {"long_name": "tokens of the map of base weights", "units": "1"},
            ),
        },
        coords={
            "gates_count": list(COUNTS),
            "gates_x": ("gates_x", x, {"long_name": "aggregate log s", "units": "1"}),
            "gates_s_plus": s,
            "gates_s_minus": s,
            "gates_channel": ["plus", "minus"],
        },
    )


def _gate(x: np.ndarray, budget: float, count: float) -> np.ndarray:
    return np.asarray(jax.jit(aggregate_gate)(x, budget, count))


def _simplex(config: Config) -> xr.Dataset:
    """Regimes of three tokens: which channels pass, and how many tokens are clipped."""
    gate = jax.jit(fiber_gate)
    variables: dict[str, Any] = {}
    coords: dict[str, Any] = {}
    for name, reach in (("far", REACH), ("near", NEAR)):
        side = np.linspace(-reach, reach, config.gates_grid)
        x, y = np.meshgrid(side, side)
        ratio = 1.0 + x[..., None] * AXES[0] + y[..., None] * AXES[1]
        allowed = (ratio > 0.0).all(axis=2)
        log_ratio = np.log(np.where(allowed[..., None], ratio, 1.0)).reshape(-1, 3)
        _, info = gate(log_ratio, np.ones(log_ratio.shape, dtype=bool), *SIMPLEX)
        if name == "far":
            values, words = _base_regime(info), "base regime, by how many channels pass"
        else:
            values = (np.abs(np.asarray(info.u)) > SIMPLEX[2]).sum(axis=1)
            words = "tokens that the fiber gate clips"
        dims = tuple(f"gates_{name}_{axis}" for axis in "yx")
        variables[f"gates_{name}_regime"] = (
            dims,
            np.where(allowed, values.reshape(x.shape), np.nan),
            {"long_name": words, "units": "1"},
        )
        coords |= dict.fromkeys(dims, side)
    return xr.Dataset(variables, coords=coords)


def _base_regime(info: FiberInfo) -> np.ndarray:
    """0 both pass, 1 one in rollback, 2 one zeroed, 3 none passes, one in rollback, 4 both zeroed."""
    plus, minus = np.asarray(info.regime_plus), np.asarray(info.regime_minus)
    low, high = np.minimum(plus, minus), np.maximum(plus, minus)
    return np.where(low == 0, high, np.where(low == 1, 3, 4))


def _sweep(budgets: tuple[float, float, float]) -> xr.Dataset:
    """Ratios 1 + tΔ of ten tokens, as FiberPO and as GRPO's clip give them on."""
    steps = np.linspace(0.0, 0.6, 121)
    ratio = 1.0 + steps[:, None] * MOVES
    log_gate, info = jax.jit(fiber_gate)(np.log(ratio), np.ones(ratio.shape, dtype=bool), *budgets)
    dims = ("gates_step", "gates_token")
    curves = {
        "fiber": (np.exp(np.asarray(log_gate)), "gated ratio, FiberPO"),
        "grpo": (np.clip(ratio, 1 - CLIP, 1 + CLIP), "gated ratio, clip of GRPO"),
    }
    sums = {
        "s_plus_sweep": (info.log_s_plus, "aggregate of the tokens made likelier"),
        "s_minus_sweep": (info.log_s_minus, "aggregate of the tokens made less likely"),
    }
    variables = {
        f"gates_{name}": (dims, values, {"long_name": words, "units": "1"})
        for name, (values, words) in curves.items()
    } | {
        f"gates_{name}": (dims[0], np.asarray(values), {"long_name": words, "units": "1"})
        for name, (values, words) in sums.items()
    }
    variables["gates_budgets"] = (
        "gates_channel",
        np.array(budgets[:2]),
        {"long_name": "budgets of sweep and Jacobians", "units": "1"},
    )
    return xr.Dataset(variables, coords={"gates_step": steps, "gates_token": MOVES})


def _blocks(budgets: tuple[float, float, float]) -> xr.Dataset:
    """Jacobians of one sequence of six tokens in each regime, in closed form."""
    size = len(SHARES)
    ratio = np.array(
        [np.where(SHARES > 0, up, down) * SHARES * size for up, down in CASES.values()]
    )
    mask = np.ones(ratio.shape, dtype=bool)
    dims = ("gates_regime", "gates_row", "gates_column")
    found = jax.jit(theory.fiber_jacobian)(ratio, mask, *budgets)
    attrs = {"long_name": "derivative of a gated ratio by a ratio", "units": "1"}
    return xr.Dataset(
        {"gates_jacobian": (dims, np.asarray(found), attrs)},
        coords={"gates_regime": list(CASES)},
    )
