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
from boundlab import results
from boundlab.analysis.team_learning import advice_tool
from boundlab.analysis.team_learning.advice import advise
from boundlab.analysis.team_learning.advice_files import load_team_file
from boundlab.analysis.team_learning.advice_tool import AdviceOptions
from boundlab.registry import STUDY_NAMES

REWARD = np.array([[0.0, -0.3], [-0.2, -0.4]])
TABLE = """writer,critic,reward
draft,10,0.5
plan,9,1.5
draft,9,-1
plan,10,2
draft,9,0
"""


def printed(options: AdviceOptions) -> tuple[str, object]:
    stream = io.StringIO()
    dataset = advice_tool.apply(options, Console(file=stream, width=100))
    return stream.getvalue(), dataset


def save(folder: Path, **fields: object) -> Path:
    path = folder / "team.npz"
    np.savez(path, **fields)
    return path


def table(folder: Path, text: str) -> Path:
    path = folder / "team.csv"
    path.write_text(text)
    return path


def test_tables_of_labels_are_numbered_in_order(tmp_path: Path) -> None:
    """Numbers by value, text by the alphabet; a column `reward` anywhere, else the last."""
    file = load_team_file(table(tmp_path, TABLE))
    assert file.actions is not None
    np.testing.assert_array_equal(file.actions, [[0, 1], [1, 0], [0, 0], [1, 1], [0, 0]])
    np.testing.assert_array_equal(file.rewards, [0.5, 1.5, -1.0, 2.0, 0.0])
    assert file.agents == ("writer", "critic")
    assert file.labels == (("draft", "plan"), ("9", "10"))
    turned = "\n".join(",".join(line.split(",")[::-1]) for line in TABLE.splitlines())
    first = load_team_file(table(tmp_path, turned))
    np.testing.assert_array_equal(first.actions, file.actions[:, ::-1])
    np.testing.assert_array_equal(first.rewards, file.rewards)
    unnamed = load_team_file(table(tmp_path, TABLE.replace("reward", "score")))
    np.testing.assert_array_equal(unnamed.rewards, file.rewards)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "advise: got"),
        ("a,reward\n", "advise: got"),
        ("reward\n1\n", "advise: got"),
        ("a,reward\n1,2\n1\n", "columns: got 1 columns in episode 2"),
        ("a,reward\n1,x\n", "rewards: got text or nothing in column 'reward'"),
        ("a,reward\n1,nan\n", "rewards: got"),
        ("a,reward\n,1\n", "actions: got nothing in column 'a'"),
    ],
)
def test_what_is_wrong_with_a_table_is_said(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        load_team_file(table(tmp_path, text))


@pytest.mark.parametrize(
    "fields",
    [{}, {"actions": [[0]]}, {"rewards": [0.0]}, {"reward": REWARD, "rewards": [0.0]}],
)
def test_fields_that_are_missing_are_named(fields: dict, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"team\.npz: fields: got .*actions and rewards"):
        load_team_file(save(tmp_path, **fields))


def test_what_is_no_file_of_arrays_is_refused(tmp_path: Path) -> None:
    text, single, pickled = (tmp_path / name for name in ("a.npz", "b.npy", "c.npz"))
    text.write_text("no arrays")
    np.save(single, REWARD)
    np.savez(pickled, reward=np.array([{}], dtype=object))
    binary = tmp_path / "d.csv"
    binary.write_bytes(b"a,reward\n\xff\xfe,1\n")
    for path in (text, single, pickled, binary, tmp_path / "missing.npz", tmp_path):
        with pytest.raises(ValueError, match=f"advise: got {path}"):
            load_team_file(path)


def test_a_tensor_is_printed_and_returned(tmp_path: Path) -> None:
    path = save(tmp_path, reward=REWARD, anything="else")
    text, dataset = printed(AdviceOptions(path, accuracy=0.05, noise_std=0.5))
    found = advise(REWARD, accuracy=0.05, failure_probability=0.1, noise_std=0.5)
    assert f"{found.sarl_samples:,.0f}" in text
    assert f"{found.marl_samples:,.0f}" in text
    assert ("don't decompose" in text) == (not found.decompose)
    assert f"{found.alignment:.4g}" in text
    for name in ("alignment", "floor", "sarl_samples", "marl_samples"):
        assert dataset.attrs[name] == getattr(found, name)
    assert dataset.attrs["decompose"] == int(found.decompose)
    # The curves meet the failure probability at the budgets.
    for learner, samples in zip(("one agent", "team"), found[3:5], strict=True):
        curve = dataset["failure"].sel(learner=learner)
        at = np.interp(np.log(samples), np.log(curve["trajectories"]), np.log(curve))
        np.testing.assert_allclose(np.exp(at), 0.1, rtol=0.05)
    np.testing.assert_allclose(dataset["marginal_mean"], [[-0.15, -0.3], [-0.1, -0.35]])
    np.testing.assert_array_equal(dataset["marginal_error"], 0.0)
    stored = tmp_path / "found.nc"
    results.save(dataset, stored)
    assert results.load(stored).equals(dataset)


def test_logs_give_intervals_errors_and_names(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    actions = rng.integers(0, 2, (200, 2))
    rewards = REWARD[tuple(actions.T)] + 0.5 * rng.standard_normal(200)
    names = np.array(["lead", "rear"])[actions[:, 0]]
    lines = [f"{a},{b},{r}" for a, b, r in zip(names, actions[:, 1], rewards, strict=True)]
    path = table(tmp_path, "\n".join(["driver,navigator,reward", *lines]))
    text, dataset = printed(AdviceOptions(path, accuracy=0.05, failure_probability=0.2))
    found = advise(actions=actions, rewards=rewards, accuracy=0.05, failure_probability=0.2)
    assert dataset.attrs["alignment"] == found.alignment
    low, high = found.alignment_interval
    assert f"{low:.3g} … {high:.3g}" in text
    assert "200 logged episodes" in text
    assert "too little for the accuracy 0.05" in text
    assert dataset["label"].values.tolist() == [["lead", "rear"], ["0", "1"]]
    assert dataset["agent"].values.tolist() == ["driver", "navigator"]
    counts = np.bincount(actions @ [2, 1])
    expected = dataset.attrs["noise_std"] / 2 * np.sqrt(1 / counts[0] + 1 / counts[1])
    np.testing.assert_allclose(dataset["marginal_error"][0, 0], expected, rtol=1e-9)
    same = save(tmp_path, actions=actions, rewards=rewards)
    assert printed(AdviceOptions(same, accuracy=0.05, failure_probability=0.2))[0] == text


@pytest.mark.parametrize(
    ("reward", "accuracy", "words"),
    [
        (np.array([[0.3, -0.9], [0.0, 0.0]]), 0.1, "within reach"),
        (np.eye(2), 0.1, "can't tell tied actions apart"),
        (np.zeros((2, 2)), 0.1, "no crossover"),
        (np.add.outer([0.0, 1.0, 1.0], [0.0, 0.0, 9.0]), 0.1, "every joint action once in 9"),
    ],
)
def test_every_verdict_is_a_sentence(
    reward: np.ndarray, accuracy: float, words: str, tmp_path: Path
) -> None:
    text, dataset = printed(
        AdviceOptions(save(tmp_path, reward=reward), accuracy=accuracy, noise_std=0.3)
    )
    assert words in text
    assert words in dataset.attrs["reasons"]
    assert np.isfinite(dataset["failure"]).all()


@pytest.mark.skipif("team_learning" not in STUDY_NAMES, reason="the study is not registered")
def test_the_command_from_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    path = save(tmp_path, reward=REWARD)
    command = ["run", "team_learning", "--advise", str(path), "--accuracy"]
    done = subprocess.run(
        [sys.executable, "-m", "boundlab", *command, "0.05", "--out", "found"],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "decompose" in done.stdout
    assert len(list((tmp_path / "found").glob("team_learning-advise-*.nc"))) == 1
    assert len(list((tmp_path / "found" / "figures").glob("*.png"))) == 1
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command_line, "_use_compilation_cache", lambda: None)
    assert command_line.run_command([*command, "-1"]) == 2
    assert "accuracy" in capsys.readouterr().err
