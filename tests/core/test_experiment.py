"""`Study.run`: the key and the config that it is given."""

import dataclasses

import jax
import numpy as np
import pytest
import xarray as xr

from boundlab.experiment import Study


@dataclasses.dataclass(frozen=True)
class Config:
    """Nothing to choose but a number."""

    size: int = 1


def experiment(config, key, repeat):
    return xr.Dataset({"draw": float(jax.random.uniform(key))})


STUDY = Study(
    "toy", "A toy", (), dict.fromkeys(("smoke", "quick", "paper"), Config()), experiment, ()
)


def test_a_typed_key_runs(key):
    assert float(STUDY.run(Config(), key)["draw"]) == float(jax.random.uniform(key))


def test_results_are_numpy_arrays(key):
    def give(config, key, repeat):
        return xr.Dataset({"draw": ("x", jax.random.uniform(key, (2,)))})

    study = dataclasses.replace(STUDY, experiment=give)
    assert type(study.run(Config(), key)["draw"].data) is np.ndarray


@pytest.mark.parametrize("bad", [0, None, "a", 1.5, np.zeros(2, np.uint32)])
def test_anything_but_one_typed_key_is_refused(key, bad):
    for wrong in (bad, jax.random.split(key), jax.random.key_data(key)):
        with pytest.raises(ValueError, match=r"^key: got .*, expected one key of jax.random.key"):
            STUDY.run(Config(), wrong)


def test_another_config_is_refused(key):
    with pytest.raises(ValueError, match=r"^config: got a str, expected a Config"):
        STUDY.run("smoke", key)
