"""Claims about stopping rules; their numbers are the variables of `stopping.run`."""

from itertools import pairwise

import numpy as np
import xarray as xr

from boundlab.analysis.datasets import case_labels, column
from boundlab.analysis.evidence import means_against
from boundlab.claims import Check, Claim, Evidence, Kind, Source

THEORY = "boundlab.theory.fanout."
HITTING = THEORY + "hitting_time"
HITTING_TEST = "tests/theory/fanout/test_stopping.py::test_simulated_checks"
SEED, GRID_SEED = "stopping_seed", "stopping_grid_seed"
MODEL_ERROR = 0.12
"""The losses of a run are neither normal nor independent, and the model follows the mean iterate."""
RESOLUTION = 0.2
"""Few runs, whose T varies by a tenth to a sixth, decide no better."""
NEAR = 1.08
"""Target over the floor at which the rules are contrasted."""
MODELLED = (1.08, 1.2, 1.5)
RISE = 1.5
"""At least so much larger is T of the batch's own loss at b = n than at the smallest batch."""
BLOCK_RISE = 1.4
LINEAR = 1.0
"""Size of the exponent of b in the published rate of cross-entropy; that of squared loss is 5/2."""
FLAT = 0.12
SOURCE = Source("derived", "docs/fanout.md#stopping-rules")
BLOCKS = Source("derived", "docs/fanout.md#block-degrees")


def _modelled(samples: str, reference: str) -> Check:
    check = means_against(samples, reference, SEED, tolerance=MODEL_ERROR, resolution=RESOLUTION)
    return lambda dataset: check(dataset.sel(stopping_target=list(MODELLED)))


def _rise(name: str, factor: float = 1.0) -> Check:
    """factor·T at the smallest batch below T at b = n, at the target `NEAR`."""

    def check(dataset: xr.Dataset) -> Evidence:
        times = dataset[name].sel(stopping_target=NEAR).transpose(SEED, "stopping_batch_size")
        return Evidence(
            samples=factor * times.values[:, :1],
            compared_with=times.values[:, -1:],
            labels=("smallest b against b = n",),
        )

    return check


def _rising(exponent: float) -> Check:
    """T at each batch size times (b'/b)^exponent against T at the next larger one, b'."""

    def check(dataset: xr.Dataset) -> Evidence:
        times = dataset["stopping_batch_time"].sel(stopping_target=NEAR)
        values = times.transpose(SEED, "stopping_batch_size").values
        sizes = dataset["stopping_batch_size"].values
        return Evidence(
            samples=(sizes[1:] / sizes[:-1]) ** exponent * values[:, :-1],
            compared_with=values[:, 1:],
            labels=tuple(f"b = {a} against {b}" for a, b in pairwise(sizes)),
        )

    return check


def _below_floor(name: str) -> Check:
    """Share of runs that stop below the floor, over all batch sizes but the two largest."""

    def check(dataset: xr.Dataset) -> Evidence:
        part = dataset.isel(stopping_target=0, stopping_batch_size=slice(None, -2))
        stopped = 1 - part.mean("stopping_batch_size")
        return Evidence(samples=column(stopped, name, SEED), reference=0.5)

    return check


def _cell(dataset: xr.Dataset, setting: str, rule: str) -> np.ndarray:
    """T (seeds, batch sizes) of a setting under a rule, at the middle fan-out."""
    middle = dataset.sizes["stopping_grid_fan_out"] // 2
    chosen = dataset["stopping_grid_time"].sel(stopping_setting=setting, stopping_rule=rule)
    part = chosen.isel(stopping_grid_fan_out=middle)
    return part.transpose(GRID_SEED, "stopping_grid_batch_size").values


def _sign(cells: tuple[tuple[str, str, int], ...], *, exponent: float = 0.0) -> Check:
    """T at the smallest batch against b = n; the number of a cell is the sign of its rise in b.

    `exponent`: a rise (or fall) by at least the ratio of these batch sizes to this power. Cells whose
    setting was not run are left out.
    """

    def check(dataset: xr.Dataset) -> Evidence:
        ran = dataset["stopping_setting"].values
        sizes = dataset["stopping_grid_batch_size"].values
        factor = (sizes[-1] / sizes[0]) ** exponent
        pairs, labels = [], []
        for setting, rule, sign in cells:
            if setting not in ran:
                continue
            values = _cell(dataset, setting, rule)
            smaller, larger = (values[:, 0], values[:, -1])[::sign]
            pairs.append((factor * smaller, larger))
            labels.append(f"{setting}, {rule}")
        smaller, larger = (np.stack(side, axis=1) for side in zip(*pairs, strict=True))
        return Evidence(samples=smaller, compared_with=larger, labels=tuple(labels))

    return check


def _ratio(setting: str, dataset: xr.Dataset) -> np.ndarray:
    """T at the smallest batch over T at b = n, by the sampled loss."""
    values = _cell(dataset, setting, "sampled")
    return values[:, :1] / values[:, -1:]


def _flat(*settings: str) -> Check:
    """Cells whose setting was not run are left out."""

    def check(dataset: xr.Dataset) -> Evidence:
        ran = [name for name in settings if name in dataset["stopping_setting"].values]
        return Evidence(
            samples=np.concatenate([_ratio(name, dataset) for name in ran], axis=1),
            reference=1.0,
            tolerance=FLAT,
            resolution=RESOLUTION,
            labels=tuple(ran),
        )

    return check


def _block_rise(setting: str) -> Check:
    def check(dataset: xr.Dataset) -> Evidence:
        values = _cell(dataset, setting, "sampled")
        return Evidence(
            samples=BLOCK_RISE * values[:, :1], compared_with=values[:, -1:], labels=(setting,)
        )

    return check


def _exponents(*, published: bool = False) -> Check:
    """Size of the exponent of b over the theorem's, under the rules that look at a loss once."""

    def check(dataset: xr.Dataset) -> Evidence:
        exponents = dataset["stopping_exponent"].sel(stopping_axis="batch_size")
        stated = dataset["stopping_theorem"].sel(stopping_axis="batch_size")
        if published:  # with the scatter of the fitted ones
            exponents = stated + exponents - exponents.mean(GRID_SEED)
        share = abs(exponents).sel(stopping_rule=["batch", "sampled", "full"]) / abs(stated)
        part = xr.Dataset({"share": share.transpose(GRID_SEED, ...)})
        return Evidence(
            samples=column(part, "share", GRID_SEED),
            reference=0.5,
            labels=case_labels(part, "share", GRID_SEED),
        )

    return check


CLAIMS = (
    Claim(
        id="stopping-model",
        source=SOURCE,
        statement=r"a batch's own loss stops at"
        r" $\mathrm{E}\,T=\sum_t\prod_{s<t}(1-\Phi((\varepsilon-L_s)/\mathrm{sd}_s))$",
        kind=Kind.EQUAL,
        check=_modelled("stopping_batch_time", "stopping_model_time"),
        control=_modelled("stopping_batch_time", "stopping_noiseless_time"),
        control_statement="it stops when its expectation reaches the target",
        formula=HITTING,
        test=HITTING_TEST,
    ),
    Claim(
        id="stopping-noise-free",
        source=SOURCE,
        statement=r"without batch noise these runs take as long at every $b$",
        kind=Kind.EQUAL,
        check=_modelled("stopping_sampled_time", "stopping_sampled_model_time"),
        control=_modelled("stopping_sampled_time", "stopping_model_time"),
        control_statement="they take as many as by the batch's own loss",
        formula=HITTING,
        test=HITTING_TEST,
    ),
    Claim(
        id="stopping-rises",
        source=SOURCE,
        statement=r"stopping on the batch's own loss makes $T$ grow with $b$",
        kind=Kind.ORDER,
        check=_rising(0.0),
        control=_rising(LINEAR),
        control_statement="T grows in proportion to b, or faster, as b^(5/2) does as published",
        formula=HITTING,
        test=HITTING_TEST,
    ),
    Claim(
        id="stopping-ratio",
        source=SOURCE,
        statement=rf"at $b=n$ it takes over {RISE} times the updates of the smallest batch",
        kind=Kind.ORDER,
        check=_rise("stopping_batch_time", RISE),
        control=_rise("stopping_sampled_time", RISE),
        control_statement="so it does on the sampled loss of all nodes",
        formula=HITTING,
        test=HITTING_TEST,
    ),
    Claim(
        id="stopping-below-floor",
        source=SOURCE,
        statement=r"small batches stop most runs at targets that no $W$ reaches",
        kind=Kind.LOWER,
        check=_below_floor("stopping_batch_censored"),
        control=_below_floor("stopping_sampled_censored"),
        control_statement="so does the sampled loss of all nodes",
        formula=THEORY + "implicit_ridge",
        test="tests/theory/fanout/test_ridge.py::test_minimiser_of_the_enumerated_loss",
    ),
    Claim(
        id="stopping-sign",
        source=SOURCE,
        statement=r"squared loss, SGD: $T$ rises with $b$ at the first hit, falls if held",
        kind=Kind.ORDER,
        check=_sign((("sage mse sgd", "batch", 1), ("sage mse sgd", "held", -1))),
        control=_sign(
            (("sage mse sgd", "batch", 1), ("sage mse sgd", "held", -1)), exponent=LINEAR
        ),
        control_statement="in proportion to b, and to 1/b as published for cross-entropy",
        formula=HITTING,
        test=HITTING_TEST,
    ),
    Claim(
        id="stopping-loss",
        source=SOURCE,
        statement=r"Adam, held: $T$ falls with $b$ for squared loss as for cross-entropy",
        kind=Kind.ORDER,
        check=_sign((("sage mse adam", "held", -1), ("sage cross_entropy adam", "held", -1))),
        control=_sign(
            (("sage mse adam", "held", -1), ("sage cross_entropy adam", "held", -1)),
            exponent=LINEAR,
        ),
        control_statement="it falls as 1/b, as published for cross-entropy",
        formula=THEORY + "paper_elasticities",
        test="tests/theory/fanout/test_published_rates.py::test_elasticities_are_derivatives_of_the_counts",
    ),
    Claim(
        id="stopping-exponent",
        source=Source("liu2026full", "Theorems 1 and 2, exponents of b"),
        statement=r"$T\propto b^{5/2}$ and $b^{-1}$ fail: exponents are under half of that",
        kind=Kind.UPPER,
        check=_exponents(),
        control=_exponents(published=True),
        control_statement="the published exponents",
        formula=THEORY + "paper_elasticities",
        test="tests/theory/fanout/test_published_rates.py::test_elasticities_are_derivatives_of_the_counts",
    ),
    Claim(
        id="stopping-full-degrees",
        source=BLOCKS,
        statement=r"mean, full-degree GCN: without batch noise $T$ is the same at any $b$",
        kind=Kind.EQUAL,
        check=_flat("sage mse sgd", "gcn mse sgd"),
        control=_flat("gcn_block mse sgd"),
        control_statement="the same with the block's degrees",
        formula=THEORY + "mean_iterate",
        test="tests/theory/fanout/test_ridge.py::test_mean_iterate_averages_every_history",
    ),
    Claim(
        id="stopping-block-degrees",
        source=BLOCKS,
        statement=rf"block degrees: it is over {BLOCK_RISE} times as large at $b=n$",
        kind=Kind.ORDER,
        check=_block_rise("gcn_block mse sgd"),
        control=_block_rise("sage mse sgd"),
        control_statement="so it is for the mean aggregator",
        formula=THEORY + "block_degree_law",
        test="tests/theory/fanout/test_block_degrees.py::test_law_by_enumeration",
    ),
)
