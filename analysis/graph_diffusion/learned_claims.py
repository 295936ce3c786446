"""Claims about trained scores; their numbers are the variables of `learned.run`."""

import numpy as np
import xarray as xr

from boundlab.analysis.datasets import case_labels, column
from boundlab.analysis.evidence import means_against, values_against
from boundlab.claims import Check, Claim, Evidence, Kind, Source

THEORY = "boundlab.theory.graph_diffusion."
LINEAR_SCORES = "tests/theory/graph_diffusion/test_linear_scores.py::"
SYSTEMS = "tests/theory/graph_diffusion/test_systems.py::"
TRAINING_LOSS = "tests/theory/graph_diffusion/test_training_loss.py"
LOSS = Source("derived", "docs/graph_diffusion.md#training-loss")
ERROR = Source("derived", "docs/graph_diffusion.md#score-error")
RUN, NETWORK, SEED = "learned_run", "learned_network", "learned_seed"
# Relative rounding of divergences and of their sums.
ROUNDING = 1e-8
# A known perturbation is measured to this share.
PERTURBATION = 0.03
# The measured cost of a trained score is known to this share.
COST = 0.15
# Variances of drawn samples are known to this share.
VARIANCE = 0.1


def _measured_bound(dataset: xr.Dataset) -> Evidence:
    """Measured bound of each linear network over its exact KL."""
    linear = dataset["learned_linear"].values
    part = dataset.sel({NETWORK: linear})
    return Evidence(
        samples=column(part, "learned_bound", RUN),
        reference=column(dataset, "learned_kl"),
        labels=case_labels(part, "learned_bound", RUN),
    )


def _bound_of_exact_scores(dataset: xr.Dataset) -> Evidence:
    """The bound that holds for exact scores over the KL of the trained ones."""
    return Evidence(
        exact=column(dataset, "learned_bound_of_exact_scores"),
        reference=column(dataset, "learned_kl"),
        labels=case_labels(dataset, "learned_kl"),
    )


def _lower_bound(*, with_error: bool) -> Check:
    """Lower bound of the perceptrons' KL under the bound, of the same runs."""

    def check(dataset: xr.Dataset) -> Evidence:
        lower = column(dataset, "learned_lower", SEED)
        known = float(dataset["learned_initialization"])
        discretization = float(dataset["learned_discretization"])
        if with_error:
            bound = known + 2 * discretization + column(dataset, "learned_held_out_cost", SEED)
        else:
            bound = np.full_like(lower, known + discretization)
        return Evidence(
            samples=lower,
            compared_with=bound,
            labels=case_labels(dataset, "learned_lower", SEED),
        )

    return check


CLAIMS = (
    Claim(
        id="learned-floor",
        source=LOSS,
        statement=r"Loss at the exact score: $\mathrm{E}\|\sigma s+\xi\|^2=(m^2/\sigma^2)\,mmse$",
        kind=Kind.EQUAL,
        check=means_against("learned_exact_loss", "learned_floor", RUN),
        control=means_against("learned_exact_loss", "learned_floor_without_mean", RUN),
        control_statement="mmse/σ², without the factor m²",
        formula=THEORY + "dsm_floor",
        test=LINEAR_SCORES + "test_floor_is_what_the_fisher_information_leaves",
    ),
    Claim(
        id="learned-perturbation",
        source=LOSS,
        statement=r"Exact score $+\,u$: $(loss-floor)/\sigma^2=\|u\|^2$ within $3\,\%$",
        kind=Kind.EQUAL,
        check=means_against(
            "learned_shifted", "learned_shifted_theory", RUN, resolution=PERTURBATION
        ),
        control=means_against(
            "learned_shifted",
            "learned_shifted_theory",
            RUN,
            factor=0.5,
            resolution=PERTURBATION,
        ),
        control_statement="a loss with ½ against a floor without",
        formula=THEORY + "score_error_from_loss",
        test=TRAINING_LOSS,
    ),
    Claim(
        id="learned-error",
        source=ERROR,
        statement=r"Trained: $\sum_k B\,(loss-loss^*)/\sigma^2=\sum_k B\,\varepsilon^2(t_k)$",
        kind=Kind.EQUAL,
        check=means_against(
            "learned_linear_cost", "learned_linear_cost_theory", RUN, resolution=COST
        ),
        control=means_against(
            "learned_linear_cost", "learned_linear_cost_theory", RUN, factor=0.5, resolution=COST
        ),
        control_statement="½ΣBε², the cost without the cross-term's factor 2",
        formula=THEORY + "linear_score_error",
        test=LINEAR_SCORES + "test_error_by_draws",
    ),
    Claim(
        id="learned-law",
        source=ERROR,
        statement=r"Trained linear score: drawn variances are those of $V\to AVA^\top+Q$",
        kind=Kind.EQUAL,
        check=means_against(
            "learned_variance", "learned_variance_theory", RUN, resolution=VARIANCE
        ),
        control=means_against(
            "learned_variance", "learned_variance_exact_score", RUN, resolution=VARIANCE
        ),
        control_statement="the recursion of the exact score",
        formula=THEORY + "linear_score_reverse",
        test=LINEAR_SCORES + "test_law_by_one_linear_map",
    ),
    Claim(
        id="learned-bound",
        source=ERROR,
        statement=r"Trained: $KL\leq KL(q_T\,\|\,\gamma)+2D+\sum_b\sum_k B_b\,\varepsilon_b^2$, measured",
        kind=Kind.LOWER,
        check=_measured_bound,
        control=_bound_of_exact_scores,
        control_statement="KL(q_T‖γ) + D, the bound of exact scores",
        formula=THEORY + "system_bound",
        test=SYSTEMS + "test_terms_by_adaptive_quadrature",
    ),
    Claim(
        id="learned-sharp-bound",
        source=ERROR,
        statement=r"Trained linear score: $KL\leq$ the bound with $\varepsilon_b\sqrt{J_b}$ cross-terms",
        kind=Kind.UPPER,
        check=values_against((("learned_kl", "learned_sharp_bound"),), tolerance=ROUNDING),
        control=values_against(
            (("learned_kl", "learned_bound_of_exact_scores"),), tolerance=ROUNDING
        ),
        control_statement="the bound of exact scores",
        formula=THEORY + "system_bound_with_score_error",
        test=SYSTEMS + "test_terms_by_adaptive_quadrature",
    ),
    Claim(
        id="learned-perceptron",
        source=ERROR,
        statement=r"Trained perceptrons: $\mathrm{E}_qf-\mathrm{E}_pe^f+1\leq KL\leq$ measured bound",
        kind=Kind.ORDER,
        check=_lower_bound(with_error=True),
        control=_lower_bound(with_error=False),
        control_statement="the bound of exact scores",
        formula=THEORY + "system_bound",
        test=SYSTEMS + "test_terms_by_adaptive_quadrature",
    ),
)
