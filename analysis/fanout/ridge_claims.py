"""Claims about fan-out as an implicit ridge; their numbers are the variables of `ridge.run`.

Errors are compared by their logarithms: on few training nodes their distribution has a long tail.
"""

from itertools import pairwise

import numpy as np
import xarray as xr

from boundlab.analysis.datasets import case_labels, column
from boundlab.analysis.evidence import paired
from boundlab.analysis.fanout.published_tables import ACCURACY_DATASETS, published_accuracy
from boundlab.claims import Check, Claim, Evidence, Kind, Source

THEORY = "boundlab.theory.fanout."
RIDGE_TEST = "tests/theory/fanout/test_ridge.py::test_minimiser_of_the_enumerated_loss"

RIDGE = Source("derived", "docs/fanout.md#implicit-ridge")
CURVES = Source("derived", "docs/fanout.md#u-curves")
# Least squares on R drawn neighbourhoods is off W_β by O(1/R) in test error. SGD at its step size and
# the largest batch keeps an excess sampled loss of up to 3 % of the floor (`noise_floor`).
DRAWS_ERROR = 0.01
STEP_ERROR = 0.04
FEW, MANY = 0, -1
SEED = "ridge_seed"


def _half(grid: np.ndarray) -> float:
    """The fan-out of the grid that is half the degree."""
    return float(grid[len(grid) // 2])


def _smaller(first: xr.DataArray, second: xr.DataArray, seed: str) -> Evidence:
    """Evidence that log `first` is below log `second` in the mean, paired by `seed`."""
    one, other = xr.broadcast(xr.ufuncs.log(first), xr.ufuncs.log(second))
    pair = xr.Dataset({"one": one, "other": other.transpose(*one.dims)})
    return Evidence(
        samples=column(pair, "one", seed),
        compared_with=column(pair, "other", seed),
        labels=case_labels(pair, "one", seed),
    )


def _half_beats_all(size: int) -> Check:
    def check(dataset: xr.Dataset) -> Evidence:
        error = dataset["ridge_error"].isel(ridge_num_train=[size])
        half = _half(dataset["ridge_fan_out"].values)
        best, full = error.sel(ridge_fan_out=half), error.isel(ridge_fan_out=-1)
        return _smaller(best.drop_vars("ridge_fan_out"), full.drop_vars("ridge_fan_out"), SEED)

    return check


def _half_beats_all_everywhere(size: str) -> Check:
    def check(dataset: xr.Dataset) -> Evidence:
        error = dataset["ridge_graph_error"].sel(ridge_size=[size])
        half = _half(dataset["ridge_fan_out"].values)
        grid = "ridge_graph_fan_out"
        best, full = error.sel({grid: half}), error.isel({grid: -1})
        return _smaller(best.drop_vars(grid), full.drop_vars(grid), "ridge_graph_seed")

    return check


def _best(dataset: xr.Dataset) -> np.ndarray:
    """Fan-out of least mean test error at each number of training nodes."""
    mean = dataset["ridge_error"].mean(SEED).transpose("ridge_num_train", "ridge_fan_out")
    best: np.ndarray = dataset["ridge_fan_out"].values[mean.values.argmin(axis=1)]
    return best.astype(np.float64)


def _late(size: int) -> Check:
    """Best fan-out against .8 of the degree."""

    def check(dataset: xr.Dataset) -> Evidence:
        degree = dataset["ridge_fan_out"].attrs["degree"]
        return Evidence(exact=_best(dataset)[[size]], reference=0.8 * degree)

    return check


def _growing(exponent: float) -> Check:
    """Best fan-out at each number of training nodes against (n'/n)^exponent times the one before.

    The best ridge of independent rows goes as 1/n_train and that of draws with replacement as 1/β:
    together they would make the best fan-out proportional to n_train, exponent 1.
    """

    def check(dataset: xr.Dataset) -> Evidence:
        best, sizes = _best(dataset), dataset["ridge_num_train"].values
        factor = (sizes[1:] / sizes[:-1]) ** exponent
        return Evidence(
            exact=best[1:],
            reference=factor * best[:-1],
            labels=tuple(f"{a} to {b} training nodes" for a, b in pairwise(sizes)),
        )

    return check


def _closed_form(dataset: xr.Dataset, *, ridge: bool = True) -> xr.DataArray:
    """The closed form at the points of least squares; without the ridge that of all neighbours."""
    points = dataset["ridge_simulated_fan_out"].values
    grid = points if ridge else np.repeat(dataset["ridge_fan_out"].values[-1], len(points))
    found = dataset["ridge_error"].sel(ridge_num_train=dataset["ridge_simulated_num_train"].values)
    found = found.isel(ridge_fan_out=[list(dataset["ridge_fan_out"].values).index(b) for b in grid])
    names = {
        "ridge_num_train": "ridge_simulated_num_train",
        "ridge_fan_out": "ridge_simulated_fan_out",
    }
    return found.rename(names).assign_coords(ridge_simulated_fan_out=points)


def _least_squares(*, ridge: bool) -> Check:
    """Ratio to the closed form below the full fan-out, where draws matter."""

    def check(dataset: xr.Dataset) -> Evidence:
        ratio = dataset["ridge_simulated_error"] / _closed_form(dataset, ridge=ridge)
        part = xr.Dataset({"ratio": ratio.isel(ridge_simulated_fan_out=slice(None, -1))})
        return Evidence(
            samples=column(part, "ratio", SEED),
            reference=1.0,
            tolerance=DRAWS_ERROR,
            labels=case_labels(part, "ratio", SEED),
        )

    return check


def _full_fan_out(dataset: xr.Dataset) -> Evidence:
    full = dataset["ridge_simulated_error"].isel(ridge_simulated_fan_out=-1, drop=True)
    expected = _closed_form(dataset).isel(ridge_simulated_fan_out=-1, drop=True)
    return Evidence(exact=_ratio(full, expected), reference=1.0, tolerance=1e-6)


def _with_replacement(dataset: xr.Dataset) -> Evidence:
    full = dataset["ridge_simulated_error"].isel(ridge_simulated_fan_out=-1, drop=True)
    sizes = dataset["ridge_simulated_num_train"].values
    expected = dataset["ridge_replacement_error"].sel(ridge_num_train=sizes)
    expected = expected.rename(ridge_num_train="ridge_simulated_num_train")
    return Evidence(exact=_ratio(full, expected), reference=1.0, tolerance=1e-6)


def _ratio(one: xr.DataArray, other: xr.DataArray) -> np.ndarray:
    ratio: np.ndarray = (one / other).values.ravel().astype(np.float64)
    return ratio


def _training(*, ridge: bool) -> Check:
    """Ratio of SGD at the largest batch to the closed form."""

    def check(dataset: xr.Dataset) -> Evidence:
        found = dataset["ridge_trained_error"].isel(ridge_batch_size=-1, drop=True)
        points = dataset["ridge_trained_fan_out"].values
        error = dataset["ridge_error"].isel(ridge_num_train=FEW, drop=True)
        if ridge:
            expected = error.sel(ridge_fan_out=points).rename(ridge_fan_out="ridge_trained_fan_out")
        else:
            expected = error.isel(ridge_fan_out=-1, drop=True)
        part = xr.Dataset({"ratio": found / expected})
        return Evidence(
            samples=column(part, "ratio", SEED),
            reference=1.0,
            tolerance=STEP_ERROR,
            resolution=2 * STEP_ERROR,
            labels=case_labels(part, "ratio", SEED),
        )

    return check


def _batch(exponent: float) -> Check:
    """A smaller batch ends above a larger one: it moves the noise, not the aim.

    By at least the ratio of their sizes to the power `exponent`; 1 if all of the error were noise,
    which is proportional to 1/b.
    """

    def check(dataset: xr.Dataset) -> Evidence:
        error, sizes = dataset["ridge_trained_error"], dataset["ridge_batch_size"].values
        small = error.isel(ridge_batch_size=0, drop=True)
        large = error.isel(ridge_batch_size=-1, drop=True)
        return _smaller((sizes[-1] / sizes[0]) ** exponent * large, small, SEED)

    return check


def _citations(dataset: xr.Dataset) -> tuple[xr.DataArray, xr.DataArray]:
    """Test accuracy with one neighbour a node and with all, fewest training nodes."""
    accuracy = dataset["ridge_citation_accuracy"].isel(ridge_citation_num_train=0)
    ends = [accuracy.isel(ridge_citation_fan_out=end, drop=True) for end in (0, -1)]
    return ends[0], ends[1]


def _below(smaller: xr.DataArray, larger: xr.DataArray) -> Evidence:
    return paired("smaller", "larger", "ridge_citation_seed")(
        xr.Dataset({"smaller": smaller, "larger": larger})
    )


def _one_is_better(dataset: xr.Dataset) -> Evidence:
    one, every = _citations(dataset)
    return _below(every, one)


def _by_published_gain(dataset: xr.Dataset) -> Evidence:
    """One neighbour gains no more than any smallest fan-out over all, at one b, in their tables."""
    one, every = _citations(dataset)
    gains = [
        table.isel(fan_out=0) - table.isel(fan_out=-1)
        for table in map(published_accuracy, ACCURACY_DATASETS)
    ]
    return _below(one - max(float(gain.max()) for gain in gains) / 100, every)


def _cliques(noise: float) -> Check:
    """Floor at each fan-out relative to that with all neighbours."""

    def check(dataset: xr.Dataset) -> Evidence:
        floor = dataset["ridge_clique_floor"].sel(ridge_noise=noise)
        ratio = floor / floor.isel(ridge_fan_out=-1)
        return Evidence(exact=ratio.values, reference=1.0, tolerance=1e-10)

    return check


CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="ridge-few-train",
        source=CURVES,
        statement=r"Few training nodes: test error at $\beta=d/2$ is below that at $\beta=d$",
        kind=Kind.ORDER,
        check=_half_beats_all(FEW),
        control=_half_beats_all(MANY),
        control_statement="so it is with many training nodes",
        formula=THEORY + "implicit_ridge",
        test=RIDGE_TEST,
    ),
    Claim(
        id="ridge-many-train",
        source=CURVES,
        statement=r"Many training nodes: the best fan-out is at least $.8\,d$",
        kind=Kind.LOWER,
        check=_late(MANY),
        control=_late(FEW),
        control_statement="so it is with few training nodes",
        formula=THEORY + "implicit_ridge",
        test=RIDGE_TEST,
    ),
    Claim(
        id="ridge-best-grows",
        source=CURVES,
        statement="The best fan-out does not fall as training nodes are added",
        kind=Kind.LOWER,
        check=_growing(0.0),
        control=_growing(1.0),
        control_statement="it grows in proportion to them, as a ridge 1/β that goes as 1/n_train",
        formula=THEORY + "implicit_ridge",
        test=RIDGE_TEST,
    ),
    Claim(
        id="ridge-graphs",
        source=CURVES,
        statement=r"On four more graphs few training nodes prefer $\beta=d/2$, too",
        kind=Kind.ORDER,
        check=_half_beats_all_everywhere("few"),
        control=_half_beats_all_everywhere("many"),
        control_statement="so do many",
        formula=THEORY + "implicit_ridge",
        test=RIDGE_TEST,
    ),
    Claim(
        id="ridge-citations",
        source=CURVES,
        statement=r"Citations, 140 papers: $\beta=1$ beats all neighbours",
        kind=Kind.ORDER,
        check=_one_is_better,
        control=_by_published_gain,
        control_statement="by no more points than in any of the published tables",
        formula=THEORY + "implicit_ridge",
        test=RIDGE_TEST,
    ),
    Claim(
        id="ridge-closed-form",
        source=RIDGE,
        statement=r"Least squares on drawn neighbourhoods has the test error of $W_\beta$",
        kind=Kind.EQUAL,
        check=_least_squares(ridge=True),
        control=_least_squares(ridge=False),
        control_statement="it has that of training with all neighbours",
        formula=THEORY + "implicit_ridge",
        test=RIDGE_TEST,
    ),
    Claim(
        id="ridge-vanishes",
        source=RIDGE,
        statement=r"At $\beta=d$ nothing is drawn: the ridge vanishes",
        kind=Kind.IDENTITY,
        check=_full_fan_out,
        control=_with_replacement,
        control_statement="the ridge of draws with replacement",
        formula=THEORY + "neighbor_mean_moments",
        test="tests/theory/fanout/test_moments.py::test_every_sample_of_a_ragged_graph",
    ),
    Claim(
        id="ridge-training",
        source=RIDGE,
        statement=r"SGD with sampled neighbours ends at the test error of $W_\beta$",
        kind=Kind.EQUAL,
        check=_training(ridge=True),
        control=_training(ridge=False),
        control_statement="it ends at that of training with all neighbours",
        formula=THEORY + "implicit_ridge",
        test=RIDGE_TEST,
    ),
    Claim(
        id="ridge-batch",
        source=RIDGE,
        statement="A smaller batch ends above it: $b$ moves the noise, not the aim",
        kind=Kind.ORDER,
        check=_batch(0.0),
        control=_batch(1.0),
        control_statement="in proportion to 1/b, as if all of the error were noise",
        formula=THEORY + "noise_floor",
        test="tests/theory/fanout/test_noise.py::test_floor_is_first_order_in_the_step",
    ),
    Claim(
        id="ridge-equal-neighbours",
        source=RIDGE,
        statement="Where all neighbours agree there is no ridge: the floor is flat",
        kind=Kind.IDENTITY,
        check=_cliques(0.0),
        control=_cliques(1.0),
        control_statement="so it is where they differ",
        formula=THEORY + "neighbor_mean_moments",
        test="tests/theory/fanout/test_moments.py::test_equal_neighbours_and_no_edges",
    ),
)
