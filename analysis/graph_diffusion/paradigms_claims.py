"""Claims about the three paradigms; their numbers are the variables of `paradigms.run`."""

import numpy as np
import xarray as xr

from boundlab.analysis.datasets import case_labels, column
from boundlab.analysis.evidence import values_against
from boundlab.claims import Check, Claim, Evidence, Kind, Source

THEORY = "boundlab.theory.graph_diffusion."
SYSTEMS = "tests/theory/graph_diffusion/test_systems.py::"
BLOCK_MODEL = "tests/theory/graph_diffusion/test_block_model.py::"
PARADIGMS = Source("derived", "docs/graph_diffusion.md#paradigms")
ENUMERATED = Source("derived", "docs/graph_diffusion.md#enumerated-block-model")
# Relative rounding of divergences and of their sums.
ROUNDING = 1e-8
SEED, RUN = "paradigms_seed", "paradigms_run_seed"


def _gaussian_order(less: str, more: str) -> Check:
    """Exact Fisher information with one partner against that with another, both blocks."""

    def check(dataset: xr.Dataset) -> Evidence:
        smaller, larger = (
            dataset[["paradigms_gauss_fisher"]].sel(paradigms_partner=name) for name in (less, more)
        )
        return Evidence(
            exact=column(smaller, "paradigms_gauss_fisher"),
            reference=column(larger, "paradigms_gauss_fisher"),
            tolerance=ROUNDING,
            labels=case_labels(smaller, "paradigms_gauss_fisher"),
        )

    return check


def _mean_square(reference: str) -> Check:
    """Mean square of the features' score without structure."""

    def check(dataset: xr.Dataset) -> Evidence:
        chosen = {"paradigms_block": "features", "paradigms_partner": "absent"}
        part = dataset[["paradigms_fisher", reference]].sel(chosen)
        return Evidence(
            samples=column(part, "paradigms_fisher", SEED),
            reference=column(part, reference),
            labels=case_labels(part, "paradigms_fisher", SEED),
        )

    return check


def _posterior(partner: str) -> Check:
    """Mean square of the joint score over the same from posterior variances, as 1 + a small mean.

    Differences are relative to the information with known labels, a constant.
    """

    def check(dataset: xr.Dataset) -> Evidence:
        joint = dataset["paradigms_fisher"].sel(paradigms_partner="noisy", drop=True)
        other = dataset["paradigms_fisher_posterior"].sel(paradigms_partner=partner, drop=True)
        ratio = 1.0 + (joint - other) / dataset["paradigms_fisher_labels"]
        part = xr.Dataset({"ratio": ratio})
        return Evidence(
            samples=column(part, "ratio", SEED),
            reference=1.0,
            labels=case_labels(part, "ratio", SEED),
        )

    return check


def _order(less: str, more: str) -> Check:
    """Fisher information by posterior variances on common draws; `labels` is the exact constant."""

    def values(dataset: xr.Dataset, name: str) -> xr.DataArray:
        found = dataset["paradigms_fisher_posterior"]
        if name == "labels":
            like = xr.ones_like(found.isel(paradigms_partner=0, drop=True))
            return like * dataset["paradigms_fisher_labels"]
        return found.sel(paradigms_partner=name, drop=True)

    def check(dataset: xr.Dataset) -> Evidence:
        part = xr.Dataset({"less": values(dataset, less), "more": values(dataset, more)})
        return Evidence(
            samples=column(part, "less", SEED),
            compared_with=column(part, "more", SEED),
            labels=case_labels(part, "less", SEED),
        )

    return check


def _sampled(lower: str) -> Check:
    """Lower bound of the KL from samples minus the bound, by run."""

    def check(dataset: xr.Dataset) -> Evidence:
        part = xr.Dataset({"gap": dataset[lower] - dataset["paradigms_sbm_bound"]})
        return Evidence(
            samples=column(part, "gap", RUN),
            reference=0.0,
            labels=tuple(np.asarray(dataset["paradigms_paradigm"].values, dtype=str).tolist()),
        )

    return check


CLAIMS = (
    Claim(
        id="paradigms-bound",
        source=PARADIGMS,
        statement=r"Gaussian system: in each paradigm $KL\leq$ initialisation + $\sum_b D_b$",
        kind=Kind.UPPER,
        check=values_against((("paradigms_kl", "paradigms_bound"),), tolerance=ROUNDING),
        control=values_against((("paradigms_kl_marginal", "paradigms_bound"),), tolerance=ROUNDING),
        control_statement="also with scores that don't see the partner",
        formula=THEORY + "system_bound",
        test=SYSTEMS + "test_given_block_by_conditional_modes",
    ),
    Claim(
        id="paradigms-two-stage",
        source=PARADIGMS,
        statement=r"Structure, then features given it: $KL=KL_A+\mathrm{E}\,KL_{X|A}$",
        kind=Kind.IDENTITY,
        check=values_against(
            (("paradigms_two_stage", "paradigms_two_stage_sum"),), tolerance=ROUNDING
        ),
        control=values_against(
            (("paradigms_two_stage", "paradigms_two_stage_alone"),), tolerance=ROUNDING
        ),
        control_statement="KL of the structure + KL of features by their marginal score",
        formula=THEORY + "two_stage_reverse",
        test=SYSTEMS + "test_two_stages_by_one_linear_map",
    ),
    Claim(
        id="paradigms-clean-partner",
        source=PARADIGMS,
        statement=r"Gaussian system: $J_b(t|\mathrm{noisy\ partner})\leq J_b(t|\mathrm{clean\ partner})$",
        kind=Kind.UPPER,
        check=_gaussian_order("noisy", "clean"),
        control=_gaussian_order("noisy", "absent"),
        control_statement="J_b of the block's own law for J_b given the clean partner",
        formula=THEORY + "block_fisher",
        test=SYSTEMS + "test_fisher_information_orders_by_what_the_partner_tells",
    ),
    Claim(
        id="paradigms-noisy-partner",
        source=PARADIGMS,
        statement=r"Gaussian system: $J_b(t|\mathrm{no\ partner})\leq J_b(t|\mathrm{noisy\ partner})$",
        kind=Kind.UPPER,
        check=_gaussian_order("absent", "noisy"),
        control=_gaussian_order("clean", "noisy"),
        control_statement="J_b given the clean partner for J_b of the block's own law",
        formula=THEORY + "block_fisher",
        test=SYSTEMS + "test_fisher_information_orders_by_what_the_partner_tells",
    ),
    Claim(
        id="paradigms-features-alone",
        source=ENUMERATED,
        statement=r"Block model: $\mathrm{E}\|\nabla_x\log q\|^2$ without structure by quadrature",
        kind=Kind.EQUAL,
        check=_mean_square("paradigms_fisher_alone"),
        control=_mean_square("paradigms_fisher_labels"),
        control_statement="as if the labels were known",
        formula=THEORY + "sbm_joint_score",
        test=BLOCK_MODEL + "test_score_is_the_gradient_of_the_enumerated_density",
    ),
    Claim(
        id="paradigms-posterior",
        source=ENUMERATED,
        statement=r"Block model: $J_b$ from the variances of the joint posterior",
        kind=Kind.EQUAL,
        check=_posterior("noisy"),
        control=_posterior("absent"),
        control_statement="from the variances of the posterior without the partner",
        formula=THEORY + "sbm_joint_score",
        test=BLOCK_MODEL + "test_fisher_information_against_the_specification",
    ),
    Claim(
        id="paradigms-sbm-clean-partner",
        source=ENUMERATED,
        statement=r"Block model: $J_b(t|\mathrm{noisy})<J_b(t|\mathrm{clean})$",
        kind=Kind.ORDER,
        check=_order("noisy", "clean"),
        control=_order("labels", "clean"),
        control_statement="a clean partner tells more than the labels do",
        formula=THEORY + "sbm_joint_score",
        test=BLOCK_MODEL + "test_fisher_information_against_the_specification",
    ),
    Claim(
        id="paradigms-sbm-noisy-partner",
        source=ENUMERATED,
        statement=r"Block model: $J_b$ of the own law is below that of the joint score",
        kind=Kind.ORDER,
        check=_order("absent", "noisy"),
        control=_order("labels", "noisy"),
        control_statement="a noisy partner tells more than the labels do",
        formula=THEORY + "sbm_joint_score",
        test=BLOCK_MODEL + "test_fisher_information_against_the_specification",
    ),
    Claim(
        id="paradigms-sbm-bound",
        source=PARADIGMS,
        statement=r"Block model: what samples show of the KL is at most the bound",
        kind=Kind.UPPER,
        check=_sampled("paradigms_sbm_lower"),
        control=_sampled("paradigms_sbm_marginal"),
        control_statement="also with scores that don't see the partner",
        formula=THEORY + "sbm_information_density",
        test=BLOCK_MODEL + "test_information_by_three_enumerated_densities",
    ),
)
