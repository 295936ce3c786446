"""Evidence from variables of the dataset whose cases are matched by name, not by position."""

import numpy as np
import xarray as xr

from boundlab.analysis.datasets import case_labels, column
from boundlab.claims import Check, Evidence


def means_against(
    samples: str,
    reference: str,
    seed: str = "seed",
    *,
    factor: float = 1.0,
    tolerance: float = 0.0,
    resolution: float = 0.05,
    selected: tuple[tuple[str, str], ...] = (),
) -> Check:
    """Check of the mean of `samples` over the dim `seed` against factor·`reference`, a theory variable.

    Cases of which the theory doesn't speak (NaN) are left out.
    `selected`: pairs (dim of the theory's fine grid, dim of the simulated points, a part of it).
    """

    def check(dataset: xr.Dataset) -> Evidence:
        theory = dataset[reference]
        for fine, simulated in selected:
            theory = theory.sel({fine: dataset[simulated].values}).rename({fine: simulated})
        dims = [dim for dim in dataset[samples].dims if dim != seed]
        like = xr.ones_like(dataset[samples].isel({seed: 0}, drop=True))
        expected = (theory * like).transpose(*dims).values.ravel()
        stated = ~np.isnan(expected)
        labels = case_labels(dataset, samples, seed)
        return Evidence(
            samples=column(dataset, samples, seed)[:, stated],
            reference=factor * expected[stated],
            tolerance=tolerance,
            resolution=resolution,
            labels=tuple(label for label, kept in zip(labels, stated, strict=True) if kept),
        )

    return check


def paired(smaller: str, larger: str, seed: str) -> Check:
    """Check that the mean of `smaller` is below that of `larger`, paired by the dim `seed`."""

    def check(dataset: xr.Dataset) -> Evidence:
        one, other = xr.broadcast(dataset[smaller], dataset[larger])
        pair = xr.Dataset({"one": one, "other": other.transpose(*one.dims)})
        return Evidence(
            samples=column(pair, "one", seed),
            compared_with=column(pair, "other", seed),
            labels=case_labels(pair, "one", seed),
        )

    return check


def values_against(
    pairs: tuple[tuple[str, str], ...], *, factor: float = 1.0, tolerance: float = 0.0
) -> Check:
    """Check of exact variables against factor·reference; one family of cases a pair of names."""

    def check(dataset: xr.Dataset) -> Evidence:
        exact, reference, labels = [], [], []
        for value, other in pairs:
            exact.append(column(dataset, value))
            expected = dataset[other].broadcast_like(dataset[value])
            reference.append(factor * expected.transpose(*dataset[value].dims).values.ravel())
            labels += [f"{value}, {case}" for case in case_labels(dataset, value)]
        return Evidence(
            exact=np.concatenate(exact),
            reference=np.concatenate(reference),
            tolerance=tolerance,
            labels=tuple(labels),
        )

    return check
