"""Helpers for the datasets of every study: descriptions, and cases as flat axes."""

import numpy as np
import xarray as xr


def describe(dataset: xr.Dataset, units: str, **other: str) -> xr.Dataset:
    """Give every variable without a description its name in words and `units` (or its `other`)."""
    for name, variable in dataset.data_vars.items():
        words = str(name).split("_", 1)[-1].replace("_", " ")
        described = {"long_name": words, "units": other.get(str(name), units)}
        variable.attrs = described | variable.attrs
    return dataset


def column(dataset: xr.Dataset, name: str, *dims: str) -> np.ndarray:
    """A variable as an array whose cases (all dims but `dims`) are flattened to the last axis.

    column(ds, "risk", "seed") is (seeds, cases); column(ds, "exact") is (cases,).
    """
    array = dataset[name]
    cases = [dim for dim in array.dims if dim not in dims]
    ordered = array.transpose(*dims, *cases).values
    return np.ascontiguousarray(ordered.reshape(*ordered.shape[: len(dims)], -1))


def case_labels(dataset: xr.Dataset, name: str, *dims: str) -> tuple[str, ...]:
    """Names of the cases of `column(dataset, name, *dims)`, in its order."""
    array = dataset[name]
    cases = [dim for dim in array.dims if dim not in dims]
    coordinates = [
        [f"{dim} {value}" for value in dataset[dim].values.tolist()] for dim in map(str, cases)
    ]
    labels = [""]
    for values in coordinates:
        labels = [f"{label}, {value}" if label else value for label in labels for value in values]
    return tuple(labels)
