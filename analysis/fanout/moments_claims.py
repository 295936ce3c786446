"""Claims about moments of estimators and gradients; their numbers are the variables of `moments.run`."""

from collections.abc import Callable

import numpy as np
import xarray as xr

from boundlab.analysis.datasets import case_labels, column
from boundlab.analysis.evidence import means_against
from boundlab.claims import Check, Claim, Evidence, Kind, Source

THEORY = "boundlab.theory.fanout."
TESTS = "tests/theory/fanout/"
SEED = "moments_seed"
FLOOR_ERROR = 0.08
"""Model error of the first-order floor: ½η(λ_max(M) + tr M/b) and what is left of the start."""
LATE = 160
"""Steps after which a run has forgotten its start."""
SWAMPED = 1
"""At this fan-out the batch's part is the small rest of a large noise: not resolved by the draws."""
GAP_FAN_OUT, GAP_ERROR = 4, 0.1
"""Least fan-out at which the second order of the cross-entropy is claimed, and its error there."""
ROUNDING = 1e-12


def _fixed(
    samples: str,
    reference: str,
    *,
    fan_outs: slice = slice(None, -1),
    sizes: slice = slice(None),
    resolution: float = 0.05,
) -> Check:
    """Means of draws against a closed form, by default at all fan-outs that do sample."""
    against = means_against(
        samples,
        reference,
        SEED,
        resolution=resolution,
        selected=(("moments_curve_fan_out", "moments_fan_out"),),
    )
    over_sizes = means_against(
        samples,
        reference,
        SEED,
        resolution=resolution,
        selected=(
            ("moments_curve_fan_out", "moments_fan_out"),
            ("moments_curve_batch_size", "moments_batch_size"),
        ),
    )

    def check(dataset: xr.Dataset) -> Evidence:
        chosen = dataset.isel(moments_fan_out=fan_outs, moments_batch_size=sizes)
        varied = "moments_curve_batch_size" in dataset[reference].dims
        return (over_sizes if varied else against)(chosen)

    return check


def _no_ridge(dataset: xr.Dataset) -> Evidence:
    chosen = dataset.isel(moments_fan_out=slice(None, -1))
    return Evidence(samples=column(chosen, "moments_ridge_share", SEED), reference=0.0)


def _order(dataset: xr.Dataset) -> Evidence:
    """Losses at one more neighbour against those at one fewer, every sample counted."""
    fewer = dataset.isel(moments_small_fan_out=slice(None, -1))
    more = dataset.isel(moments_small_fan_out=slice(1, None))
    return Evidence(
        exact=column(more, "moments_enumerated_loss"),
        reference=column(fewer, "moments_enumerated_loss"),
        tolerance=ROUNDING,
        labels=case_labels(more, "moments_enumerated_loss"),
    )


def _slow_order(dataset: xr.Dataset) -> Evidence:
    """The excess over all neighbours times β is no less at one more neighbour: draws with replacement.

    Their variance goes as 1/β; without replacement it goes as 1/β − 1/d.
    """
    loss = dataset["moments_enumerated_loss"]
    excess = loss - loss.isel(moments_small_fan_out=-1, drop=True)
    weighted = (excess * loss["moments_small_fan_out"]).transpose(*loss.dims)
    part = xr.Dataset({"weighted": weighted})
    more = part.isel(moments_small_fan_out=slice(1, None))
    return Evidence(
        exact=column(part.isel(moments_small_fan_out=slice(None, -1)), "weighted"),
        reference=column(more, "weighted"),
        tolerance=ROUNDING,
        labels=case_labels(more, "weighted"),
    )


def _enumerated(*, factor: float = 1.0, shift: int = 0) -> Check:
    """The closed form of the squared loss against the enumeration, `shift` fan-outs off."""

    def check(dataset: xr.Dataset) -> Evidence:
        exact = dataset["moments_enumerated_loss"].sel(moments_loss="squared", drop=True)
        pair = xr.Dataset({"exact": exact, "formula": dataset["moments_squared_loss"]})
        stop = None if shift == 0 else -shift
        return Evidence(
            exact=column(pair.isel(moments_small_fan_out=slice(shift, None)), "exact"),
            reference=factor
            * column(pair.isel(moments_small_fan_out=slice(None, stop)), "formula"),
            tolerance=ROUNDING,
        )

    return check


def _gap(factor: Callable[[xr.DataArray], xr.DataArray]) -> Check:
    def check(dataset: xr.Dataset) -> Evidence:
        chosen = dataset.sel(moments_small_fan_out=slice(GAP_FAN_OUT, None))
        chosen = chosen.isel(moments_small_fan_out=slice(None, -1))  # at β = d both are zero
        pair = chosen.assign(
            expected=chosen["moments_entropy_gap_formula"] * factor(chosen["moments_small_fan_out"])
        )
        return Evidence(
            exact=column(pair, "moments_entropy_gap"),
            reference=column(pair, "expected"),
            tolerance=GAP_ERROR,
            labels=case_labels(pair, "moments_entropy_gap"),
        )

    return check


def _with_replacement(fan_out: xr.DataArray) -> xr.DataArray:
    """Variance with replacement in units of that without, at the small graph's degree 7."""
    return 6.0 / (7.0 - fan_out)


def _late(dataset: xr.Dataset) -> np.ndarray:
    """Excess loss of each run and batch size, averaged over the steps after `LATE`."""
    late = dataset["moments_excess"].sel(moments_step=slice(LATE, None)).mean("moments_step")
    return late.transpose("moments_run_seed", "moments_run_batch_size").values


def _floor(factor: float) -> Check:
    def check(dataset: xr.Dataset) -> Evidence:
        sizes = dataset["moments_run_batch_size"].values
        return Evidence(
            samples=_late(dataset),
            reference=factor * dataset["moments_floor"].sel(moments_run_curve=sizes).values,
            tolerance=FLOOR_ERROR,
            labels=tuple(f"b = {size}" for size in sizes),
        )

    return check


def _floor_rate(exponent: float) -> Check:
    def check(dataset: xr.Dataset) -> Evidence:
        return Evidence(
            samples=_late(dataset)[:, None, :],
            points=dataset["moments_run_batch_size"].values.astype(np.float64),
            reference=exponent,
            tolerance=0.1,
        )

    return check


CLAIMS = (
    Claim(
        id="moments-fan-out-covariance",
        source=Source("derived", "docs/fanout.md#fan-out-estimator"),
        statement=r"$\mathrm{E}\|\tilde h_i-\bar h_i\|^2=(1/m_i-1/d_i)\,\mathrm{tr}\,S_i^2$",
        kind=Kind.EQUAL,
        check=_fixed("moments_estimator_error", "moments_covariance_trace"),
        control=_fixed("moments_estimator_error", "moments_replacement_trace"),
        control_statement="the variance of sampling with replacement",
        formula=THEORY + "neighbor_mean_moments",
        test=TESTS + "test_moments.py::test_every_sample_of_a_ragged_graph",
    ),
    Claim(
        id="moments-two-hops",
        source=Source("derived", "docs/fanout.md#three-layers"),
        statement=r"two hops: outer variance at $\bar h^{(1)}$ plus $1/m$ of the inner one",
        kind=Kind.EQUAL,
        check=_fixed("moments_two_hop_error", "moments_two_hop_variance"),
        control=_fixed("moments_two_hop_error", "moments_two_hop_sum"),
        control_statement="the variances of the hops add up without 1/m",
        formula=THEORY + "two_hop_variance",
        test=TESTS + "test_moments.py::test_two_hops_with_one_sample_a_node",
    ),
    Claim(
        id="moments-implicit-ridge",
        source=Source("derived", "docs/fanout.md#implicit-ridge"),
        statement=r"$\mathrm{E}\,\hat g=\nabla L_{\mathrm{full}}+W\bar V(\beta)$ at every $b$",
        kind=Kind.EQUAL,
        check=_fixed("moments_ridge_share", "moments_whole_share", resolution=0.15),
        control=_no_ridge,
        control_statement="the sampled gradient is unbiased for the full loss",
        formula=THEORY + "implicit_ridge",
        test=TESTS + "test_ridge.py::test_expected_gradient_is_that_of_the_penalised_loss",
    ),
    Claim(
        id="moments-sampled-loss",
        source=Source("derived", "docs/fanout.md#implicit-ridge"),
        statement=r"a batch's own loss has mean $L_{\mathrm{full}}+\frac{1}{2}\mathrm{tr}\,"
        r"W\bar V W^\top$ at every $b$",
        kind=Kind.EQUAL,
        check=_fixed("moments_batch_loss", "moments_sampled_loss"),
        control=_fixed("moments_batch_loss", "moments_full_loss"),
        control_statement="it has the mean of the loss with all neighbours",
        formula=THEORY + "sampled_loss_moments",
        test=TESTS + "test_sampled_loss.py::test_every_sample",
    ),
    Claim(
        id="moments-batch-loss-variance",
        source=Source("derived", "docs/fanout.md#stopping-rules"),
        statement=r"a batch's own loss has variance $[(1-b/n)S^2+\bar v]/b$",
        kind=Kind.EQUAL,
        check=_fixed("moments_batch_loss_deviation", "moments_batch_loss_variance", resolution=0.2),
        control=_fixed("moments_batch_loss_deviation", "moments_nodes_alone_variance"),
        control_statement="it varies with the nodes of the batch alone",
        formula=THEORY + "batch_loss_std",
        test=TESTS + "test_sampled_loss.py::test_every_batch_and_sample",
    ),
    Claim(
        id="moments-batch-noise",
        source=Source("derived", "docs/fanout.md#gradient-noise"),
        statement=r"the batch's part of the gradient noise is $(1/b-1/n)\,\mathrm{tr}\,S_\mu^2$",
        kind=Kind.EQUAL,
        check=_fixed(
            "moments_drawn_batch_part",
            "moments_batch_part",
            fan_outs=slice(SWAMPED, None),
            sizes=slice(None, -1),
            resolution=0.15,
        ),
        control=_fixed(
            "moments_drawn_batch_part",
            "moments_iid_batch_part",
            fan_outs=slice(SWAMPED, None),
            sizes=slice(None, -1),
        ),
        control_statement="batches drawn with replacement: no factor 1 − b/n",
        formula=THEORY + "gradient_noise",
        test=TESTS + "test_noise.py::test_every_batch_and_sample",
    ),
    Claim(
        id="moments-fan-out-noise",
        source=Source("derived", "docs/fanout.md#gradient-noise"),
        statement=r"the fan-out's part is $\frac{1}{b}\,\mathrm{mean}_i\,\mathrm{tr}\,\Lambda_i$",
        kind=Kind.EQUAL,
        check=_fixed("moments_drawn_fan_out_part", "moments_fan_out_part", resolution=0.1),
        control=_fixed("moments_drawn_fan_out_part", "moments_uncorrected_fan_out_part"),
        control_statement="no finite-population correction: 1/m in place of 1/m − 1/d",
        formula=THEORY + "gradient_noise",
        test=TESTS + "test_noise.py::test_each_part",
    ),
    Claim(
        id="moments-all-nodes-noise",
        source=Source("derived", "docs/fanout.md#gradient-noise"),
        statement=r"$b=n$ leaves the fan-out's noise alone",
        kind=Kind.EQUAL,
        check=_fixed(
            "moments_drawn_noise",
            "moments_fan_out_part",
            sizes=slice(-1, None),
            resolution=0.1,
        ),
        control=_fixed("moments_drawn_noise", "moments_iid_noise", sizes=slice(-1, None)),
        control_statement="the noise of n nodes drawn with replacement",
        formula=THEORY + "gradient_covariance",
        test=TESTS + "test_noise.py::test_each_part",
    ),
    Claim(
        id="moments-mean-iterate",
        source=Source("derived", "docs/fanout.md#gradient-noise"),
        statement=r"SGD: $\mathrm{E}W_{t+1}=\mathrm{E}W_t(I-\eta M)+\eta C_{yh}$, $M=C_{hh}+\bar V$",
        kind=Kind.EQUAL,
        check=means_against("moments_iterate", "moments_whole_iterate", "moments_run_seed"),
        control=means_against("moments_iterate", "moments_ridgeless_iterate", "moments_run_seed"),
        control_statement="the recursion without V̄",
        formula=THEORY + "mean_iterate",
        test=TESTS + "test_ridge.py::test_mean_iterate_averages_every_history",
    ),
    Claim(
        id="moments-noise-floor",
        source=Source("derived", "docs/fanout.md#gradient-noise"),
        statement=r"SGD settles at excess $\frac{\eta}{4}\mathrm{tr\,Cov}(\hat g)$ at $W_\beta$"
        r" ($\eta\lambda_{\max}\leq 0.1$)",
        kind=Kind.EQUAL,
        check=_floor(1.0),
        control=_floor(2.0),
        control_statement="twice that, η/2 in place of η/4",
        formula=THEORY + "noise_floor",
        test=TESTS + "test_noise.py::test_floor_is_first_order_in_the_step",
    ),
    Claim(
        id="moments-floor-rate",
        source=Source("derived", "docs/fanout.md#gradient-noise"),
        statement=r"the floor halves when $b$ doubles ($b\ll n$)",
        kind=Kind.RATE,
        check=_floor_rate(-1.0),
        control=_floor_rate(-0.5),
        control_statement="it falls as the root of b",
        formula=THEORY + "noise_floor",
        test=TESTS + "test_noise.py::test_floor_is_first_order_in_the_step",
    ),
    Claim(
        id="moments-convex-order",
        source=Source("derived", "docs/fanout.md#convex-order"),
        statement=r"at any $W$, $L_\beta(W)$ is non-increasing in $\beta$: squared, cross-entropy",
        kind=Kind.UPPER,
        check=_order,
        control=_slow_order,
        control_statement="its excess falls no faster than 1/β, that of draws with replacement",
        formula=THEORY + "sampled_loss_moments",
        test=TESTS + "test_sampled_loss.py::test_convex_order",
    ),
    Claim(
        id="moments-squared-loss",
        source=Source("derived", "docs/fanout.md#implicit-ridge"),
        statement=r"closed form of $L_\beta(W)$ = mean over every sample of every node",
        kind=Kind.IDENTITY,
        check=_enumerated(),
        control=_enumerated(shift=1),
        control_statement="the closed form at one neighbour fewer",
        formula=THEORY + "sampled_loss_moments",
        test=TESTS + "test_sampled_loss.py::test_every_sample",
    ),
    Claim(
        id="moments-cross-entropy-gap",
        source=Source("derived", "docs/fanout.md#convex-order"),
        statement=r"cross-entropy: $L_\beta-L_{\mathrm{full}}\approx\frac{1}{2}\mathrm{mean}_i\,"
        r"\mathrm{tr}\,WV_iW^\top(\mathrm{diag}\,p-pp^\top)$",
        kind=Kind.IDENTITY,
        check=_gap(xr.ones_like),
        control=_gap(_with_replacement),
        control_statement="the same with the variance of sampling with replacement",
        formula=THEORY + "cross_entropy_gap",
        test=TESTS + "test_sampled_loss.py::test_cross_entropy_gap_is_second_order",
    ),
)
