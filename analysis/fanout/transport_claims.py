"""Claims about transport distances; their numbers are the variables of `transport.run`."""

import numpy as np
import xarray as xr

from boundlab.analysis.datasets import case_labels, column
from boundlab.analysis.evidence import means_against, values_against
from boundlab.analysis.fanout.transport_bound import FAILURE_PROBABILITY
from boundlab.analysis.fanout.transport_delta import DEGREE
from boundlab.claims import Check, Claim, Evidence, Kind, Source

THEORY = "boundlab.theory.fanout."
TESTS = "tests/theory/fanout/test_transport.py::"
PROGRAM = TESTS + "test_other_numbers_by_the_whole_program"
DISTANCES = Source("derived", "docs/fanout.md#wasserstein-distances")
# Relative rounding of a transport's sum.
ROUNDING = 1e-9
# What a strict decrease must exceed to be told from none.
STRICT = 1e-3
# Relative error of a distance of two samples that are sorted, of some 15,000 dependent draws.
SORTED_ERROR = 0.03


def _steps(
    name: str, dim: str, *, rising: bool = False, strict: float = 0.0, exponent: float = 0.0
) -> Check:
    """Exact values that don't rise (don't fall if `rising`) along `dim`, from entry to entry.

    `exponent`: they fall at least as `dim` to the power −`exponent`; 1 for draws with replacement.
    """

    def check(dataset: xr.Dataset) -> Evidence:
        sizes = dataset[dim].astype(float)
        part = dataset[[name]] * (sizes / sizes[0]) ** exponent
        part = part.transpose(*dataset[name].dims)
        before, after = part.isel({dim: slice(None, -1)}), part.isel({dim: slice(1, None)})
        smaller, larger = (before, after) if rising else (after, before)
        return Evidence(
            exact=column(smaller, name),
            reference=(1 - strict) * column(larger, name),
            tolerance=ROUNDING,
            labels=case_labels(after, name),
        )

    return check


def _absent(*, counted: bool) -> Check:
    """Distance of the batch's rows, 1/β − 1/d, and of those outside read as 0, 1/d, by their shares.

    Not `counted`: all rows are as far as those of the batch.
    """

    def check(dataset: xr.Dataset) -> Evidence:
        absent, sizes = dataset["transport_absent"], dataset["transport_batch_size"]
        inside = 1 / dataset["transport_few"] - 1 / DEGREE
        share = sizes / sizes[-1] if counted else 1.0
        expected = (share * inside + (1 - share) / DEGREE).broadcast_like(absent)
        return Evidence(
            exact=column(dataset, "transport_absent"),
            reference=expected.transpose(*absent.dims).values.ravel(),
            tolerance=ROUNDING,
            labels=case_labels(dataset, "transport_absent"),
        )

    return check


def _least_at_the_ends(name: str) -> Check:
    """Values at the least fan-out, where Δ is largest, against those with all neighbours."""

    def check(dataset: xr.Dataset) -> Evidence:
        ends = [dataset.isel(transport_case_fan_out=place)[[name]] for place in (0, -1)]
        least, whole = (column(end, name, "transport_seed") for end in ends)
        return Evidence(
            samples=least,
            compared_with=whole,
            labels=case_labels(ends[0], name, "transport_seed"),
        )

    return check


def _not_positive(name: str) -> Check:
    def check(dataset: xr.Dataset) -> Evidence:
        values = dataset[name].values
        return Evidence(samples=values[:, None], reference=0.0, labels=("all cases",))

    return check


def _over_homophily(*, exponent: float | None = None) -> Check:
    """Ratio of Δ at the least and the largest homophily against that of the test loss, by split.

    `exponent`: the loss, instead, changes less than Δ to this power. Where losses are Lipschitz in
    distances of rows the power is 1, and for squares of such losses 2.
    """

    def check(dataset: xr.Dataset) -> Evidence:
        part = dataset.sel(transport_case=dataset["transport_case"].str.startswith("homophily"))
        ratios = []
        for name in ("transport_case_delta", "transport_case_test_loss"):
            ends = (column(part.isel(transport_case=i), name, "transport_seed") for i in (0, -1))
            ratios.append(np.divide(*ends))
        distance, loss = ratios
        return Evidence(
            samples=distance if exponent is None else loss,
            compared_with=loss if exponent is None else distance**exponent,
            labels=case_labels(part.isel(transport_case=0), "transport_gap", "transport_seed"),
        )

    return check


def _fails(name: str) -> Check:
    def check(dataset: xr.Dataset) -> Evidence:
        return Evidence(
            samples=column(dataset, name, "transport_label_seed"),
            reference=FAILURE_PROBABILITY,
            labels=case_labels(dataset, name, "transport_label_seed"),
        )

    return check


def _law(samples: str, reference: str, *, tolerance: float = 0.0) -> Check:
    return means_against(samples, reference, "transport_law_seed", tolerance=tolerance)


CLAIMS = (
    Claim(
        id="transport-decoupling",
        source=DISTANCES,
        statement=r"One transport serves all: $\Delta=OT(\delta^{full})+\overline{\delta_i}$",
        kind=Kind.IDENTITY,
        check=values_against((("transport_whole", "transport_delta"),), tolerance=ROUNDING),
        control=values_against((("transport_whole", "transport_delta_full"),), tolerance=ROUNDING),
        control_statement="without the sampling part",
        formula=THEORY + "wasserstein_delta",
        test=PROGRAM,
    ),
    Claim(
        id="transport-constant-in-batch",
        source=DISTANCES,
        statement=r"Mean aggregator: $\Delta(\beta,b)$ doesn't fall with $b$",
        kind=Kind.UPPER,
        check=_steps("transport_whole", "transport_batch_size", rising=True),
        control=_steps("transport_whole", "transport_batch_size", strict=STRICT),
        control_statement="it falls, as published",
        formula=THEORY + "wasserstein_delta",
        test=TESTS + "test_monotone_in_fan_out_constant_in_batch_size",
    ),
    Claim(
        id="transport-absent-rows",
        source=DISTANCES,
        statement=r"Rows outside of the batch read as 0: $1/d+(b/n)(1/\beta-2/d)$, rising",
        kind=Kind.IDENTITY,
        check=_absent(counted=True),
        control=_absent(counted=False),
        control_statement="1/β − 1/d at every b, that of the batch's rows (Lemma 10: it doesn't rise)",
        formula=THEORY + "row_distance",
        test="tests/theory/fanout/test_moments.py",
    ),
    Claim(
        id="transport-falls-with-fan-out",
        source=DISTANCES,
        statement=r"Mean aggregator: $\Delta(\beta,b)$ falls with $\beta$",
        kind=Kind.UPPER,
        check=_steps("transport_whole", "transport_fan_out"),
        control=_steps("transport_whole", "transport_fan_out", exponent=1.0),
        control_statement="it falls as 1/β, as for draws with replacement",
        formula=THEORY + "wasserstein_delta",
        test=TESTS + "test_monotone_in_fan_out_constant_in_batch_size",
    ),
    Claim(
        id="transport-gap-rises",
        source=DISTANCES,
        statement=r"Gap: least at $\beta=1$, where $\Delta$ is largest",
        kind=Kind.ORDER,
        check=_least_at_the_ends("transport_gap"),
        control=_least_at_the_ends("transport_case_test_loss"),
        control_statement="so is the test loss",
        formula=THEORY + "wasserstein_delta",
        test=PROGRAM,
    ),
    Claim(
        id="transport-rank-correlation",
        source=DISTANCES,
        statement=r"Gap and $\Delta$: their rank correlation is not positive",
        kind=Kind.UPPER,
        check=_not_positive("transport_rank_correlation"),
        control=_not_positive("transport_loss_correlation"),
        control_statement="neither is that of the test loss",
        formula=THEORY + "wasserstein_delta",
        test=PROGRAM,
    ),
    Claim(
        id="transport-sees-no-labels",
        source=DISTANCES,
        statement=r"$\Delta$ changes less with homophily than the test loss does",
        kind=Kind.ORDER,
        check=_over_homophily(),
        control=_over_homophily(exponent=2.0),
        control_statement="the test loss changes less than Δ²",
        formula=THEORY + "wasserstein_delta",
        test=PROGRAM,
    ),
    Claim(
        id="transport-gelbrich",
        source=Source("gelbrich1990formula", "the lower bound"),
        statement=r"$W_2^2$(sampled, full means) is at least that of Gaussians",
        kind=Kind.LOWER,
        check=_law("transport_w2_squared", "transport_gelbrich_squared"),
        control=_law("transport_w2_squared", "transport_mean_trace"),
        control_statement="it is at least the cost of the sampling coupling",
        formula=THEORY + "gaussian_w2",
        test=TESTS + "test_gaussian_distance_by_matrix_roots",
    ),
    Claim(
        id="transport-coupling",
        source=DISTANCES,
        statement=r"$W_2^2$(sampled, full means) $\leq\overline{\mathrm{tr}\,V_i}$",
        kind=Kind.UPPER,
        check=_law("transport_w2_squared", "transport_mean_trace"),
        control=_law("transport_w2_squared", "transport_gelbrich_squared"),
        control_statement="it is at most that of Gaussians",
        formula=THEORY + "neighbor_mean_moments",
        test="tests/theory/fanout/test_moments.py",
    ),
    Claim(
        id="transport-gaussian",
        source=DISTANCES,
        statement=r"Gaussian features: $W_2=\sigma\sqrt{r}\,(m^{-1/2}-d^{-1/2})$",
        kind=Kind.EQUAL,
        check=_law("transport_gaussian_w2", "transport_gaussian_theory", tolerance=SORTED_ERROR),
        control=_law(
            "transport_gaussian_w2", "transport_gaussian_coupling", tolerance=SORTED_ERROR
        ),
        control_statement="the distance of the sampling coupling",
        formula=THEORY + "gaussian_w2",
        test=TESTS + "test_gaussian_distance_in_closed_form",
    ),
    Claim(
        id="transport-bound",
        source=Source("derived", "docs/fanout.md#generalisation-bound"),
        statement=r"PAC-Bayes: the test loss exceeds the bound with chance $\leq\delta$",
        kind=Kind.UPPER,
        check=_fails("transport_bound_fails"),
        control=_fails("transport_without_fails"),
        control_statement="also with the divergence read as 0",
        formula=THEORY + "pac_bayes_bound",
        test="tests/theory/fanout/test_pac_bayes.py::test_failure_probability_by_enumeration",
    ),
)
