"""Gates that couple tokens, written out entry by entry: FiberPO at any depth, and APC a sequence.

Slow on purpose: NumPy over lists of tokens, with Jacobians by the chain rule. Symbols as in
docs/policy_optimization.md#gates: ρ log-ratios of N tokens, `nodes[k]` the node of each token at level k,
sequences first.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int


class Gate(NamedTuple):
    """Gated ratios of N tokens and how they respond."""

    value: Float[np.ndarray, " tokens"]
    """G."""
    jacobian: Float[np.ndarray, "tokens tokens"]
    """∂G_i/∂ρ_j."""


def fiber(
    rho: Float[np.ndarray, " tokens"],
    nodes: list[Int[np.ndarray, " tokens"]],
    budgets: list[tuple[float, float]],
    epsilon: float,
) -> Gate:
    """FiberPO: log G_i = log w + clip(l_iu_i, ±ε) − clip(l_iv_i, ±ε), with a g a level in log w."""
    count, sequence = len(rho), nodes[0]
    lengths = np.bincount(sequence)[sequence]
    sign = np.where(rho >= 0, 1, -1)
    logs, slopes = [], []  # by level: (N,) and (N, N) for both channels, + first
    for node in nodes:
        inside = node[:, None] == node[None, :]
        members = np.array([len(set(sequence[node == own])) for own in node])
        level_logs, level_slopes = [], []
        for channel in (1, -1):
            part = inside * np.where(sign == channel, 1.0 / lengths, 0.0) / members[:, None]
            level_logs.append(part @ (channel * rho))
            level_slopes.append(channel * part)
        logs.append(level_logs)
        slopes.append(level_slopes)
    log_gate, response = np.zeros(count), np.zeros((count, count))
    for level, (node, pair) in enumerate(zip(nodes, budgets, strict=True)):
        tokens = np.bincount(node)[node]
        for place, channel in enumerate((1, -1)):
            own, slope = logs[level][place], slopes[level][place]
            if level + 1 < len(nodes):
                own = own - logs[level + 1][place]
                slope = slope - slopes[level + 1][place]
            gates = [_gate(float(x), pair[place], int(k)) for x, k in zip(own, tokens, strict=True)]
            log_gate += channel * np.array([value for value, _ in gates])
            response += channel * np.array([rate for _, rate in gates])[:, None] * slope
    for i in range(count):
        own, other = (0, 1) if sign[i] > 0 else (1, 0)
        u, v = sign[i] * rho[i] - logs[0][own][i], -logs[0][other][i]
        log_gate[i] += sign[i] * (min(max(u, -epsilon), epsilon) - min(max(v, -epsilon), epsilon))
        if abs(u) <= epsilon:
            response[i, i] += 1.0
            response[i] -= sign[i] * slopes[0][own][i]
        if abs(v) <= epsilon:
            response[i] += sign[i] * slopes[0][other][i]
    value = np.exp(log_gate)
    return Gate(value, value[:, None] * response)


def censored(rho: Float[np.ndarray, " tokens"], radius: float) -> Gate:
    """APC of one sequence: 1 + clip(r − 1, ±B⁺), B_i = Tδ − Σ_{j≠i}|r_j − 1|."""
    ratio, count = np.exp(rho), len(rho)
    step = ratio - 1.0
    value, jacobian = np.zeros(count), np.zeros((count, count))
    for i in range(count):
        others = [j for j in range(count) if j != i]
        room = max(count * radius - sum(abs(step[j]) for j in others), 0.0)
        if abs(step[i]) <= room:
            value[i], jacobian[i, i] = ratio[i], ratio[i]
        else:
            value[i] = 1.0 + np.sign(step[i]) * room
            for j in others if room > 0.0 else []:
                jacobian[i, j] = -np.sign(step[i]) * np.sign(step[j]) * ratio[j]
    return Gate(value, jacobian)


def _gate(x: float, budget: float, k: int) -> tuple[float, float]:
    """g(x; C, k) and its slope."""
    if abs(x) <= budget:
        return x, 1.0
    if abs(x) < (1.0 + 1.0 / k) * budget:
        return float(np.sign(x) * (k + 1.0) * budget - k * x), -float(k)
    return 0.0, 0.0
