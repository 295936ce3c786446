"""The progress bar of `sweep`: on terminals and in notebooks, and nowhere else."""

import importlib.machinery
import io
import sys
import types
from unittest.mock import MagicMock

import jax
import pytest

from boundlab.sweeps import sweep


@pytest.fixture(scope="module")
def keys(key):
    return jax.random.split(jax.random.fold_in(key, 11), 7)


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("progress", [True, False])
def test_one_bar_on_a_terminal(keys, monkeypatch, progress):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    sweep(lambda params, key: jax.random.normal(key), {}, keys, batch_size=3, progress=progress)
    text = screen.getvalue()
    assert ("7/7" in text) == progress
    assert text.count("\n") == int(progress)


def test_bar_begins_at_what_is_done(keys, monkeypatch, tmp_path):
    def draw(params, key):
        return jax.random.normal(key)

    sweep(draw, {}, keys[:3], checkpoint=tmp_path / "log")
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    sweep(draw, {}, keys, checkpoint=tmp_path / "log")
    text = screen.getvalue()
    assert "3/7" in text
    assert "0/7" not in text


@pytest.mark.parametrize("widgets", [True, False])
def test_one_bar_in_a_notebook(keys, monkeypatch, capfd, widgets):
    display = pytest.importorskip("IPython.display")
    shown = []
    monkeypatch.setattr(display, "display", lambda one: shown.append(one))
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    module = types.ModuleType("ipywidgets")  # stands for the library, which needs a notebook
    module.__spec__ = importlib.machinery.ModuleSpec("ipywidgets", None) if widgets else None
    module.Output = MagicMock
    monkeypatch.setitem(sys.modules, "ipywidgets", module if widgets else None)
    sweep(lambda params, key: jax.random.normal(key), {}, keys, batch_size=3)
    assert any("7/7" in getattr(one, "text", "") for one in shown) == widgets
    assert len([one for one in shown if isinstance(one, MagicMock)]) == int(widgets)
    assert capfd.readouterr() == ("", "")


def test_silent_where_stderr_is_no_terminal(keys, capfd):
    sweep(lambda params, key: jax.random.normal(key), {}, keys, batch_size=3)
    out, err = capfd.readouterr()
    assert out == err == ""
