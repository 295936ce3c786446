"""The command line: exit codes, errors that name what is wrong, and the report."""

import os
import re
import subprocess
import sys
import types
from dataclasses import dataclass
from pathlib import Path

import jax
import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from boundlab import Claim, Evidence, Kind, Source, registry, results
from boundlab import __main__ as command_line
from boundlab.experiment import Study


@dataclass(frozen=True)
class ToyConfig:
    """A config."""

    num_seeds: int = 100
    """Runs behind the mean."""
    shift: float = 0.0
    """How far the simulation is off its theory."""
    dtype: str = "float64"
    """Precision of the simulation."""


def _experiment(config: ToyConfig, key: jax.Array, repeat: object) -> xr.Dataset:
    if config.num_seeds == 13:
        raise KeyboardInterrupt
    keys = jax.random.split(key, config.num_seeds)
    runs = repeat(
        "toy", lambda p, k: 1 + jax.random.normal(k, dtype=config.dtype) / 50, {"x": [1.0]}, keys
    )
    return xr.Dataset({"value": runs["value"] + config.shift})


def _evidence(reference: float) -> object:
    return lambda ds: Evidence(
        samples=ds["value"].transpose("seed", "x").values, reference=reference
    )


CLAIM = Claim(
    id="mean",
    source=Source("derived", "this test"),
    statement="$m = 1$",
    kind=Kind.EQUAL,
    check=_evidence(1.0),
    control=_evidence(2.0),
    control_statement="twice",
    formula="numpy.ones",
    test="tests/core/test_command_line.py",
)


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Study:
    presets = {"smoke": ToyConfig(), "quick": ToyConfig(), "paper": ToyConfig(200)}
    study = Study("toy", "A toy", ("x",), presets, _experiment, (CLAIM,), {"quick": "1 s"})

    def find(name: str) -> Study:
        if name != "toy":
            raise ValueError(f"study: got {name!r}, expected one of 'toy'")
        return study

    figures = types.ModuleType("boundlab.figures.toy")

    def draw(dataset: xr.Dataset) -> dict:
        figure = Figure(figsize=(3, 2))
        figure.subplots().plot(dataset["value"].values.ravel())
        return {"F1-toy": (figure, "a caption with <angle> brackets")}

    figures.draw = draw
    monkeypatch.setitem(sys.modules, "boundlab.figures.toy", figures)
    for module in (command_line, registry):
        monkeypatch.setattr(module, "STUDY_NAMES", ("toy",))
        monkeypatch.setattr(module, "study", find)
        monkeypatch.setattr(module, "studies", lambda: (study,))
    monkeypatch.setattr(command_line, "_use_compilation_cache", lambda: None)
    monkeypatch.chdir(tmp_path)
    return study


def _call(*arguments: str) -> int:
    return command_line.run_command(arguments)


def test_list_names_studies_and_claims(capsys: pytest.CaptureFixture) -> None:
    assert _call("list") == 0
    printed = capsys.readouterr().out
    assert "A toy" in printed
    assert "mean" in printed
    assert "1 s" in printed


def test_run_saves_and_reuses(capsys: pytest.CaptureFixture, tmp_path: Path) -> None:
    assert _call("run", "toy", "--seed", "4", "--out", "r") == 0
    assert len(list((tmp_path / "r").glob("toy-quick-seed4-*.nc"))) == 1
    assert _call("run", "toy", "--seed", "4", "--out", "r") == 0
    assert "already" in capsys.readouterr().err
    assert _call("run", "toy", "--seed", "4", "--out", "r", "--num-seeds", "50") == 0
    assert len(list((tmp_path / "r").glob("*.nc"))) == 2


def test_verify_exit_codes(capsys: pytest.CaptureFixture) -> None:
    assert _call("verify") == 0
    assert "1 hold, 0 violated" in capsys.readouterr().out
    assert _call("verify", "toy", "--shift", "0.5") == 1
    assert _call("verify", "toy", "--num-seeds", "3") in (
        1,
        4,
    )  # few seeds: no power, or no verdict
    # The control passes: its value is the simulation's.
    assert _call("verify", "toy", "--shift", "1.0") == 1


def test_fresh_draws_another_seed(capsys: pytest.CaptureFixture, tmp_path: Path) -> None:
    assert _call("verify", "--fresh") == 0
    (path,) = (tmp_path / "results").glob("*.nc")
    assert "-seed0-" not in path.name


def test_report_is_one_self_contained_page(tmp_path: Path) -> None:
    assert _call("report") == 0
    page = (tmp_path / "results" / "report.html").read_text()
    assert page.index("Verdicts") < page.index("F1-toy") < page.index("Provenance")
    assert "holds" in page
    assert "rejected" in page
    assert "&lt;angle&gt;" in page
    assert 'src="data:image/png' in page
    table = (tmp_path / "results" / "verdicts.md").read_text()
    short = (tmp_path / "results" / "verdicts-in-short.md").read_text()
    assert "| equal | `mean` 1 | 1 holds | 1 of 1 rejected |" in re.sub(r"[\d.]+ / ", "", short)
    assert "| `mean` | equal | holds | rejected |" in table
    assert "http" not in page.replace("http://www.w3.org", "")


def test_figures(tmp_path: Path) -> None:
    assert _call("figures") == 0
    names = sorted(p.name for p in (tmp_path / "results" / "figures").iterdir())
    assert names == ["toy-F1-toy.png", "toy-F1-toy.svg"]


def test_run_draws_what_the_study_shows(
    toy: Study, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    object.__setattr__(toy, "shown", "part")
    part = types.ModuleType("boundlab.figures.toy.part")
    part.draw = lambda dataset: {"F2-part": (Figure(figsize=(1, 1)), str(dataset.sizes))}
    monkeypatch.setitem(sys.modules, "boundlab.figures.toy.part", part)
    assert _call("run", "toy", "--out", "r") == 0
    names = sorted(p.name for p in (tmp_path / "r" / "figures").iterdir())
    assert names == ["toy-F2-part.png", "toy-F2-part.svg"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["frobnicate"], "frobnicate"),
        (["run", "nothing"], "nothing"),
        (["run", "toy", "--presett", "quick"], "presett"),
        (["run", "toy", "--preset", "huge"], "huge"),
        (["run", "toy", "--seed", "-1"], "seed"),
        (["run", "toy", "--seed", str(2**32)], "seed"),
        (["run", "toy", "--seed", "many"], "seed"),
        (["verify", "--false-alarm-rate", "2"], "false_alarm_rate"),
        (["list", "--all"], "all"),
    ],
)
def test_bad_usage_names_what_is_wrong(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture
) -> None:
    assert _call(*arguments) == 2
    captured = capsys.readouterr()
    assert message in captured.err + captured.out


def test_an_out_that_is_a_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    (tmp_path / "taken").write_text("mine")
    assert _call("run", "--out", "taken") == 2
    assert "taken" in capsys.readouterr().err
    assert (tmp_path / "taken").read_text() == "mine"


def test_a_damaged_result_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert _call("run") == 0
    (path,) = (tmp_path / "results").glob("*.nc")
    path.write_bytes(b"torn")
    assert _call("verify") == 2
    assert path.name in capsys.readouterr().err.replace("\n", "")
    assert path.read_bytes() == b"torn"


def test_an_interrupt_says_that_it_resumes(capsys: pytest.CaptureFixture) -> None:
    assert _call("run", "toy", "--num-seeds", "13") == 3
    assert "resumes" in capsys.readouterr().err


def test_help_and_no_command(capsys: pytest.CaptureFixture) -> None:
    assert _call("--help") == 0
    assert _call() == 2
    assert _call("run", "toy", "--help") == 0
    assert "Runs behind the mean" in capsys.readouterr().out


def test_numbers_in_tables() -> None:
    from boundlab.publish import number

    assert number(float("nan")) == "–"
    assert number(np.pi) == "3.142"


@pytest.mark.smoke
def test_the_installed_command_answers() -> None:
    command = Path(sys.executable).with_name("boundlab")
    done = subprocess.run(
        [str(command), "list"],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
    )
    assert done.returncode == 0, done.stderr
    assert "excess_risk" in done.stdout


def test_the_last_preset_counts_and_changes_are_named(tmp_path: Path) -> None:
    assert _call("run", "toy", "--preset", "smoke", "--preset", "paper") == 0
    (path,) = (tmp_path / "results").glob("*.nc")
    dataset = results.load(path)
    assert path.name.startswith("toy-paper-seed0")
    assert dataset.sizes["seed"] == 200
    assert _call("run", "toy", "--preset=smoke", "--num-seeds", "7") == 0
    assert list((tmp_path / "results").glob("toy-smoke-changed-seed0-*.nc"))


def test_a_folder_named_like_a_study_is_a_folder(tmp_path: Path) -> None:
    assert _call("run", "--out", "toy") == 0
    assert list((tmp_path / "toy").glob("toy-quick-seed0-*.nc"))


def test_no_x64_simulates_in_float32(tmp_path: Path) -> None:
    assert _call("run", "--no-x64") == 0
    (path,) = (tmp_path / "results").glob("toy-quick-changed-*.nc")
    assert results.load(path)["value"].dtype == np.float32


def test_an_unexpected_fault_is_no_verdict(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    def broken(*_: object) -> int:
        raise ZeroDivisionError("inside")

    monkeypatch.setattr(command_line, "_dispatch", broken)
    assert _call("verify") == 70
    assert "inside" in capsys.readouterr().err
