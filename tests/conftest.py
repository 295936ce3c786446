"""Shared by all tests: x64 on, strict promotion, no silent rank promotion; one smoke run a study."""

import functools
import gc
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import filelock
import jax
import jaxlib.version
import matplotlib
import pytest
import xarray as xr

from boundlab import study

# Tests are compiled as the command line compiles (boundlab/__init__.py), which takes a quarter less time,
# each program in one piece. Set the variable, empty or not, and it decides instead: .ci/run does so for
# the tests that are marked smoke.
FAST = "XLA_FLAGS" not in os.environ
UNITS = [Path(__file__).parent / folder for folder in ("models", "theory")]


def pytest_configure(config: pytest.Config) -> None:
    """Choose XLA's flags, which it reads once, with the first device.

    A run of unit tests alone, as the first of `make test`, is compiled by the older of XLA's emitters for
    the CPU, in half the time, where jaxlib still has them: 0.10. Studies, sweeps and canaries aren't.
    """
    if not FAST:
        return
    flags = ["--xla_backend_optimization_level=1", "--xla_cpu_parallel_codegen_split_count=1"]
    asked = [
        Path(config.invocation_params.dir, arg.split("::")[0]).resolve() for arg in config.args
    ]
    units = all(any(path.is_relative_to(folder) for folder in UNITS) for path in asked)
    if units and jaxlib.version.__version_info__ < (0, 11):
        flags.append("--xla_cpu_use_fusion_emitters=false")
    os.environ["XLA_FLAGS"] = " ".join(flags)
    jax.devices()
    del os.environ["XLA_FLAGS"]  # the commands that tests start choose their own


matplotlib.use("Agg")
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")

# Tracing makes many small objects and little garbage; looking for it took 5 to 8 % of the time.
gc.set_threshold(50_000, 20, 20)


def pytest_collection_finish() -> None:
    """Modules and collected tests stay: no search for garbage needs to look at them again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def _compiled_fast(request: pytest.FixtureRequest) -> Iterator[None]:
    """Unit tests of functions spend their time in compilation: theirs are compiled unoptimised.

    Everything else (studies, sweeps, canaries) is compiled as above. Those of many rows are marked
    smoke: they are there to find what a compiler gets wrong.
    """
    folder = Path(request.path).relative_to(Path(__file__).parent).parts[0]
    jax.config.update("jax_disable_most_optimizations", FAST and folder in ("models", "theory"))
    yield
    jax.config.update("jax_disable_most_optimizations", False)


@pytest.fixture(scope="session")
def key() -> jax.Array:
    """One fixed threefry key; tests fold a number of their own into it."""
    return jax.random.key(20240817, impl="threefry2x32")


@pytest.fixture(scope="session")
def smoke_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., xr.Dataset]:
    """Function (study's name, prefix) of the study's smoke dataset at seed 0.

    It is computed once a test run, by the worker that asks first, and read by the others. `prefix`
    keeps the variables of one part, whose names begin with it. Tests of a part take it by

        @pytest.fixture(scope="module")
        def dataset(smoke_of):
            return smoke_of("fanout", "moments_")

    and change copies of it only. tests/claims judges every claim and its control on it.
    """
    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own

    @functools.cache
    def whole(name: str) -> xr.Dataset:
        path = Path(shared) / f"smoke-{name}.nc"
        with filelock.FileLock(f"{path}.lock"):
            if not path.exists():
                found = study(name)
                dataset = found.run(found.presets["smoke"], jax.random.key(0))
                dataset.to_netcdf(path.with_suffix(".part"), engine="h5netcdf")
                path.with_suffix(".part").rename(path)
        return xr.load_dataset(path, engine="h5netcdf", decode_times=False)

    def selected(name: str, prefix: str = "") -> xr.Dataset:
        dataset = whole(name)
        return dataset[[str(v) for v in dataset.data_vars if str(v).startswith(prefix)]]

    return selected
