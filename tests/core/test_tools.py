"""A study's tool on the command line: asked for by its option, printed, saved and drawn."""

import sys
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import pytest
import xarray as xr
from matplotlib.figure import Figure

from boundlab import __main__ as command_line
from boundlab import registry, results
from boundlab.experiment import Study, Tool


@dataclass(frozen=True)
class Nothing:
    """A config."""

    dtype: str = "float64"
    """Precision."""


@dataclass(frozen=True)
class Doubling:
    """Options of the tool."""

    double: float | None = None
    """Print twice this number."""
    times: int = 2
    """With --double: how often."""


def _double(options: Doubling, console: Any) -> xr.Dataset:
    if options.double == 13:
        raise ValueError("double: got 13, expected luck")
    value = jnp.asarray(options.double) * options.times
    console.print(f"twice is {float(value)}")
    return xr.Dataset({"value": ("x", value[None])}, attrs={"note": "made up"})


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    presets = {name: Nothing() for name in ("smoke", "quick", "paper")}
    tool = Tool("double", Doubling(), _double, "doubling")
    study = Study("toy", "A toy", ("x",), presets, lambda *_: xr.Dataset(), (), tool=tool)
    figures = types.ModuleType("boundlab.figures.toy.doubling")

    def draw(dataset: xr.Dataset) -> dict:
        figure = Figure(figsize=(2, 2))
        figure.subplots().plot(dataset["value"].values)
        return {"value": (figure, "a caption")}

    figures.draw = draw
    monkeypatch.setitem(sys.modules, "boundlab.figures.toy", types.ModuleType("toy"))
    monkeypatch.setitem(sys.modules, "boundlab.figures.toy.doubling", figures)
    for module in (command_line, registry):
        monkeypatch.setattr(module, "STUDY_NAMES", ("toy",))
        monkeypatch.setattr(module, "study", lambda _: study)
        monkeypatch.setattr(module, "studies", lambda: (study,))
    monkeypatch.setattr(command_line, "_use_compilation_cache", lambda: None)
    monkeypatch.chdir(tmp_path)


def _call(*arguments: str) -> int:
    return command_line.run_command(arguments)


def test_a_tool_prints_saves_and_draws(capsys: pytest.CaptureFixture, tmp_path: Path) -> None:
    for _ in range(2):
        assert _call("run", "toy", "--double", "4.5", "--out", "r") == 0
        assert "twice is 9.0" in capsys.readouterr().out
    (path,) = (tmp_path / "r").glob("*.nc")
    saved = results.load(path)
    assert saved["value"].values == [9.0]
    assert saved.attrs["note"] == "made up"
    assert results.provenance(saved)["tool"] == "double"
    drawn = sorted(file.name for file in (tmp_path / "r" / "figures").iterdir())
    assert drawn == [f"{path.stem}-value.png", f"{path.stem}-value.svg"]
    assert _call("run", "toy", "--double", "4.5", "--times", "3", "--out", "r") == 0
    assert len(list((tmp_path / "r").glob("*.nc"))) == 2


def test_tools_are_asked_for_by_run_alone(capsys: pytest.CaptureFixture, tmp_path: Path) -> None:
    assert _call("run", "toy", "--help") == 0
    assert "Print twice this number" in capsys.readouterr().out
    assert _call("verify", "toy", "--double", "1") == 2
    assert _call("run", "toy", "--times", "3") == 2
    assert "times" in capsys.readouterr().err
    assert _call("run", "toy", "--double", "13") == 2
    assert "expected luck" in capsys.readouterr().err
    for name, value in (("preset", "smoke"), ("seed", "3"), ("dtype", "float32")):
        assert _call("run", "toy", "--double", "1", f"--{name}", value) == 2
        assert f"{name}: given with --double" in capsys.readouterr().err
    (tmp_path / "taken").touch()
    assert _call("run", "toy", "--double", "1", "--out", "taken/in") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("out: got taken/in")
    assert not list(tmp_path.rglob("*.nc"))
