"""Which batch size and fan-out to train with: predictions over the grid, and a cell with reasons.

The predictions are those of the linear one-layer network with mean aggregation and squared loss, where
they are exact. Symbols: n training nodes, b batch size, β fan-out, r features, K outputs, d_i in-degree,
m_i = min(β, d_i), η step size, M = C_hh + V̄(β).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Float, Int

from boundlab.analysis.fanout.advice_arguments import Problem, check_arguments
from boundlab.analysis.fanout.fan_out_effects import (
    FOLDS,
    FanOutEffect,
    compressed,
    fan_out_effects,
)
from boundlab.checks import fail
from boundlab.theory.fanout import expected_touched_nodes, training_flops
from boundlab.typing import Numbers, Scalar

SHARE = 0.05
"""Share of the loss that can be explained which the fan-out, and the noise, may cost."""
COST_FACTOR = 2.0
"""Times the least operations that a larger batch may take: it takes fewer steps."""
MANY = 20
"""With this many training nodes a feature, the training loss is as good as a held-out one."""
FITTED = 1e-6
"""Share of the loss of the output 0 below which the training nodes count as fitted without error."""
FEW_NODES = 1000
"""Up to so many training nodes every fold is held out in turn, else one of them."""


class Advice(NamedTuple):
    """The recommended cell, why, and the predictions for every cell."""

    batch_size: int
    fan_out: int
    reasons: tuple[str, ...]
    table: xr.Dataset


def advise(
    graph: Any,
    memory_budget: Scalar,
    features: Numbers,
    targets: Numbers,
    train_nodes: Any = None,
    batch_sizes: Sequence[int] | None = None,
    fan_outs: Sequence[int] | None = None,
) -> Advice:
    """Recommend a batch size and a fan-out for training within a memory budget.

    The rule. *Fan-out*: the smallest whose evaluation loss (all neighbours, weights W_β at which
    training with β sampled neighbours aims) exceeds the least one by at most 5 % of the loss that can be
    explained, or by one standard error of the paired difference if that is more. The evaluation loss
    is held out (five folds; one of them with over 1,000 training nodes) unless there are over 20
    training nodes a feature: with few nodes a small fan-out is a ridge that helps. If no cell with
    that fan-out fits the budget: of the fan-outs that fit, the one of least evaluation loss.
    *Batch size*: the largest that fits and whose predicted operations, flops/η, are at most twice the
    least, with the largest step size that is stable, η ≤ 1/(λ_max(M) + tr M/b), and whose noise floor
    (η/4) tr Cov stays within the same 5 %. Up to about that size steps can grow with b, so that larger
    batches take fewer steps for the same work.

    Memory of a training step, in bytes, in the worst batch (so that it is never exceeded), four bytes
    a number: 4·[U·r + 2·E + 2·b·(r + K) + b·K + 2·K·r]: features of the touched nodes
    U = min(nodes within reach, Σ (1 + m_i)), sender and receiver of the sampled edges E = Σ m_i (sums
    over the b training nodes of largest m_i), aggregated inputs and outputs with their gradients,
    targets, parameters with their gradient. It grows with b and β. The graph itself is held elsewhere.

    Args:
        graph: a Graph or DirectedGraph of boundlab.models.graphs.
        memory_budget: bytes, > 0.
        features: (all nodes, r), finite.
        targets: (all nodes, K), one-hot for classes; finite on the training nodes.
        train_nodes: distinct nodes to train on, none with the label −1. By default all nodes that
            have a target: a label that isn't −1 (if the graph has labels), no NaN among
            the targets, and, if K ≥ 2, no row of zeros where all others are one-hot.
        batch_sizes: candidates from 1 to n; by default powers of two, and n.
        fan_outs: candidates ≥ 1; by default 1, 2, 3, 5, 10, 15, 25, 50, 100, … below the degree that
            95 % of the training nodes don't exceed, and the largest degree.

    Returns:
        Advice. `table` has the dims `batch_size` and `fan_out` and, for every cell: `floor` (least
        sampled loss, a mean of ½‖·‖²), `gradient_noise` (tr Cov of the batch gradient at W_β),
        `touched_nodes` (expected, of one step), `memory` (bytes), `flops` (of one step), `step_size`
        (η above) and `relative_cost` (flops/η, 1 for the cheapest cell); and `evaluation_loss` over
        `fan_out`.

    Raises:
        ValueError: an argument is out of range, not finite or of another shape; for
            `memory_budget` too small for every cell, with the least that would do.

    Source: derived (docs/fanout.md, Advice; theory of its sections Implicit ridge, Gradient noise, Cost).

    """
    problem = check_arguments(
        graph, memory_budget, features, targets, train_nodes, batch_sizes, fan_outs
    )
    memory = _memory(problem)
    fits = memory <= problem.memory_budget
    if not fits.any():
        least = f"at least {memory.min()} bytes"
        raise fail("memory_budget", f"{problem.memory_budget:g} bytes", least)
    x = compressed(graph, problem.features, problem.nodes)
    num_folds = 0
    if 2 * FOLDS <= len(problem.nodes) <= MANY * x.shape[1]:
        num_folds = FOLDS if len(problem.nodes) <= FEW_NODES else 1
    effects = fan_out_effects(graph, x, problem.targets, problem.nodes, problem.fan_outs, num_folds)
    table = _table(graph, problem, effects, num_folds)
    column, why_fan_out = _choose_fan_out(problem, effects, fits)
    row, why_batch = _choose_batch_size(table, column, fits)
    cell = table.isel(batch_size=row, fan_out=column)
    reasons = (*why_fan_out, why_batch, _resources(problem, cell), *problem.notes)
    table.attrs |= {
        "recommended_batch_size": problem.batch_sizes[row],
        "recommended_fan_out": problem.fan_outs[column],
        "memory_budget": problem.memory_budget,
        "num_train": len(problem.nodes),
    }
    return Advice(problem.batch_sizes[row], problem.fan_outs[column], reasons, table)


def _table(graph: Any, problem: Problem, effects: list[FanOutEffect], num_folds: int) -> xr.Dataset:
    nodes, n = problem.nodes, len(problem.nodes)
    num_features, outputs = problem.features.shape[1], problem.targets.shape[1]
    b = np.array(problem.batch_sizes, dtype=np.float64)[:, None]
    between, within, largest, trace, floor = (
        np.array([getattr(effect, name) for effect in effects])[None, :]
        for name in ("between", "within", "largest", "trace", "floor")
    )
    noise = (1.0 / b - 1.0 / n) * between + within / b
    evaluation = np.array([effect.losses.mean() for effect in effects])
    curvature = largest + trace / b
    # 0 where nothing is to be learned: any step size does.
    allowed = SHARE * _explainable(problem, effects)
    inverse_step = np.maximum(curvature, noise / (4.0 * allowed) if allowed > 0.0 else 0.0)
    edges = np.minimum(problem.degrees[:, None], problem.fan_outs).mean(axis=0).tolist()
    widths = [num_features, outputs]
    flops = np.array(
        [
            [float(training_flops([size * mean], [size], widths)) for mean in edges]
            for size in problem.batch_sizes
        ]
    )
    touched = np.stack(
        [
            np.asarray(expected_touched_nodes(graph, problem.batch_sizes, beta, nodes))
            for beta in problem.fan_outs
        ],
        axis=1,
    )
    cost = flops * inverse_step
    known = inverse_step > 0.0
    step_size = np.where(known, 1.0 / np.where(known, inverse_step, 1.0), np.inf)
    cells = ("batch_size", "fan_out")
    training = f"held out, {num_folds} of {FOLDS} folds" if num_folds else "training nodes"
    mean_loss = "mean over nodes of ½‖·‖²"
    variables = {
        "floor": (np.broadcast_to(floor, noise.shape).copy(), "least sampled loss", mean_loss),
        "gradient_noise": (noise, "tr Cov of the batch gradient", "gradient squared"),
        "touched_nodes": (touched, "expected touched nodes of a step", "nodes"),
        "memory": (_memory(problem), "largest memory of a step", "bytes"),
        "flops": (flops, "operations of a step", "operations"),
        "step_size": (step_size, "largest step size, stable and quiet enough", "1/curvature"),
        "relative_cost": (
            cost / cost.min() if cost.min() > 0.0 else np.ones_like(cost),
            "predicted operations to the same loss",
            "times the cheapest cell's",
        ),
    }
    return xr.Dataset(
        {
            **{
                name: (cells, values, {"long_name": text, "units": units})
                for name, (values, text, units) in variables.items()
            },
            "evaluation_loss": (
                "fan_out",
                evaluation,
                {"long_name": f"loss with all neighbours ({training})", "units": mean_loss},
            ),
        },
        coords={"batch_size": list(problem.batch_sizes), "fan_out": list(problem.fan_outs)},
    )


def _memory(problem: Problem) -> Int[np.ndarray, "b beta"]:
    """Bytes of a training step in the worst batch; formula in `advise`."""
    r, outputs = problem.features.shape[1], problem.targets.shape[1]
    sampled = np.minimum(problem.degrees[:, None], problem.fan_outs)
    most = np.cumsum(-np.sort(-sampled, axis=0), axis=0)  # of the b nodes that sample most
    size = np.array(problem.batch_sizes)[:, None]
    edges = most[size[:, 0] - 1]
    touched = np.minimum(problem.reachable, edges + size)
    numbers = touched * r + 2 * edges + 2 * size * (r + outputs) + size * outputs + 2 * outputs * r
    return 4 * numbers


def _explainable(problem: Problem, effects: list[FanOutEffect]) -> float:
    """Loss of the output 0 less the best evaluation loss; of the output 0 alone if nothing is learned."""
    zero = _zero_loss(problem)
    best = min(float(effect.losses.mean()) for effect in effects)
    return zero - best if best < zero else zero


def _choose_fan_out(
    problem: Problem, effects: list[FanOutEffect], fits: np.ndarray
) -> tuple[int, tuple[str, ...]]:
    """Position of the fan-out in the grid, and why."""
    evaluation = np.array([effect.losses.mean() for effect in effects])
    best = int(np.argmin(evaluation))
    allowed = SHARE * _explainable(problem, effects)
    beta = problem.fan_outs
    wanted = next(
        place
        for place, effect in enumerate(effects)
        if _excess(effect.losses - effects[best].losses, allowed) <= 0.0
    )
    chosen = wanted
    if wanted == best:
        why = f"fan-out {beta[best]} has the least evaluation loss, {evaluation[best]:.4g}"
    else:
        why = (
            f"fan-out {beta[wanted]} is the smallest whose evaluation loss, {evaluation[wanted]:.4g}, is "
            f"as good as that of the best, {evaluation[best]:.4g} at {beta[best]} (to {SHARE:.0%} of "
            "what can be explained, or one standard error)"
        )
    possible = np.flatnonzero(fits.any(axis=0))
    if chosen not in possible:
        chosen = int(possible[np.argmin(evaluation[possible])])
        why = (
            f"fan-out {beta[chosen]} has the least evaluation loss, {evaluation[chosen]:.4g}, of those "
            f"that fit the memory; {beta[wanted]} would reach {evaluation[wanted]:.4g}"
        )
    floor = (
        f"sampled loss can't fall below {effects[chosen].floor:.4g} at fan-out {beta[chosen]}; at "
        f"{beta[-1]}, the largest tried, below {effects[-1].floor:.4g}"
    )
    if effects[-1].floor < FITTED * _zero_loss(problem):
        floor = (
            f"{len(problem.nodes)} training nodes can be fitted without error, so that floors say "
            "nothing of new nodes: small fan-outs are judged as the ridge that they are"
        )
    return chosen, (why, floor)


def _zero_loss(problem: Problem) -> float:
    """Loss of the output 0 on the training nodes."""
    return 0.5 * float(np.mean(np.sum(problem.targets[problem.nodes] ** 2, axis=1)))


def _excess(apart: Float[np.ndarray, " evaluated"], allowed: float) -> float:
    """Mean of paired differences less what is allowed, or less its standard error if that is more."""
    error = float(apart.std(ddof=1)) / len(apart) ** 0.5 if len(apart) > 1 else 0.0
    return float(apart.mean()) - max(allowed, error)


def _choose_batch_size(table: xr.Dataset, column: int, fits: np.ndarray) -> tuple[int, str]:
    """Position of the batch size in the grid, and why."""
    cells = table.isel(fan_out=column)
    cost = np.where(fits[:, column], cells["relative_cost"].values, np.inf)
    cheapest = int(np.argmin(cost))
    row = int(np.flatnonzero(cost <= COST_FACTOR * cost[cheapest])[-1])
    size, last = table["batch_size"].values, len(fits) - 1
    limit = "no larger one was asked for"
    if row < last:
        limit = "the next would not fit the memory"
        if fits[row + 1, column]:
            limit = f"the next, {size[row + 1]}, costs {cost[row + 1]:.3g}"
    noise = float(cells["gradient_noise"].values[row])
    return row, (
        f"batch size {size[row]} is the largest that fits and costs, with {cost[row]:.3g}, at most "
        f"{COST_FACTOR:g} times as much as the cheapest one at fan-out "
        f"{int(cells['fan_out'])}, {cost[cheapest]:.3g} at batch size {size[cheapest]} ({limit}); "
        f"its gradient noise is {noise:.3g}"
    )


def _resources(problem: Problem, cell: xr.Dataset) -> str:
    return (
        f"a step takes at most {int(cell['memory']):,} of {problem.memory_budget:,.0f} bytes, touches "
        f"{float(cell['touched_nodes']):,.0f} of {problem.reachable:,} nodes within reach on average, "
        f"and costs {float(cell['flops']):.3g} operations"
    )
