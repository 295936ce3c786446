"""Results on disk: whole or not at all, with provenance, never overwritten."""

import json
from dataclasses import dataclass
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from boundlab import results
from boundlab.experiment import Study


@dataclass(frozen=True)
class ToyConfig:
    """A config."""

    num_seeds: int = 8
    """Seeds."""


def _experiment(config: ToyConfig, key: jax.Array, repeat: object) -> xr.Dataset:
    keys = jax.random.split(key, config.num_seeds)
    runs = repeat("toy", lambda p, k: p["x"] + jax.random.normal(k), {"x": [1.0, 2.0]}, keys)
    return xr.Dataset({"toy_value": runs["value"]})


PRESETS = {"smoke": ToyConfig(4), "quick": ToyConfig(), "paper": ToyConfig(16)}
STUDY = Study("toy", "Toy", (), PRESETS, _experiment, ())


def _run(folder: Path, **changes: object) -> Path:
    settings = {
        "preset": "quick",
        "seed": 0,
        "folder": folder,
        "progress": False,
        "report": lambda _: None,
    }
    return results.run_and_save(STUDY, PRESETS["quick"], **{**settings, **changes})


@pytest.mark.smoke
def test_a_result_carries_its_provenance(tmp_path: Path) -> None:
    path = _run(tmp_path, seed=3)
    dataset = results.load(path)
    record = results.provenance(dataset)
    assert record["seed"] == 3
    assert record["config"] == {"num_seeds": 8}
    assert record["versions"]["jax"] == jax.__version__
    assert record["backend"] == "cpu"
    assert record["x64"] is True
    assert record["wall_seconds"] >= record["compile_seconds"] > 0
    assert dataset.attrs["study"] == "toy"
    assert dataset.toy_value.dims == ("x", "seed")
    assert not (tmp_path / "checkpoints").exists(), "the logs are in the result now"


def test_two_runs_give_equal_data(tmp_path: Path) -> None:
    first, second = _run(tmp_path / "a"), _run(tmp_path / "b")
    xr.testing.assert_identical(results.load(first).drop_attrs(), results.load(second).drop_attrs())
    assert first.name == second.name


def test_a_second_call_reuses_the_result(tmp_path: Path) -> None:
    path = _run(tmp_path)
    before = path.read_bytes()
    said: list[str] = []
    assert _run(tmp_path, report=said.append) == path
    assert "already" in said[0]
    assert path.read_bytes() == before


def test_other_settings_are_another_file(tmp_path: Path) -> None:
    paths = {_run(tmp_path), _run(tmp_path, seed=1)}
    assert len(paths) == 2


def _flip_a_value(content: bytes, path: Path) -> bytes:
    value = results.load(path).toy_value.values[0, :1].tobytes()
    assert content.count(value) == 1
    return content.replace(value, bytes([value[0] ^ 1]) + value[1:])


DAMAGES = {
    "empty": lambda content, path: b"",
    "foreign": lambda content, path: b"not netCDF",
    "half": lambda content, path: content[: len(content) // 2],
    "one bit": _flip_a_value,
    "provenance": lambda content, path: content.replace(b'"seed": 0', b'"seed": 1'),
    "longer": lambda content, path: content + b"x",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_result_is_refused_and_kept(tmp_path: Path, damage: str) -> None:
    path = _run(tmp_path)
    damaged = DAMAGES[damage](path.read_bytes(), path)
    path.write_bytes(damaged)
    with pytest.raises(ValueError, match=f"result file .*{path.name}.*left as it is"):
        _run(tmp_path)
    assert path.read_bytes() == damaged


def test_a_foreign_netcdf_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "foreign.nc"
    xr.Dataset({"x": 1.0}).to_netcdf(path, engine="h5netcdf")
    with pytest.raises(ValueError, match="not a boundlab result"):
        results.load(path)


def test_save_replaces_nothing_and_leaves_no_partial_file(tmp_path: Path) -> None:
    path = tmp_path / "r.nc"
    dataset = xr.Dataset({"x": 1.0}, attrs={"provenance": json.dumps({})})
    results.save(dataset, path)
    before = path.read_bytes()
    with pytest.raises(FileExistsError, match="exists already"):
        results.save(dataset, path)
    assert path.read_bytes() == before
    with pytest.raises(ValueError, match=r"dataset: can't be written"):
        results.save(xr.Dataset(attrs={"bad": {"a": 1}}), str(tmp_path / "s.nc"))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["r.nc"]


def test_an_interrupted_run_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(config: ToyConfig, key: jax.Array, repeat: object) -> xr.Dataset:
        _experiment(config, key, repeat)
        raise KeyboardInterrupt

    broken = Study("toy", "Toy", (), PRESETS, interrupted, ())
    settings = dict(preset="quick", seed=0, folder=tmp_path, progress=False)
    with pytest.raises(KeyboardInterrupt):
        results.run_and_save(broken, PRESETS["quick"], report=lambda _: None, **settings)
    logs = list(tmp_path.glob("checkpoints/*/toy.sweep"))
    assert len(logs) == 1
    assert not list(tmp_path.glob("*.nc"))
    expected = results.load(_run(tmp_path / "uninterrupted"))
    resumed = results.load(_run(tmp_path))
    np.testing.assert_array_equal(resumed.toy_value, expected.toy_value)
    assert not logs[0].exists()


@pytest.mark.parametrize(
    ("config", "key", "name"),
    [
        (3, lambda: jax.random.key(0), "config"),
        (ToyConfig(), lambda: jax.random.PRNGKey(0), "key"),
        (ToyConfig(), lambda: jax.random.split(jax.random.key(0)), "key"),
    ],
)
def test_bad_arguments_of_run(config: object, key: object, name: str) -> None:
    with pytest.raises(ValueError, match=name):
        STUDY.run(config, key())


def test_run_opens_float64_for_the_caller() -> None:
    with jax.enable_x64(False):
        assert STUDY.run(ToyConfig(), jax.random.key(0)).toy_value.dtype == np.float64
        assert jnp.ones(()).dtype == jnp.float32, "nothing global stays changed"


def test_time_like_units_survive(tmp_path: Path) -> None:
    dataset = xr.Dataset(
        {"t": ("x", [1.0, 2.0], {"units": "seconds since 2000-01-01"}), "s": ("x", ["a", "ß"])}
    )
    results.save(dataset, tmp_path / "t.nc")
    xr.testing.assert_identical(results.load(tmp_path / "t.nc"), dataset)


def test_any_netcdf_reader_opens_a_result(tmp_path: Path) -> None:
    import h5py

    with h5py.File(_run(tmp_path)) as file:
        assert file["toy_value"].shape == (2, 8)
