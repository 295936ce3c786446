"""Claims about block degrees and the ReLU teacher; their numbers are the variables of `blocks.run`."""

from itertools import pairwise

import numpy as np
import xarray as xr

from boundlab.analysis.datasets import case_labels, column
from boundlab.analysis.evidence import means_against
from boundlab.claims import Check, Claim, Evidence, Kind, Source

THEORY = "boundlab.theory.fanout."
LAW_TEST = "tests/theory/fanout/test_block_degrees.py::test_law_by_enumeration"
LOSS_TEST = "tests/theory/fanout/test_population.py::test_loss_by_quadrature"
DESCENT_TEST = "tests/theory/fanout/test_population.py::test_trajectory_by_derivatives_of_the_loss"
BLOCKS = Source("derived", "docs/fanout.md#block-degrees")
TEACHER = Source("derived", "docs/fanout.md#relu-teacher")
CURVE = (("blocks_curve", "blocks_batch_size"),)
# Smaller batches leave the mean over a batch of losses on fresh features too noisy to decide.
SMALLEST_BATCH = 50
# T counts whole updates, and SGD is not descent on its mean: measured errors are below 3 %.
UPDATES_ERROR = 0.05


def _random(name: str) -> Check:
    """Simulation against the law where the number of rows that share a source is random.

    A batch of one row shares with nobody, and of all rows with all neighbours everyone does.
    """
    check = means_against(
        f"blocks_simulated_{name}", f"blocks_{name}", "blocks_seed", selected=CURVE
    )

    def reduced(dataset: xr.Dataset) -> Evidence:
        law = dataset[f"blocks_{name}"].where(dataset["blocks_distance"] > 1e-12)
        sizes = dataset["blocks_batch_size"].values
        part = dataset.assign({f"blocks_{name}": law})
        return check(part.sel(blocks_batch_size=sizes[sizes > 1]))

    return reduced


def _large_batches(check: Check) -> Check:
    def reduced(dataset: xr.Dataset) -> Evidence:
        sizes = dataset["blocks_batch_size"].values
        return check(
            dataset.sel(blocks_batch_size=sizes[sizes >= min(SMALLEST_BATCH, sizes.max())])
        )

    return reduced


def _falling(name: str, *, exponent: float = 0.0) -> Check:
    """Each batch size b' against the next smaller one b, on the same nested batches.

    It falls at least as b to the power −`exponent`; 1 for a variance that is averaged over a batch.
    """

    def check(dataset: xr.Dataset) -> Evidence:
        sizes = dataset["blocks_batch_size"]
        weighted = dataset[[name]] * (sizes / sizes[0]) ** exponent
        smaller = weighted.isel(blocks_batch_size=slice(None, -1))
        larger = weighted.isel(blocks_batch_size=slice(1, None))
        return Evidence(
            samples=column(larger, name, "blocks_seed"),
            compared_with=column(smaller, name, "blocks_seed"),
            labels=case_labels(larger, name, "blocks_seed"),
        )

    return check


def _updates(reference: str) -> Check:
    return means_against(
        "blocks_simulated_updates",
        reference,
        "blocks_teacher_seed",
        tolerance=UPDATES_ERROR,
        resolution=0.15,
    )


def _exponent(aggregator: str, exponent: float) -> Check:
    """T as a power of β at b = n."""

    def check(dataset: xr.Dataset) -> Evidence:
        sizes = dataset["blocks_cell_batch_size"].values
        cells = np.flatnonzero(sizes == sizes.max())
        part = dataset.isel(blocks_cell=cells).sel(blocks_aggregator=aggregator)
        values = part["blocks_simulated_updates"].transpose("blocks_teacher_seed", "blocks_cell")
        return Evidence(
            samples=values.values[:, None, :],
            points=part["blocks_cell_fan_out"].values.astype(float),
            reference=exponent,
            tolerance=UPDATES_ERROR,
            resolution=0.1,
            labels=(aggregator,),
        )

    return check


def _by_batch(*, exponent: float = 0.0) -> Check:
    """T of block degrees at consecutive batch sizes and one fan-out: at least as b^exponent.

    Exponent 1 is the dense limit T ∝ 1/Γ = λ = bβ/n, in which many rows share every sampled node.
    """

    def check(dataset: xr.Dataset) -> Evidence:
        sizes = dataset["blocks_cell_batch_size"].values
        fan_outs = dataset["blocks_cell_fan_out"].values
        cells = np.flatnonzero(fan_outs == fan_outs[np.argmin(sizes)])
        cells = cells[np.argsort(sizes[cells])]
        part = dataset["blocks_simulated_updates"].sel(blocks_aggregator="gcn_block")
        values = part.transpose("blocks_teacher_seed", "blocks_cell").values[:, cells]
        ordered = sizes[cells]
        return Evidence(
            samples=(ordered[1:] / ordered[:-1]) ** exponent * values[:, :-1],
            compared_with=values[:, 1:],
            labels=tuple(f"b {low} and {high}" for low, high in pairwise(ordered)),
        )

    return check


def _law(name: str, statement: str, control: Check, says: str) -> Claim:
    return Claim(
        id=f"blocks-{name.replace('_', '-')}",
        source=BLOCKS,
        statement=statement,
        kind=Kind.EQUAL,
        check=_random(name),
        control=control,
        control_statement=says,
        formula=THEORY + "block_degree_law",
        test=LAW_TEST,
    )


def _one(dataset: xr.Dataset) -> xr.Dataset:
    return dataset.assign(blocks_one=xr.ones_like(dataset["blocks_fan_out"], dtype=float))


CLAIMS = (
    _law(
        "row_sum",
        r"Block degrees: mean row sum $s=\sqrt{\beta}\,\mathrm{E}\,c^{-1/2}$",
        lambda dataset: means_against("blocks_simulated_row_sum", "blocks_one", "blocks_seed")(
            _one(dataset)
        ),
        "rows sum to 1, as with all neighbours",
    ),
    _law(
        "squared_norm",
        r"Block degrees: mean squared row norm $\Gamma=\mathrm{E}[1/c]$",
        means_against("blocks_simulated_squared_norm", "blocks_mean_squared_norm", "blocks_seed"),
        "Γ = 1/β whatever the batch, as for the mean",
    ),
    _law(
        "distance",
        r"Block degrees: $\mathrm{E}\|\tilde a_i-a_i\|^2=\Gamma-2s/d+1/d$",
        means_against("blocks_simulated_distance", "blocks_mean_distance", "blocks_seed"),
        "1/β − 1/d whatever the batch, as for the mean",
    ),
    Claim(
        id="blocks-distance-falls",
        source=BLOCKS,
        statement=r"Block degrees: the distance from the full row falls with $b$",
        kind=Kind.ORDER,
        check=_falling("blocks_simulated_distance"),
        control=_falling("blocks_simulated_distance", exponent=1.0),
        control_statement="it falls as 1/b, like a variance over the batch",
        formula=THEORY + "block_degree_law",
        test="tests/theory/fanout/test_block_degrees.py::test_all_three_fall_with_the_batch",
    ),
    Claim(
        id="blocks-teacher-loss",
        source=TEACHER,
        statement=r"ReLU teacher: the loss is $\Gamma/2$ times a function of the weights",
        kind=Kind.EQUAL,
        check=_large_batches(
            means_against(
                "blocks_simulated_loss",
                "blocks_loss",
                "blocks_seed",
                resolution=0.1,
                selected=CURVE,
            )
        ),
        control=_large_batches(
            means_against(
                "blocks_simulated_loss", "blocks_loss_of_row_sum", "blocks_seed", selected=CURVE
            )
        ),
        control_statement="with the mean row sum for Γ (eq. 9 of the draft)",
        formula=THEORY + "population_loss",
        test=LOSS_TEST,
    ),
    Claim(
        id="blocks-updates-invariant",
        source=TEACHER,
        statement=r"ReLU teacher: $T\,\Gamma$ is the same for every structure",
        kind=Kind.IDENTITY,
        check=lambda dataset: Evidence(
            exact=dataset["blocks_updates_by_norm"].values, reference=1.0, tolerance=0.01
        ),
        control=lambda dataset: Evidence(
            exact=dataset["blocks_updates_alone"].values, reference=1.0, tolerance=0.01
        ),
        control_statement="T itself is the same",
        formula=THEORY + "population_gradient_descent",
        test="tests/theory/fanout/test_population.py::test_updates_are_inverse_to_the_squared_norm",
    ),
    Claim(
        id="blocks-updates",
        source=TEACHER,
        statement=r"ReLU teacher: SGD takes the updates of descent at $\eta\Gamma$",
        kind=Kind.EQUAL,
        check=_updates("blocks_expected_updates"),
        control=_updates("blocks_updates_of_row_sum"),
        control_statement="the updates at η times the mean row sum",
        formula=THEORY + "population_gradient_descent",
        test=DESCENT_TEST,
    ),
    Claim(
        id="blocks-mean-slows-down",
        source=TEACHER,
        statement=r"ReLU teacher, mean aggregator: $T\propto\beta$",
        kind=Kind.RATE,
        check=_exponent("mean", 1.0),
        control=_exponent("mean", -0.5),
        control_statement="T falls as β^(−1/2), as published",
        formula=THEORY + "population_gradient_descent",
        test=DESCENT_TEST,
    ),
    Claim(
        id="blocks-sum-speeds-up",
        source=TEACHER,
        statement=r"ReLU teacher, sum aggregator: $T\propto 1/\beta$",
        kind=Kind.RATE,
        check=_exponent("sum", -1.0),
        control=_exponent("sum", -0.5),
        control_statement="T falls as β^(−1/2), as published",
        formula=THEORY + "population_gradient_descent",
        test=DESCENT_TEST,
    ),
    Claim(
        id="blocks-batch-slows-down",
        source=BLOCKS,
        statement=r"ReLU teacher, block degrees: $T$ grows with $b$",
        kind=Kind.ORDER,
        check=_by_batch(),
        control=_by_batch(exponent=1.0),
        control_statement="T is proportional to b: Γ = n/(bβ), as if many rows shared every node",
        formula=THEORY + "block_degree_law",
        test=LAW_TEST,
    ),
)
