"""Claims of the part on regression."""

import numpy as np
import xarray as xr

from boundlab.analysis.evidence import means_against, values_against
from boundlab.claims import Check, Claim, Evidence, Kind, Source

THEORY = "boundlab.theory.team_learning."
RISKS = "tests/theory/team_learning/test_regression.py::"
SIZES = "tests/theory/team_learning/test_regression_accuracy.py::"
TASK = Source("derived", "docs/team_learning.md#regression-task")
CROSSOVER = Source("derived", "docs/team_learning.md#regression-crossover")
PAC = Source("derived", "docs/team_learning.md#exact-pac")
ROUNDING = 1e-9
# Relative error of the limit of weak coupling: of order λ.
WEAK_ERROR = 1e-3
# What 10⁵ runs of heavy-tailed risks, and 4·10⁴ rare failures, resolve.
MEANS, SUBTASKS, FAILURES = 0.1, 0.2, 0.2
# Sizes nearer to the crossover than these shares are left out: the two risks are nearly equal there.
BELOW, ABOVE = 0.95, 1.2


def _mean_of(learner: str, theory: str) -> Check:
    return means_against(
        f"regression_risk_{learner}", f"regression_{theory}", "regression_seed", resolution=MEANS
    )


def _single(theory: str, *, independent: bool) -> Check:
    """One agent with K(n − 1) + 1 samples against a team with n, on the tasks named."""
    check = means_against(
        "regression_single", f"regression_{theory}", "regression_seed", resolution=MEANS
    )

    def on_some(dataset: xr.Dataset) -> Evidence:
        alone = np.flatnonzero((dataset["regression_task"] == "independent").values == independent)
        return check(dataset.isel(regression_task=alone))

    return on_some


def _order(better: str, worse: str, crossover: str) -> Check:
    """`better` has the smaller risk on its side of a crossover, at all simulated sizes clear of it."""

    def check(dataset: xr.Dataset) -> Evidence:
        columns: dict[str, list[np.ndarray]] = {better: [], worse: []}
        labels: list[str] = []
        for coupling in dataset["regression_coupled"].values:
            at = float(dataset[crossover].sel(regression_coupled=coupling))
            sizes = dataset["regression_samples"].values
            kept = sizes[sizes < BELOW * at if better == "blind" else sizes > ABOVE * at]
            part = dataset.sel(regression_coupling=coupling, regression_samples=kept)
            for name, found in columns.items():
                array = part[f"regression_risk_{name}"].transpose("regression_seed", ...)
                found.append(array.values)
            labels += [f"coupling {coupling}, samples {n}" for n in kept]
        return Evidence(
            samples=np.concatenate(columns[better], axis=1),
            compared_with=np.concatenate(columns[worse], axis=1),
            labels=tuple(labels),
        )

    return check


def _exact(value: str, reference: str, tolerance: float = ROUNDING) -> Check:
    pair = (f"regression_{value}", f"regression_{reference}")
    return values_against((pair,), tolerance=tolerance)


CLAIMS = (
    Claim(
        id="regression-one",
        source=TASK,
        statement=r"One agent: mean excess risk $\sigma^2\bar V D/(n-D-1)$",
        kind=Kind.EQUAL,
        check=_mean_of("sarl", "theory_sarl"),
        control=_mean_of("sarl", "wrong_sarl"),
        control_statement="d for D: as if it fitted the inputs of one subtask",
        formula=THEORY + "regression_risk",
        test=RISKS + "test_risks_by_inverse_wishart",
    ),
    Claim(
        id="regression-aware",
        source=TASK,
        statement=r"Team that knows the coupling: $\sigma^2\bar V d/(n-d-1)$",
        kind=Kind.EQUAL,
        check=_mean_of("aware", "theory_aware"),
        control=_mean_of("aware", "wrong_aware"),
        control_statement="σ²d/(n − d − 1): earlier subtasks hand down no errors",
        formula=THEORY + "regression_risk",
        test=RISKS + "test_risks_by_inverse_wishart",
    ),
    Claim(
        id="regression-blind",
        source=TASK,
        statement=r"Blind team: $\bar F+(\sigma^2\bar V+\bar F)\,d/(n-d-1)$",
        kind=Kind.EQUAL,
        check=_mean_of("blind", "theory_blind"),
        control=_mean_of("blind", "wrong_blind"),
        control_statement="what it misses is bias alone, no noise in its fits",
        formula=THEORY + "regression_risk",
        test=RISKS + "test_risks_by_inverse_wishart",
    ),
    Claim(
        id="regression-subtask",
        source=TASK,
        statement=r"Subtask $i$ of the team that knows: $\sigma^2V_i\,d/(n-d-1)$",
        kind=Kind.EQUAL,
        check=means_against(
            "regression_subtask_aware",
            "regression_subtask_theory_aware",
            "regression_seed",
            resolution=SUBTASKS,
        ),
        control=means_against(
            "regression_subtask_aware",
            "regression_subtask_wrong",
            "regression_seed",
            resolution=SUBTASKS,
        ),
        control_statement="V_i = 1 + λ²/(i − 1), earlier labels taken for independent",
        formula=THEORY + "noise_inflation",
        test=RISKS + "test_variances_by_matrix_inverse",
    ),
    Claim(
        id="regression-inflation",
        source=TASK,
        statement=r"The paper's dependent task: $V_i=1+\sum_{j<i}1/j^2$",
        kind=Kind.IDENTITY,
        check=_exact("inflation", "inflation_sum"),
        control=_exact("inflation", "inflation_fresh"),
        control_statement="1 + 1/(i − 1), earlier labels taken for independent",
        formula=THEORY + "noise_inflation",
        test=RISKS + "test_variances_by_hand",
    ),
    Claim(
        id="regression-share",
        source=TASK,
        statement=r"Independent: a team's $n$ is worth $K(n-1)+1$ to one agent",
        kind=Kind.EQUAL,
        check=_single("pair_aware", independent=True),
        control=_single("pair_root", independent=True),
        control_statement="worth √K(n − 1) + 1",
        formula=THEORY + "regression_samples",
        test=SIZES + "test_one_in_k_exactly",
    ),
    Claim(
        id="regression-share-coupled",
        source=TASK,
        statement=r"So it is under every coupling that the team knows",
        kind=Kind.EQUAL,
        check=_single("pair_aware", independent=False),
        control=_single("pair_blind", independent=False),
        control_statement="so it is for the blind team",
        formula=THEORY + "regression_risk",
        test=RISKS + "test_variances_by_matrix_inverse",
    ),
    Claim(
        id="regression-below",
        source=CROSSOVER,
        statement=r"The blind team is better than one agent at $n<n^*$",
        kind=Kind.ORDER,
        check=_order("blind", "sarl", "regression_crossover"),
        control=_order("blind", "sarl", "regression_crossover_bias"),
        control_statement="below the crossover of its bias alone",
        formula=THEORY + "regression_crossover",
        test=RISKS + "test_crossover_by_bracketing",
    ),
    Claim(
        id="regression-above",
        source=CROSSOVER,
        statement=r"One agent is better than the blind team at $n>n^*$",
        kind=Kind.ORDER,
        check=_order("sarl", "blind", "regression_crossover"),
        control=_order("sarl", "blind", "regression_crossover_paper"),
        control_statement="as soon as the condition of Proposition 4.7 for teams fails",
        formula=THEORY + "regression_crossover",
        test=RISKS + "test_crossover_by_bracketing",
    ),
    Claim(
        id="regression-crossover",
        source=CROSSOVER,
        statement=r"$n^*=D+1+(D-d)\,\sigma^2\bar V/\bar F$ exactly",
        kind=Kind.IDENTITY,
        check=_exact("root", "crossover"),
        control=_exact("root", "crossover_noise"),
        control_statement="without V̄: labels' noise is not handed down",
        formula=THEORY + "regression_crossover",
        test=RISKS + "test_crossover_by_bracketing",
    ),
    Claim(
        id="regression-weak",
        source=CROSSOVER,
        statement=r"Weak coupling: $n^*\to(D-d)\sigma^2K/(H_{K-1}\lambda^2)$",
        kind=Kind.IDENTITY,
        check=_exact("weak", "weak_limit", WEAK_ERROR),
        control=_exact("weak", "weak_slow", WEAK_ERROR),
        control_statement="n* grows as 1/λ",
        formula=THEORY + "regression_crossover",
        test=RISKS + "test_crossover_values_and_limits",
    ),
    Claim(
        id="regression-accuracy",
        source=CROSSOVER,
        statement=r"The blind team takes no more samples iff $d/D\leq1-\bar F/\varepsilon^2$",
        kind=Kind.IDENTITY,
        check=_exact("limit", "share"),
        control=_exact("limit_asymptotic", "share"),
        control_statement="sizes without their d + 1 and D + 1",
        formula=THEORY + "dimension_ratio_limit",
        test=SIZES + "test_ratio_limits",
    ),
    Claim(
        id="regression-paper-rule",
        source=CROSSOVER,
        statement=r"Proposition 4.7's $d/D\leq(1-2\alpha/\varepsilon)^2$ is sufficient",
        kind=Kind.UPPER,
        check=_exact("accuracy", "accuracy_paper"),
        control=_exact("accuracy", "misalignment"),
        control_statement="it is enough that ε exceeds the misalignment",
        formula=THEORY + "accuracy_crossover",
        test=SIZES + "test_accuracy_crossover_by_sample_sizes",
    ),
    Claim(
        id="regression-conservative",
        source=CROSSOVER,
        statement=r"It asks for $2\sqrt{1-1/K}\,/(1-1/\sqrt{K})$ times the accuracy",
        kind=Kind.IDENTITY,
        check=_exact("paper_ratio", "conservative"),
        control=_exact("paper_ratio", "centred"),
        control_statement="without the 2 of 2α",
        formula=THEORY + "accuracy_crossover",
        test=SIZES + "test_accuracy_crossover_by_sample_sizes",
    ),
    Claim(
        id="regression-failures",
        source=PAC,
        statement=r"Fixed inputs: failures at $\lceil N\rceil$ are those of $\chi^2$",
        kind=Kind.EQUAL,
        check=means_against(
            "regression_failure",
            "regression_failure_theory",
            "regression_pac_seed",
            resolution=FAILURES,
        ),
        control=means_against(
            "regression_failure",
            "regression_failure_swapped",
            "regression_pac_seed",
            resolution=FAILURES,
        ),
        control_statement="the law of the mean for the worst subtask, and the other way round",
        formula=THEORY + "chi_square_samples",
        test=SIZES + "test_chi_square_by_scipy",
    ),
    Claim(
        id="regression-pac",
        source=PAC,
        statement=r"Fixed inputs: at $\lceil N\rceil$ failure is at most $\delta$",
        kind=Kind.UPPER,
        check=_exact("failure_theory", "delta"),
        control=_exact("failure_expected", "delta"),
        control_statement="at the size where the expected risk is ε²",
        formula=THEORY + "chi_square_samples",
        test=SIZES + "test_chi_square_by_scipy",
    ),
)
