"""Claims about the family of losses; their numbers are distances that `losses.run` records."""

from boundlab.analysis.evidence import values_against
from boundlab.analysis.policy_optimization.gates_claims import at_most
from boundlab.claims import Claim, Kind, Source

THEORY = "boundlab.theory.policy_optimization."
ON_POLICY = "tests/theory/policy_optimization/test_on_policy.py::"
OBJECTIVES = "tests/theory/policy_optimization/test_objectives.py::"
CHOOSER, FAMILY, CONVENTIONS = (
    Source("derived", f"docs/policy_optimization.md#{place}")
    for place in ("loss-chooser", "loss-family", "conventions")
)
VALUES = ("surrogate_loss", OBJECTIVES + "test_published_values")
GRADIENTS = ("loss_gradient", OBJECTIVES + "test_gradients_by_finite_differences")
SCORES = ("loss_gradient", OBJECTIVES + "test_gradients_of_scores_by_hand")
WEIGHTS = ("token_weights", ON_POLICY + "test_weights_by_hand")
# Relative to the largest entry: rounding of sums of tens of terms, of either sign, in float64.
ROUNDING = 1e-9


def _claim(
    name: str,
    statement: str,
    wrong: str,
    formula: tuple[str, str],
    *,
    source: Source = FAMILY,
    bound: float = ROUNDING,
) -> Claim:
    """A distance from theory that must be rounding, and from a wrong theory that must not."""
    return Claim(
        id=f"losses-{name}",
        source=source,
        statement=statement,
        kind=Kind.UPPER,
        check=at_most(f"losses_{name}", bound=bound),
        control=at_most(f"losses_{name}_wrong", bound=bound),
        control_statement=wrong,
        formula=THEORY + formula[0],
        test=formula[1],
    )


CLAIMS = (
    _claim(
        "start",
        r"On policy every loss has gradient $-\mu A$",
        "FiberPO's gate with sgn 0 = 0: every token of a sequence has its mean advantage",
        ("on_policy_gradient", ON_POLICY + "test_gradient_is_minus_the_weighted_advantage"),
    ),
    _claim(
        "clipped",
        r"PPO's rows: $-\sum\mu\,\min(rA,\,\mathrm{clip}(r)A)$",
        "clip(r)A without the min",
        VALUES,
    ),
    _claim(
        "sides",
        r"DAPO clips at $1-\epsilon_l$ and $1+\epsilon_h$",
        "the two sides exchanged",
        VALUES,
    ),
    _claim(
        "surrogate",
        r"GSPO, SAPO, APC, FiberPO: $-\sum\mu\,GA$, gates written out",
        "the ratio itself, without a gate",
        VALUES,
    ),
    _claim(
        "coupled",
        r"Gradients of coupled gates: $-\sum_i\mu_iA_i\,\partial G_i/\partial\rho_j$",
        "FiberPO's gate as a weight that has no gradient of its own",
        GRADIENTS,
    ),
    _claim(
        "luspo",
        r"LUSPO sums what GSPO averages over a sequence",
        "the same mean over tokens as GSPO",
        WEIGHTS,
        source=CHOOSER,
    ),
    _claim(
        "norm",
        r"Dr.GRPO divides by the constant that is given",
        "by the length to which the batch happens to be padded",
        WEIGHTS,
        source=CHOOSER,
    ),
    _claim(
        "gmpo",
        r"GMPO: $-e^{\mathrm{mean}\,\mathrm{min}(\cdot)}\,\bar A$ a sequence",
        "the mean of the tokens' clipped ratios in place of the geometric one",
        VALUES,
    ),
    _claim(
        "cispo",
        r"CISPO weighs scores by $\mathrm{clip}(r,\,1-\epsilon_l,\,1+\epsilon_h)$",
        "a cap at ε_h itself",
        SCORES,
    ),
    _claim(
        "vespo",
        r"VESPO weighs by $W^ke^{\lambda(1-W)}$, $(k,\lambda)$ by the sign of $A$",
        "the pairs (k, λ) of the two signs exchanged",
        SCORES,
    ),
    _claim(
        "dppo",
        r"DPPO drops tokens whose probability moved by more than $\kappa$",
        "whose ratio moved by more than κ",
        SCORES,
    ),
    _claim(
        "dro",
        r"DRO: gradient $-\mu(A-\beta\rho)$",
        "twice the pull, as of βρ² without the ½",
        SCORES,
    ),
    _claim(
        "padding",
        r"What padding holds changes no bit, NaN and $\infty$ included",
        "means that count the padding",
        WEIGHTS,
        source=CONVENTIONS,
        bound=0.0,
    ),
    _claim(
        "micro",
        r"Micro-batches with the whole batch's count add up to it",
        "the mean of each micro-batch's own mean",
        WEIGHTS,
        source=CONVENTIONS,
    ),
    _claim(
        "blind",
        r"$\rho=\pm c$ in turn: GSPO's gradient is the one on policy",
        "what GRPO makes of the same ratios, which sees them token by token",
        ("on_policy_gradient", ON_POLICY + "test_gradient_is_minus_the_weighted_advantage"),
    ),
    Claim(
        id="losses-channels",
        source=FAMILY,
        statement=r"$\rho=\pm c$ in turn: FiberPO's channels see $\log s^\pm=c/2$",
        kind=Kind.IDENTITY,
        check=values_against((("losses_channels", "losses_channels_theory"),), tolerance=ROUNDING),
        control=values_against((("losses_channels", "losses_channels_wrong"),), tolerance=ROUNDING),
        control_statement="0, as one aggregate without channels",
        formula=THEORY + "surrogate_loss",
        test=VALUES[1],
    ),
)
