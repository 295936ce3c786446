"""Claims about gradients some updates old; their numbers are the variables of `delays.run`."""

import numpy as np
import xarray as xr

from boundlab.analysis.datasets import case_labels, column
from boundlab.analysis.evidence import values_against
from boundlab.claims import Check, Claim, Evidence, Kind, Source

THEORY = "boundlab.theory.policy_optimization."
TESTS = "tests/theory/policy_optimization/test_staleness.py::"
DELAYED = Source("derived", "docs/policy_optimization.md#delayed-gradients")
CORRELATED = Source("derived", "docs/policy_optimization.md#gradient-correlation")
# Relative rounding of eigenvalues, and of Lyapunov's equation up to .99 of the limit.
ROUNDING = 1e-8
# The correlation's distance from its edge value 1e-9 below the limit.
AT_THE_EDGE = 1e-6
# πe/2 is reached as 1/τ²; the longest delay is 32.
STILL_SHORT = 1 / 32**2
# How far the mean cosine of 64 modes may be from the ratio of means: a fraction of 1/64.
MIXTURE = 0.01
# How near a correlation of products is known: that of one mode close to the limit varies more.
RESOLVED, RESOLVED_MODE = 0.01, 0.03
# Modes whose runs are judged, every ninth of 64. The last, at the largest step, has the longest memory
# and would need ten times the updates for the same precision.
JUDGED = slice(4, None, 9)
SEED = "delays_seed"


def _increments(least: int) -> Check:
    """Check that the exact correlation grows from step to step, at delays from `least` on."""

    def check(dataset: xr.Dataset) -> Evidence:
        kept = dataset["delays_correlation"].sel(delays_delay=slice(least, None))
        grown = kept.diff("delays_share").min("delays_share")
        return Evidence(
            exact=grown.values,
            labels=tuple(f"delay {delay}" for delay in kept["delays_delay"].values),
        )

    return check


def _at_least(slope: float) -> Check:
    """Check that the exact correlation is at least `slope` times the step at every delay but 0."""

    def check(dataset: xr.Dataset) -> Evidence:
        stale = dataset[["delays_correlation", "delays_step"]].sel(delays_delay=slice(1, None))
        return Evidence(
            exact=column(stale, "delays_correlation"),
            reference=slope * column(stale, "delays_step"),
            tolerance=ROUNDING,
            labels=case_labels(stale, "delays_correlation"),
        )

    return check


def _cosines(reference: str) -> Check:
    """Check that mean cosines are within `MIXTURE` of a prediction, by 1 + their difference."""

    def check(dataset: xr.Dataset) -> Evidence:
        difference = dataset["delays_cosine"] - dataset[reference]
        return Evidence(
            samples=1 + difference.transpose(SEED, ...).values,
            reference=1.0,
            tolerance=MIXTURE,
            resolution=MIXTURE,
            labels=case_labels(dataset, "delays_cosine", SEED),
        )

    return check


def _balance(reference: str, over: str | None = None) -> Check:
    """Check that products less correlation times squares are 0 in the mean, by 1 + this.

    `over` sums both over a dim first. A mean of quotients would be biased; this isn't.
    """

    def check(dataset: xr.Dataset) -> Evidence:
        judged = dataset if over else dataset.isel(delays_mode=JUDGED)
        product, square, size = (
            judged[name] if over is None else judged[name].sum(over)
            for name in ("delays_product", "delays_square", "delays_square_theory")
        )
        rest = xr.Dataset({"rest": (1 + (product - judged[reference] * square) / size)})
        return Evidence(
            samples=column(rest, "rest", SEED),
            reference=1.0,
            resolution=RESOLVED if over else RESOLVED_MODE,
            labels=case_labels(rest, "rest", SEED),
        )

    return check


def _squares(reference: str) -> Check:
    """Check of the mean squares of the judged modes."""

    def check(dataset: xr.Dataset) -> Evidence:
        judged = dataset.isel(delays_mode=JUDGED)
        return Evidence(
            samples=column(judged, "delays_square", SEED),
            reference=column(judged, reference),
            labels=case_labels(judged, "delays_square", SEED),
        )

    return check


def _signs(first: int) -> Check:
    """Check that the mean product is positive from the delay `first` on, negative below it."""

    def check(dataset: xr.Dataset) -> Evidence:
        sign = np.where(dataset["delays_simulated"].values >= first, 1.0, -1.0)
        samples = dataset["delays_alignment"].transpose(SEED, ...).values
        return Evidence(
            samples=sign * samples,
            labels=case_labels(dataset, "delays_alignment", SEED),
        )

    return check


CLAIMS = (
    Claim(
        id="delays-limit",
        source=DELAYED,
        statement=r"Delay $\tau$: stable iff $\eta\lambda<2\sin(\pi/(4\tau+2))$",
        kind=Kind.IDENTITY,
        check=values_against((("delays_limit", "delays_limit_theory"),), tolerance=ROUNDING),
        control=values_against((("delays_limit", "delays_limit_shifted"),), tolerance=ROUNDING),
        control_statement="the same with τ + 1, the delay counted from the update's result",
        formula=THEORY + "delayed_sgd_limit",
        test=TESTS + "test_limit_by_companion_eigenvalues",
    ),
    Claim(
        id="delays-growth",
        source=DELAYED,
        statement=r"Runs shrink 3% below that limit and grow 3% above it",
        kind=Kind.IDENTITY,
        check=values_against((("delays_grew", "delays_grew_theory"),)),
        control=values_against((("delays_grew", "delays_grew_shifted"),)),
        control_statement="the same of the limit at τ + 1",
        formula=THEORY + "delayed_sgd_limit",
        test=TESTS + "test_limit_by_companion_eigenvalues",
    ),
    Claim(
        id="delays-turn",
        source=DELAYED,
        statement=r"A mode doesn't oscillate up to $\tau^\tau/(\tau+1)^{\tau+1}$",
        kind=Kind.IDENTITY,
        check=values_against((("delays_turn", "delays_turn_theory"),), tolerance=ROUNDING),
        control=values_against((("delays_turn", "delays_turn_continuous"),), tolerance=ROUNDING),
        control_statement="up to 1/(eτ), as in continuous time",
        formula=THEORY + "oscillation_limit",
        test=TESTS + "test_oscillation_limit_by_maximisation",
    ),
    Claim(
        id="delays-ratio",
        source=DELAYED,
        statement=r"At long delays the limit is $\pi e/2$ times that step",
        kind=Kind.IDENTITY,
        check=values_against((("delays_ratio", "delays_ratio_theory"),), tolerance=STILL_SHORT),
        control=values_against((("delays_ratio", "delays_ratio_short"),), tolerance=STILL_SHORT),
        control_statement="4 times it, as at τ = 1",
        formula=THEORY + "oscillation_limit",
        test=TESTS + "test_ratio_of_the_limits_tends_to_half_of_pi_e",
    ),
    Claim(
        id="delays-correlation",
        source=CORRELATED,
        statement=r"Correlation of $g_t,g_{t-1}$: closed form (Lyapunov)",
        kind=Kind.IDENTITY,
        check=values_against(
            (("delays_correlation", "delays_correlation_theory"),), tolerance=ROUNDING
        ),
        control=values_against(
            (("delays_noiseless", "delays_correlation_theory"),), tolerance=ROUNDING
        ),
        control_statement="the same of gradients without their noise",
        formula=THEORY + "gradient_autocorrelation",
        test=TESTS + "test_moments_by_lyapunov",
    ),
    Claim(
        id="delays-second-moment",
        source=CORRELATED,
        statement=r"$\mathrm{E}g^2/\sigma^2=1+\tan(\theta/2)/\tan\psi$ (Lyapunov)",
        kind=Kind.IDENTITY,
        check=values_against((("delays_second", "delays_second_theory"),), tolerance=ROUNDING),
        control=values_against((("delays_second", "delays_second_prompt"),), tolerance=ROUNDING),
        control_statement="2/(2 − a) at every delay",
        formula=THEORY + "gradient_second_moment",
        test=TESTS + "test_moments_by_lyapunov",
    ),
    Claim(
        id="delays-covariance",
        source=CORRELATED,
        statement=r"$\mathrm{E}x_tx_{t-k}\propto\cos(\psi+k\theta)$ for $k\leq\tau$ (Lyapunov)",
        kind=Kind.IDENTITY,
        check=values_against(
            (("delays_covariance", "delays_covariance_theory"),), tolerance=ROUNDING
        ),
        control=values_against(
            (("delays_covariance", "delays_covariance_prompt"),), tolerance=ROUNDING
        ),
        control_statement="C_k = |1 − a|^k/(a(2 − a)), as without delay",
        formula=THEORY + "autocovariance",
        test=TESTS + "test_moments_by_lyapunov",
    ),
    Claim(
        id="delays-edge",
        source=CORRELATED,
        statement=r"At the limit the correlation is $\cos(\pi/(2\tau+1))$",
        kind=Kind.IDENTITY,
        check=values_against((("delays_edge", "delays_edge_theory"),), tolerance=AT_THE_EDGE),
        control=values_against((("delays_edge", "delays_edge_one"),), tolerance=AT_THE_EDGE),
        control_statement="it is 1 there, whatever the delay",
        formula=THEORY + "gradient_autocorrelation",
        test=TESTS + "test_any_delay_flips_the_sign_and_correlation_grows_to_its_edge",
    ),
    Claim(
        id="delays-monotone",
        source=CORRELATED,
        statement=r"For $\tau\geq1$ the correlation grows with the step",
        kind=Kind.LOWER,
        check=_increments(1),
        control=_increments(0),
        control_statement="it does at τ = 0, too",
        formula=THEORY + "gradient_autocorrelation",
        test=TESTS + "test_any_delay_flips_the_sign_and_correlation_grows_to_its_edge",
    ),
    Claim(
        id="delays-slope",
        source=CORRELATED,
        statement=r"For $\tau\geq1$ the correlation is at least $a/2$",
        kind=Kind.LOWER,
        check=_at_least(0.5),
        control=_at_least(1.0),
        control_statement="at least a",
        formula=THEORY + "gradient_autocorrelation",
        test=TESTS + "test_any_delay_flips_the_sign_and_correlation_grows_to_its_edge",
    ),
    Claim(
        id="delays-sign",
        source=CORRELATED,
        statement=r"Staleness flips the sign: $\mathrm{E}\langle g_t,g_{t-1}\rangle>0$ iff $\tau\geq1$",
        kind=Kind.LOWER,
        check=_signs(1),
        control=_signs(2),
        control_statement="iff τ ≥ 2: one update old is as good as fresh",
        formula=THEORY + "mixture_cosine",
        test=TESTS + "test_mixture_by_the_lyapunov_moments_of_its_modes",
    ),
    Claim(
        id="delays-cosine",
        source=CORRELATED,
        statement=r"64 modes: the mean cosine is the mixture's within .01",
        kind=Kind.EQUAL,
        check=_cosines("delays_cosine_theory"),
        control=_cosines("delays_cosine_unweighted"),
        control_statement="it is the plain mean of the modes' correlations",
        formula=THEORY + "mixture_cosine",
        test=TESTS + "test_mixture_by_the_lyapunov_moments_of_its_modes",
    ),
    Claim(
        id="delays-mixture",
        source=CORRELATED,
        statement=r"$\mathrm{E}\langle g_t,g_{t-1}\rangle/\mathrm{E}\|g_t\|^2$ is the mixture's exactly",
        kind=Kind.EQUAL,
        check=_balance("delays_cosine_theory", "delays_mode"),
        control=_balance("delays_cosine_shifted", "delays_mode"),
        control_statement="it is that of one delay less",
        formula=THEORY + "mixture_cosine",
        test=TESTS + "test_mixture_by_the_lyapunov_moments_of_its_modes",
    ),
    Claim(
        id="delays-modes",
        source=CORRELATED,
        statement=r"In simulated runs each mode has its closed-form correlation",
        kind=Kind.EQUAL,
        check=_balance("delays_mode_correlation_theory"),
        control=_balance("delays_mode_correlation_prompt"),
        control_statement="−a/2 at every delay",
        formula=THEORY + "gradient_autocorrelation",
        test=TESTS + "test_moments_by_lyapunov",
    ),
    Claim(
        id="delays-squares",
        source=CORRELATED,
        statement=r"In simulated runs each mode has its closed-form $\mathrm{E}g^2/\sigma^2$",
        kind=Kind.EQUAL,
        check=_squares("delays_square_theory"),
        control=_squares("delays_square_prompt"),
        control_statement="2/(2 − a) at every delay",
        formula=THEORY + "gradient_second_moment",
        test=TESTS + "test_moments_by_lyapunov",
    ),
)
