"""The exact half of the part on chains: closed forms, what wrong theories say, and curves to draw."""

import jax
import numpy as np
import xarray as xr

from boundlab.models import teams
from boundlab.theory import team_learning as theory

# Chains of random errors, and the profiles of one mean error whose returns are simulated.
STAGES, CHAINS = 6, 400
PROFILES = {
    "early": (0.5, 1.0, 1.0, 1.0, 1.0),
    "even": (0.9, 0.9, 0.9, 0.9, 0.9),
    "late": (1.0, 1.0, 1.0, 1.0, 0.5),
}
ERRORS = (1e-9, 0.01, 0.1, 0.5, 1.0)
# Minimax: accuracy and failure probability of the comparison, and simulated sizes.
EPSILON, DELTA = 0.02, 0.1
SIZES = tuple(range(1, 13))
SIMULATED = (3, 8)
GAPS = np.geomspace(0.5 * EPSILON, 1.0, 40)
# Just above a threshold gap, beyond rounding.
ABOVE = 1.0 + 1e-9
# A chain explored on-policy, and stages trained apart on as many trajectories each.
EXPLORED = teams.ChainTask(num_stages=5, gap=0.2, success=0.9)
EXPLORERS = 100
# Best response: teams (A, K), gap and coupling.
TEAMS = ((4, 3), (2, 5))
GAP, COUPLING = 0.6, 0.5
PHASED_DELTA = 0.1
# Contexts of two agents: actions, and trajectories explored.
CONTEXTS, EXPLORED_CONTEXTS = 3, (10, 40)
TOKENS = teams.TokenTask(num_steps=2, num_contexts=3, num_actions=4)
TRAJECTORIES = (15, 25, 50)
FINE = np.unique(np.geomspace(1, 1000, 60).round())


def random_chains(key: jax.Array) -> np.ndarray:
    """Errors (CHAINS, STAGES) of many sizes: spread over stages, or most of it in one."""
    drawn = np.random.default_rng(np.asarray(jax.random.key_data(key))).random(
        (CHAINS, 2, STAGES + 1)
    )
    size = 10.0 ** (-6.0 * drawn[:, 0, :1])
    peak = 10.0 ** (-2.0 * (np.arange(STAGES) != (drawn[:, 0, 1:2] * STAGES).astype(int)))
    shape = drawn[:, 1, :STAGES] * np.where(drawn[:, 1, -1:] < 0.6, peak, 1.0)
    return size * shape / shape.max(axis=1, keepdims=True)


def amplification(key: jax.Array) -> xr.Dataset:
    """Amplification of random, single and equal errors; the outcome's gap stage by stage."""
    errors = random_chains(key)
    single = np.eye(STAGES) * 0.3
    equal = np.array(ERRORS)[:, None] * np.ones(STAGES)
    best = 1 - 0.1 * errors
    chains = 1 - np.concatenate([errors, single, equal])
    found, terms = map(np.asarray, _amplified(chains, 1 - errors, best))
    stage = np.arange(1, STAGES + 1)
    mean_stage = (errors * stage).sum(axis=1) / errors.sum(axis=1)
    uniform = [float(theory.uniform_chain_amplification(STAGES, g)) for g in ERRORS]
    case, place, size = "chain_case", "chain_place", "chain_equal"
    return xr.Dataset(
        {
            "chain_amplification": (
                case,
                found[:CHAINS],
                {"long_name": "loss of a chain / of independent stages, random errors"},
            ),
            "chain_amplification_least": ((), 1.0, {"long_name": "least amplification"}),
            "chain_amplification_first_order": (
                case,
                STAGES + 1 - mean_stage,
                {"long_name": "K + 1 - mean stage of the error"},
            ),
            "chain_amplification_even": (
                (),
                (STAGES + 1) / 2,
                {"long_name": "amplification of small equal errors"},
            ),
            "chain_mean_stage": (case, mean_stage, {"long_name": "mean stage of the error"}),
            "chain_amplification_single": (
                place,
                found[CHAINS : CHAINS + STAGES],
                {"long_name": "amplification, all error in one stage"},
            ),
            "chain_amplification_single_theory": (
                place,
                STAGES + 1.0 - stage,
                {"long_name": "stages from that one on"},
            ),
            "chain_amplification_equal": (
                size,
                found[CHAINS + STAGES :],
                {"long_name": "amplification of equal errors"},
            ),
            "chain_amplification_equal_theory": (
                size,
                uniform,
                {"long_name": "its closed form"},
            ),
            "chain_outcome_gap": (
                case,
                best.prod(axis=1) - (1 - errors).prod(axis=1),
                {"long_name": "difference of the chances that all stages succeed"},
            ),
            "chain_outcome_terms": (
                case,
                terms.sum(axis=1),
                {"long_name": "sum of what each stage takes off"},
            ),
            "chain_outcome_separate": (
                case,
                (0.9 * errors * best.prod(axis=1, keepdims=True) / best).sum(axis=1),
                {"long_name": "sum of the stages' differences one at a time"},
            ),
        },
        coords={case: np.arange(CHAINS), place: stage, size: list(ERRORS)},
    )


@jax.jit
def _amplified(
    chains: jax.Array, success: jax.Array, best: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Amplification of every chain; what each stage takes off the outcome, for pairs of chains."""
    amplified = jax.vmap(theory.chain_amplification)(chains)
    return amplified, jax.vmap(theory.product_gap_terms)(success, best)


def minimax() -> xr.Dataset:
    """Exact samples of dependent and independent stages, union bounds, and failure at all gaps."""
    kinds = ("dependent", "independent")
    exact, union = (
        {k: np.array([samples(n, EPSILON, DELTA, k) for n in SIZES]) for k in kinds}
        for samples in (theory.staged_minimax_samples, theory.staged_union_samples)
    )
    agents, unit = np.array(SIZES), {"units": "samples per arm of one stage"}
    at_gaps = {
        kind: [
            [
                theory.staged_failure(n, EPSILON, gap, exact[kind][n - 1], "dependent")
                for gap in GAPS
            ]
            for n in SIMULATED
        ]
        for kind in kinds
    }
    dim, team, gap = "chain_agents", "chain_team_size", "chain_gap"
    return xr.Dataset(
        {
            **{
                f"chain_samples_{kind}": (
                    dim,
                    exact[kind],
                    {"long_name": f"samples of {kind} stages, exact", **unit},
                )
                for kind in kinds
            },
            **{
                f"chain_union_{kind}": (
                    dim,
                    union[kind],
                    {"long_name": f"samples of {kind} stages by a union bound", **unit},
                )
                for kind in kinds
            },
            "chain_ratio": (
                dim,
                exact["dependent"] / exact["independent"],
                {"long_name": "samples, dependent / independent stages"},
            ),
            "chain_ratio_theory": (dim, ((agents + 1) / 2) ** 2, {"long_name": "((K+1)/2)^2"}),
            "chain_ratio_square": (dim, agents**2.0, {"long_name": "K^2, the ratio of bounds"}),
            "chain_failure_gaps": (
                (team, gap),
                at_gaps["dependent"],
                {"long_name": "failure of a chain with its exact samples"},
            ),
            "chain_failure_gaps_independent": (
                (team, gap),
                at_gaps["independent"],
                {"long_name": "failure of a chain with independent stages' samples"},
            ),
            "chain_failure_allowed": ((), DELTA, {"long_name": "failure allowed"}),
        },
        coords={dim: agents, team: list(SIMULATED), gap: (gap, GAPS, {"units": "reward"})},
    )


def references() -> xr.Dataset:
    """What the theory, and wrong theories, say of all that is simulated."""
    returns = np.array([theory.chain_returns(p) for p in PROFILES.values()])
    stage = np.arange(1, 6)
    mean_success = EXPLORED.success - EXPLORED.gap / 2
    reached = np.asarray(theory.attrition(np.full(5, mean_success)))
    error = [
        theory.staged_failure(1, EXPLORED.gap / 2, EXPLORED.gap, share * EXPLORERS / 2, "dependent")
        for share in (1.0, *reached)
    ]
    sizes = {n: worst_gap(n) for n in SIMULATED}
    single = [theory.staged_failure(1, EPSILON / 2, g, m, "dependent") for g, m in sizes.values()]
    floors = np.array([float(theory.best_response_floor(*t, GAP, COUPLING)) for t in TEAMS])
    agents = np.array([k for _, k in TEAMS])
    count = np.array(EXPLORED_CONTEXTS)
    joint = [float(theory.information_regret(n, CONTEXTS, 2, COUPLING, "joint")) for n in count]
    n = np.array(TRAJECTORIES)
    process, outcome = _solved(n)
    named = {
        "return_theory": ("chain_profile", returns[:, 0], "expected return of the chain"),
        "return_independent": ("chain_profile", returns[:, 1], "that of independent stages"),
        "attrition_theory": ("chain_stage", reached, "product of mean successes before the stage"),
        "attrition_linear": (
            "chain_stage",
            1 - (stage - 1) * (1 - mean_success),
            "one minus the sum of mean failures before the stage",
        ),
        "error_theory": ("chain_stage", np.full(5, error[0]), "error of a stage trained apart"),
        "error_thinned": ("chain_stage", error[1:], "error with the samples that attrition leaves"),
        "failure_theory": ("chain_team_size", np.full(len(sizes), DELTA), "failure at the samples"),
        "failure_any": (
            "chain_team_size",
            [1 - (1 - q) ** k for q, k in zip(single, SIMULATED, strict=True)],
            "chance that any stage errs",
        ),
        "response_theory": ("chain_team", floors, "floor of best response from a random start"),
        "response_own_floor": ("chain_team", COUPLING - GAP / agents, "floor of own rewards alone"),
        "response_best": ("chain_team", COUPLING - GAP / agents, "best reward under parity"),
        "response_start": ((), 0.0, "reward where own rewards lead"),
        "phases_failure_allowed": ((), PHASED_DELTA, "failure allowed"),
        "local_theory": (
            (),
            float(theory.information_floor(CONTEXTS, COUPLING)),
            "floor of local policies",
        ),
        "local_pairs": (
            (),
            COUPLING * (1 - CONTEXTS**-2.0),
            "as if both contexts were to be guessed",
        ),
        "joint_theory": ("chain_explored", joint, "expected regret of a joint learner"),
        "joint_pairs": (
            "chain_explored",
            COUPLING * (1 - 1 / CONTEXTS) * (1 - CONTEXTS**-2.0) ** count,
            "as if one context were seen",
        ),
        "tokens_process_theory": ("chain_trajectories", process, "solved share, step rewards"),
        "tokens_process_token": (
            "chain_trajectories",
            1 - (1 - 1 / int(TOKENS.num_actions)) ** n,
            "as if tokens had no context",
        ),
        "tokens_outcome_theory": ("chain_trajectories", outcome, "solved share, outcome alone"),
        "tokens_outcome_separate": (
            "chain_trajectories",
            process ** int(TOKENS.num_steps),
            "as if steps were solved one by one",
        ),
    }
    return xr.Dataset(
        {f"chain_{k}": (dims, v, {"long_name": words}) for k, (dims, v, words) in named.items()},
        coords={
            "chain_profile": list(PROFILES),
            "chain_stage": stage,
            "chain_team": [f"A={a}, K={k}" for a, k in TEAMS],
            "chain_explored": count,
            "chain_trajectories": n,
        },
    )


def _solved(count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Solved shares of the token task at these numbers of trajectories, by step rewards and outcome."""
    sizes = (int(TOKENS.num_steps), int(TOKENS.num_contexts), int(TOKENS.num_actions))
    process, outcome = (
        np.asarray(jax.vmap(lambda n, r=r: theory.solved_fraction(n, *sizes, r))(count))
        for r in ("process", "outcome")
    )
    return process, outcome


def curves() -> xr.Dataset:
    """Solved shares and a joint learner's regret on a fine grid, for the figures."""
    process, outcome = _solved(FINE)
    regret = jax.vmap(lambda n: theory.information_regret(n, CONTEXTS, 2, COUPLING, "joint"))(FINE)
    words = "solved share of contexts by "
    return xr.Dataset(
        {
            "chain_tokens_curve_process": (
                "chain_fine",
                process,
                {"long_name": words + "step rewards"},
            ),
            "chain_tokens_curve_outcome": (
                "chain_fine",
                outcome,
                {"long_name": words + "the outcome"},
            ),
            "chain_joint_curve": (
                "chain_fine",
                np.asarray(regret),
                {"long_name": "expected regret of a joint learner of contexts"},
            ),
        },
        coords={"chain_fine": ("chain_fine", FINE, {"units": "trajectories"})},
    )


def worst_gap(agents: int) -> tuple[float, float]:
    """The gap just above the worst threshold, and the samples that it takes."""
    arguments = (agents, EPSILON, DELTA, "dependent")
    return theory.staged_worst_gap(*arguments) * ABOVE, theory.staged_minimax_samples(*arguments)
