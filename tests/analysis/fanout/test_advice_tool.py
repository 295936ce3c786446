"""The advice on the command line: files that are read, errors that name file and field, the output."""

import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from boundlab import __main__ as command_line
from boundlab.analysis.fanout import advice_tool
from boundlab.analysis.fanout.advice import advise
from boundlab.analysis.fanout.advice_tool import AdviceOptions, parse_bytes
from boundlab.analysis.fanout.graph_files import load_graph_file
from boundlab.models.graphs import planetoid
from boundlab.registry import STUDY_NAMES

SHIPPED = Path(__file__).resolve().parents[3] / "models" / "data"
EDGES = np.array([[0, 1], [1, 2], [2, 3], [3, 4], [4, 0], [0, 2]])
FEATURES = np.arange(15.0).reshape(5, 3) % 4
LABELS = np.array([0, 1, 0, 1, -1])
GOOD = {"edges": EDGES, "features": FEATURES, "labels": LABELS}


def save(folder: Path, **fields: object) -> Path:
    path = folder / "graph.npz"
    np.savez(path, **{name: value for name, value in fields.items() if value is not None})
    return path


def test_undirected_file_with_labels(tmp_path: Path) -> None:
    file = load_graph_file(save(tmp_path, **GOOD))
    np.testing.assert_array_equal(file.graph.degrees(), [3, 2, 3, 2, 2])
    np.testing.assert_array_equal(file.graph.labels, LABELS)
    np.testing.assert_array_equal(file.targets, [[1, 0], [0, 1], [1, 0], [0, 1], [0, 0]])
    assert file.train_nodes is None
    np.testing.assert_array_equal(file.features, FEATURES)


def test_directed_file_with_targets_and_sparse_features(tmp_path: Path) -> None:
    path = save(
        tmp_path,
        senders=[0, 1, 2],
        receivers=[1, 1 + 1, 3],
        feat_indptr=[0, 1, 1, 3, 4],
        feat_indices=[2, 0, 1, 1],
        feat_values=np.array([0.5, 1, 2, 3], np.float16),
        num_features=4,
        targets=np.array([0.5, np.nan, 1, 2]),
        train=[0, 3],
        num_nodes=4,
        anything="else",
    )
    file = load_graph_file(path)
    np.testing.assert_array_equal(file.graph.degrees(), [0, 1, 1, 1])
    expected = [[0, 0, 0.5, 0], [0, 0, 0, 0], [1, 2, 0, 0], [0, 3, 0, 0]]
    np.testing.assert_array_equal(file.features, expected)
    assert file.targets.shape == (4, 1)
    np.testing.assert_array_equal(file.train_nodes, [0, 3])


@pytest.mark.parametrize("name", ["cora", "citeseer"])
def test_shipped_graphs_are_read_as_by_their_loader(name: str) -> None:
    file, graph = load_graph_file(SHIPPED / f"{name}.npz"), planetoid(name)
    np.testing.assert_array_equal(file.graph.edges(), graph.edges())
    np.testing.assert_array_equal(file.features, graph.features)
    np.testing.assert_array_equal(file.graph.labels, graph.labels)
    if "train" in graph.splits:
        np.testing.assert_array_equal(file.train_nodes, graph.splits["train"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"edges": None}, "edges"),
        ({"edges": EDGES * 1.0}, "edges"),
        ({"edges": EDGES + 1}, "edges"),
        ({"edges": EDGES * 0}, "edges"),
        ({"edges": None, "senders": [0, 1]}, "receivers"),
        ({"edges": None, "senders": [0, 1], "receivers": [1]}, "senders|receivers"),
        ({"features": None}, "features"),
        ({"features": np.full((5, 2), "a")}, "features"),
        ({"features": np.ones(5)}, "features"),
        ({"features": np.ones((5, 0))}, "features"),
        ({"labels": None}, "labels"),
        ({"labels": LABELS[:4]}, "labels"),
        ({"labels": LABELS - 1}, "labels"),
        ({"labels": LABELS * 0 - 1}, "labels"),
        ({"labels": LABELS * 1.0}, "labels"),
        ({"labels": LABELS + 10**12}, "labels"),
        ({"targets": np.ones((4, 2))}, "targets"),
        ({"targets": np.ones((5, 0))}, "targets"),
        ({"num_nodes": 6}, "num_nodes"),
        ({"train": [5]}, "train"),
        ({"train": [0.5]}, "train"),
        ({"train": np.zeros(0, int)}, "train"),
        ({"features": None, "feat_indptr": [0, 1, 2]}, "feat_indices"),
        (
            {
                "features": None,
                "feat_indptr": [0, 1],
                "feat_indices": [0],
                "num_features": 10**13,
            },
            "num_features",
        ),
        (
            {"features": None, "feat_indptr": [0, 2, 1], "feat_indices": [0], "num_features": 2},
            "feat_indptr",
        ),
        (
            {"features": None, "feat_indptr": [0, 1], "feat_indices": [2], "num_features": 2},
            "feat_indices",
        ),
    ],
)
def test_errors_name_file_and_field(change: dict, message: str, tmp_path: Path) -> None:
    path = save(tmp_path, **{**GOOD, **change})
    with pytest.raises(ValueError, match=rf"graph\.npz: field ({message})"):
        load_graph_file(path)


def test_what_is_no_file_of_arrays_is_refused(tmp_path: Path) -> None:
    text = tmp_path / "text.npz"
    text.write_text("no arrays")
    empty = tmp_path / "empty.npz"
    empty.touch()
    single = tmp_path / "single.npy"
    np.save(single, FEATURES)
    pickled = tmp_path / "pickled.npz"
    np.savez(pickled, edges=np.array([{}], dtype=object))
    for path in (text, empty, single, pickled, tmp_path / "missing.npz", tmp_path):
        with pytest.raises(ValueError, match=f"advise: got {path}"):
            load_graph_file(path)


def test_sizes_in_words() -> None:
    assert parse_bytes("65536") == 65536
    assert parse_bytes("64MB") == 64_000_000
    assert parse_bytes(" 1.5 kib ") == 1536
    assert parse_bytes("2GiB") == 2**31
    for bad in ("", "MB", "-1", "0", "64 parsecs", "1e6", "0.1B", 400 * "9", "999999999999TB"):
        with pytest.raises(ValueError, match="memory_budget"):
            parse_bytes(bad)


def test_the_tool_prints_the_recommended_cell_and_returns_the_table(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    n = 40
    edges = np.stack([np.arange(n), (np.arange(n) + rng.integers(1, n // 2, n)) % n], axis=1)
    labels = np.arange(n) % 2
    path = save(tmp_path, edges=edges, features=rng.standard_normal((n, 3)), labels=labels)
    stream = io.StringIO()
    console = Console(file=stream, width=100)
    dataset = advice_tool.apply(AdviceOptions(path, "5kB"), console)
    file = load_graph_file(path)
    expected = advise(file.graph, 5000, file.features, file.targets)
    assert dataset.equals(expected.table)
    assert dataset.attrs["reasons"].split("\n") == list(expected.reasons)
    printed = stream.getvalue()
    assert f"batch size {expected.batch_size}, fan-out {expected.fan_out}" in printed
    (marked,) = [line for line in printed.splitlines() if f"{expected.batch_size} * " in line]
    assert (
        f"{int(dataset['memory'].sel(batch_size=expected.batch_size, fan_out=expected.fan_out)):,}"
        in marked
    )
    for reason in expected.reasons:
        assert reason in printed
    assert "linear network of one layer" in printed.splitlines()[0]


def test_the_table_marks_cells_over_the_budget_and_shows_the_cheapest(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    edges = np.stack([np.arange(40), (np.arange(40) + rng.integers(1, 20, 40)) % 40], axis=1)
    given = {"features": rng.standard_normal((40, 3)), "labels": np.arange(40) % 2}
    stream = io.StringIO()
    path = save(tmp_path, edges=edges, **given)
    dataset = advice_tool.apply(AdviceOptions(path, "1kB"), Console(file=stream, width=100))
    rows = [line.replace("*", "").split() for line in stream.getvalue().splitlines()]
    rows = [row for row in rows if row and row[0].isdigit()]
    assert {"!" in row for row in rows} == {True, False}
    for row in rows:
        cell = dataset.sel(batch_size=int(row[0]), fan_out=int(row[1]))
        assert ("!" in row) == (int(cell["memory"]) > 1000)
    assert "1" in [row[-1] for row in rows]


@pytest.mark.skipif("fanout" not in STUDY_NAMES, reason="the study is not registered")
def test_the_command_from_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    rng = np.random.default_rng(0)
    edges = np.stack([np.arange(30), (np.arange(30) + 7) % 30], axis=1)
    path = save(
        tmp_path, edges=edges, features=rng.standard_normal((30, 2)), labels=np.arange(30) % 3
    )
    command = ["run", "fanout", "--advise", str(path), "--memory-budget"]
    done = subprocess.run(
        [sys.executable, "-m", "boundlab", *command, "64kB", "--out", "found"],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "batch size" in done.stdout
    assert len(list((tmp_path / "found").glob("fanout-advise-*.nc"))) == 1
    assert len(list((tmp_path / "found" / "figures").glob("*.png"))) == 1
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command_line, "_use_compilation_cache", lambda: None)
    assert command_line.run_command([*command, "9"]) == 2
    assert "memory_budget" in capsys.readouterr().err
