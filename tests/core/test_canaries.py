"""Kernels that some jax versions compute wrongly, in both precisions, and the import guard."""

import subprocess
import sys

import jax
import pytest

from boundlab import canaries, versions


@pytest.mark.smoke
@pytest.mark.parametrize("double", [True, False])
def test_canaries_are_alive(double: bool) -> None:
    with jax.enable_x64(double):
        for canary in canaries.run_canaries():
            if canary.unit == "":  # the last compares times, which a test doesn't assert
                assert canary.alive, canary


def test_a_dead_canary_is_seen() -> None:
    assert not canaries.Canary("x", float("nan"), 1.0, "").alive
    assert not canaries.Canary("x", 2.0, 1.0, "").alive


@pytest.mark.parametrize("bad", ["0.10.2", "0.11.0", "0.11.1", "0.10.2+cuda13"])
def test_known_bad_versions_are_refused(bad: str) -> None:
    with pytest.raises(ImportError, match=rf"jaxlib {bad[:6]}.*Install 0\.10\.1"):
        versions.refuse_known_bad({"jax": "0.10.1", "jaxlib": bad})


def test_good_versions_pass() -> None:
    versions.refuse_known_bad({"jax": "0.10.1", "jaxlib": "0.11.2"})


@pytest.mark.parametrize("package", ["jax", "jaxlib"])
def test_the_guard_stands_at_import(package: str) -> None:
    code = f"import {package}; {package}.__version__ = '0.10.2'; import boundlab"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert "ImportError" in done.stderr
    assert "0.10.2" in done.stderr


def test_importing_changes_no_configuration() -> None:
    code = (
        "import jax; before = dict(jax.config.values); import boundlab, boundlab.models.linear_gnn, "
        "boundlab.theory.excess_risk.sgd; assert dict(jax.config.values) == before"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
