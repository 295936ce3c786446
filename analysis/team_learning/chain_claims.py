"""Claims about chains, best response, contexts and tokens; their numbers are those of `chain.run`."""

from boundlab.analysis.evidence import means_against, values_against
from boundlab.claims import Check, Claim, Kind, Source

THEORY = "boundlab.theory.team_learning."
TESTS = "tests/theory/team_learning/"
CHAIN = Source("derived", "docs/team_learning.md#chain")
MINIMAX = Source("derived", "docs/team_learning.md#staged-minimax")
RESPONSE = Source("derived", "docs/team_learning.md#best-response")
INFORMATION = Source("derived", "docs/team_learning.md#information-floor")
TOKENS = Source("derived", "docs/team_learning.md#tokens")
# Relative rounding of sums and products.
ROUNDING = 1e-9
# What the ratio of exact samples may be of ((K + 1)/2)²: from .85 to 1.25.
MIDDLE, HALF_WIDTH = 1.05, 0.2 / 1.05


def _mean(samples: str, reference: str) -> Check:
    return means_against(f"chain_{samples}", f"chain_{reference}", "chain_seed")


def _exact(value: str, reference: str, factor: float = 1.0, tolerance: float = ROUNDING) -> Check:
    pair = ((f"chain_{value}", f"chain_{reference}"),)
    return values_against(pair, factor=factor, tolerance=tolerance)


def _reached(reference: str) -> Check:
    """Shares that reach the stages after the first, which all do."""
    check = _mean("attrition", reference)
    return lambda dataset: check(dataset.isel(chain_stage=slice(1, None)))


CLAIMS = (
    Claim(
        id="chain-amplification-most",
        source=CHAIN,
        statement=r"A chain loses at most $K+1-\bar s$ times what independent stages do",
        kind=Kind.UPPER,
        check=_exact("amplification", "amplification_first_order"),
        control=_exact("amplification", "amplification_even"),
        control_statement="at most (K+1)/2 times, as with equal errors",
        formula=THEORY + "chain_amplification",
        test=TESTS + "test_chain.py::test_amplification_by_fractions",
    ),
    Claim(
        id="chain-amplification-least",
        source=CHAIN,
        statement=r"A chain never loses less than independent stages",
        kind=Kind.LOWER,
        check=_exact("amplification", "amplification_least"),
        control=_exact("amplification", "amplification_first_order"),
        control_statement="never less than K + 1 − s̄ times, as with small errors",
        formula=THEORY + "chain_amplification",
        test=TESTS + "test_chain.py::test_amplification_by_fractions",
    ),
    Claim(
        id="chain-extremes",
        source=CHAIN,
        statement=r"All error in stage $s$ costs $K-s+1$ times as much: $K$ first, 1 last",
        kind=Kind.IDENTITY,
        check=_exact("amplification_single", "amplification_single_theory"),
        control=_exact("amplification_single", "amplification_even"),
        control_statement="(K+1)/2 times in whatever stage",
        formula=THEORY + "chain_amplification",
        test=TESTS + "test_chain.py::test_amplification_at_the_extremes",
    ),
    Claim(
        id="chain-equal",
        source=CHAIN,
        statement=r"Equal errors $g$: $[1-(1-g)(1-(1-g)^K)/(Kg)]/g$ times as much",
        kind=Kind.IDENTITY,
        check=_exact("amplification_equal", "amplification_equal_theory", tolerance=1e-6),
        control=_exact("amplification_equal", "amplification_even", tolerance=1e-6),
        control_statement="(K+1)/2 times at errors of any size",
        formula=THEORY + "uniform_chain_amplification",
        test=TESTS + "test_chain.py::test_equal_errors_by_the_closed_form",
    ),
    Claim(
        id="chain-outcome",
        source=CHAIN,
        statement=r"$\prod p^*-\prod p$ splits into $\prod_{j<k}p_j\,(p_k^*-p_k)\prod_{j>k}p_j^*$",
        kind=Kind.IDENTITY,
        check=_exact("outcome_gap", "outcome_terms"),
        control=_exact("outcome_gap", "outcome_separate"),
        control_statement="into the stages' differences with all others at p*",
        formula=THEORY + "product_gap_terms",
        test=TESTS + "test_chain.py::test_product_identity",
    ),
    Claim(
        id="chain-return",
        source=CHAIN,
        statement=r"A chain returns $\frac{1}{K}\sum_k\prod_{j\leq k}p_j$ on average",
        kind=Kind.EQUAL,
        check=_mean("return", "return_theory"),
        control=_mean("return", "return_independent"),
        control_statement="the mean of p, wherever the errors are",
        formula=THEORY + "chain_returns",
        test=TESTS + "test_chain.py::test_returns_by_enumeration",
    ),
    Claim(
        id="chain-attrition",
        source=CHAIN,
        statement=r"On-policy, a share $\prod_{j<k}\bar p_j$ of trajectories reaches stage $k$",
        kind=Kind.EQUAL,
        check=_reached("attrition_theory"),
        control=_reached("attrition_linear"),
        control_statement="one minus the sum of mean failures",
        formula=THEORY + "attrition",
        test=TESTS + "test_chain.py::test_attrition_by_hand",
    ),
    Claim(
        id="chain-staged",
        source=MINIMAX,
        statement=r"Trained apart, all stages err alike, by $\Phi(-g\sqrt{m/2})$",
        kind=Kind.EQUAL,
        check=_mean("error", "error_theory"),
        control=_mean("error", "error_thinned"),
        control_statement="by what attrition leaves of m",
        formula=THEORY + "staged_failure",
        test=TESTS + "test_staged.py::test_failure_by_enumeration",
    ),
    Claim(
        id="chain-minimax-ratio",
        source=MINIMAX,
        statement=r"$N_{\rm dep}/N_{\rm ind}$ is .85 to 1.25 times $((K+1)/2)^2$ for $K\leq 12$",
        kind=Kind.IDENTITY,
        check=_exact("ratio", "ratio_theory", factor=MIDDLE, tolerance=HALF_WIDTH),
        control=_exact("ratio", "ratio_square", factor=MIDDLE, tolerance=HALF_WIDTH),
        control_statement="as much of K², the ratio of the bounds",
        formula=THEORY + "staged_minimax_samples",
        test=TESTS + "test_staged.py::test_known_samples",
    ),
    Claim(
        id="chain-minimax-enough",
        source=MINIMAX,
        statement=r"With $N_{\rm dep}$ samples a chain fails with at most $\delta$ at every gap",
        kind=Kind.UPPER,
        check=_exact("failure_gaps", "failure_allowed"),
        control=_exact("failure_gaps_independent", "failure_allowed"),
        control_statement="with N_ind samples, those of independent stages",
        formula=THEORY + "staged_minimax_samples",
        test=TESTS + "test_staged.py::test_suprema_by_a_grid_of_gaps",
    ),
    Claim(
        id="chain-minimax-needed",
        source=MINIMAX,
        statement=r"… and with exactly $\delta$ just above the worst gap",
        kind=Kind.EQUAL,
        check=_mean("failure", "failure_theory"),
        control=_mean("failure", "failure_any"),
        control_statement="as often as any stage errs",
        formula=THEORY + "staged_worst_gap",
        test=TESTS + "test_staged.py::test_failure_by_enumeration",
    ),
    Claim(
        id="chain-response-random",
        source=RESPONSE,
        statement=r"Best response, random start: regret $\frac{\Delta}{K}(K(1-\frac{1}{A})-1)$",
        kind=Kind.EQUAL,
        check=_mean("response", "response_theory"),
        control=_mean("response", "response_own_floor"),
        control_statement="max(0, λ − Δ/K), the floor of own rewards",
        formula=THEORY + "best_response_floor",
        test=TESTS + "test_best_response.py::test_floor_by_enumeration",
    ),
    Claim(
        id="chain-response-own",
        source=RESPONSE,
        statement=r"From $\bar a$ best response earns the optimum $\lambda-\Delta/K$ of parity",
        kind=Kind.IDENTITY,
        check=_exact("response_own", "response_best"),
        control=_exact("response_own", "response_start"),
        control_statement="it stays where own rewards lead",
        formula=THEORY + "best_response_floor",
        test=TESTS + "test_best_response.py::test_floor_by_enumeration",
    ),
    Claim(
        id="chain-phases",
        source=RESPONSE,
        statement=r"Own rewards, then $KA(K\sigma_o x^*/\Delta)^2$ trajectories: failure $\leq\delta$",
        kind=Kind.UPPER,
        check=_mean("phases_failure", "phases_failure_allowed"),
        control=_mean("phases_failure_thin", "phases_failure_allowed"),
        control_statement="without the factor K² in the second phase",
        formula=THEORY + "two_phase_samples",
        test=TESTS + "test_best_response.py::test_two_phases_by_quadrature",
    ),
    Claim(
        id="chain-local",
        source=INFORMATION,
        statement=r"Agents that don't see what to name keep a regret of $\lambda(1-1/A)$",
        kind=Kind.EQUAL,
        check=_mean("local", "local_theory"),
        control=_mean("local", "local_pairs"),
        control_statement="λ(1 − 1/A²), as if both contexts were to be guessed",
        formula=THEORY + "information_floor",
        test=TESTS + "test_best_response.py::test_information_floor_by_enumeration",
    ),
    Claim(
        id="chain-joint",
        source=INFORMATION,
        statement=r"One that does: $\lambda(1-\frac{1}{A})(1-A^{-(K+1)})^N$ after $N$ trajectories",
        kind=Kind.EQUAL,
        check=_mean("joint", "joint_theory"),
        control=_mean("joint", "joint_pairs"),
        control_statement="with A² cells, as if it needed one context",
        formula=THEORY + "information_regret",
        test=TESTS + "test_best_response.py::test_information_regret_by_enumeration",
    ),
    Claim(
        id="chain-tokens-process",
        source=TOKENS,
        statement=r"Step rewards solve $1-(1-\frac{1}{SA})^N$ of the contexts",
        kind=Kind.EQUAL,
        check=_mean("tokens_process", "tokens_process_theory"),
        control=_mean("tokens_process", "tokens_process_token"),
        control_statement="as if tokens had no context",
        formula=THEORY + "solved_fraction",
        test=TESTS + "test_tokens.py::test_shares_by_markov_chain",
    ),
    Claim(
        id="chain-tokens-outcome",
        source=TOKENS,
        statement=r"The outcome alone solves $1-(1-(SA)^{-K})^N$ of the joint contexts",
        kind=Kind.EQUAL,
        check=_mean("tokens_outcome", "tokens_outcome_theory"),
        control=_mean("tokens_outcome", "tokens_outcome_separate"),
        control_statement="as if steps were solved one by one",
        formula=THEORY + "solved_fraction",
        test=TESTS + "test_tokens.py::test_shares_by_markov_chain",
    ),
)
