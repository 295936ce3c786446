"""The three Planetoid citation graphs, shipped with the package as plain arrays.

Sources: [sen2008collective] (Cora, Citeseer), [namata2012query] (PubMed), and
[yang2016revisiting] for the public splits.
"""

import dataclasses
from importlib import resources

import numpy as np

from boundlab.checks import check_choice
from boundlab.models.graph_types import Graph, from_edges

NAMES = ("cora", "citeseer", "pubmed")


def planetoid(name: str) -> Graph:
    """Citation graph `cora`, `citeseer` or `pubmed`, all nodes, with its node data.

    `features` (n, p) float32, dense: binary words for Cora and Citeseer, TF-IDF (stored with half
    precision) for PubMed. `labels` (n,) are positions in `class_names`; −1 for the 15 isolated
    Citeseer papers without data. `splits` has the public `train`, `val` and `test` nodes for
    Citeseer and PubMed, and is empty for Cora, whose source has none.

    Raises `ValueError` naming `name` for any other graph.
    """
    check_choice("name", name, NAMES)
    source = resources.files("boundlab.models").joinpath("data", f"{name}.npz")
    with source.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        data = dict(arrays)
    num_nodes = len(data["labels"])
    features = np.zeros((num_nodes, int(data["num_features"])), np.float32)
    rows = np.repeat(np.arange(num_nodes), np.diff(data["feat_indptr"]))
    features[rows, data["feat_indices"]] = data.get("feat_values", 1)
    labels = data["labels"].astype(np.int64)
    splits = {
        split: data[f"planetoid_{split}"].astype(np.int64)
        for split in ("train", "val", "test")
        if f"planetoid_{split}" in data
    }
    features.flags.writeable = False  # or it would be copied
    return dataclasses.replace(
        from_edges(data["edges"], num_nodes),
        features=features,
        labels=labels,
        class_names=tuple(data["class_names"].tolist()),
        splits=splits,
    )
