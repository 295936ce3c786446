"""The trained example as a part of the study and as a tool, at the least size."""

import dataclasses
import io
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from rich.console import Console

from boundlab.analysis.policy_optimization import language, language_tool
from boundlab.analysis.policy_optimization.config import PRESETS
from boundlab.analysis.policy_optimization.language_tool import TOOL, TrainingOptions
from boundlab.models import policy_training, policy_updates
from boundlab.models.character_model import CharacterModel, Responses
from boundlab.models.character_tasks import bracket_task

OPTIONS = TrainingOptions(
    train="brackets",
    losses=("fiberpo_pessimistic",),
    delays=(0, 1),
    control="on",
    updates=2,
    every=1,
    start_steps=2,
)


@pytest.fixture(scope="module", autouse=True)
def small() -> None:
    """A task of a few short prompts, whose tokens are drawn by one law; batches are of usual size.

    The law stands for the network, which takes long to compile and has tests of its own. Programs
    that run two or three times aren't worth optimising (the next module's are again, see conftest).
    """
    jax.config.update("jax_disable_most_optimizations", True)

    def law(params: Any) -> jax.Array:
        logits = params["params"]["embedding"].sum(axis=1)
        return jax.nn.log_softmax(logits.at[0].set(-1e9))

    def respond(model: Any, task: Any, params: Any, key: Any, asked: Any) -> Any:
        given, own = jnp.asarray(task.prompts)[asked], law(params)
        rows = (len(asked), task.answers.shape[1])
        tokens = jax.random.categorical(key, own, shape=rows).astype(np.int32)
        texts = jnp.concatenate([given, tokens], axis=1)
        return texts, Responses(tokens, own[tokens], tokens > 0)

    def scored(model: Any, params: Any, texts: Any, prompt: int) -> Any:
        own = law(params)
        entropy = -jnp.sum(jnp.exp(own) * own)
        found = own[texts[:, prompt:]]
        return found, jnp.broadcast_to(entropy, found.shape)

    task = bracket_task(jax.random.key(0), 2, 1, 0.5)
    model = CharacterModel(task.vocabulary, 5, width=8, layers=1)
    with pytest.MonkeyPatch.context() as patched:
        for module in (language, language_tool):
            patched.setattr(module, "setting", lambda _: language.Setting(task, model, 2, 1e-3))
        for module in (policy_training, policy_updates):
            patched.setattr(module, "respond", respond)
            patched.setattr(module, "token_log_probs", scored)
        yield


def printed(options: TrainingOptions) -> tuple[str, xr.Dataset]:
    stream = io.StringIO()
    dataset = language_tool.apply(options, Console(file=stream, width=100))
    return stream.getvalue(), dataset


def test_smoke_and_quick_train_nothing_and_paper_does(key: jax.Array) -> None:
    for preset in ("smoke", "quick"):
        assert PRESETS[preset].language_updates == 0
        assert not language.run(PRESETS[preset], key, None).variables
    assert PRESETS["paper"].language_updates > 0
    assert PRESETS["paper"].language_delays == (0, 4, 16)
    assert len(PRESETS["paper"].language_losses) >= 4


def test_the_tool_trains_and_goes_on(tmp_path: Path) -> None:
    options = dataclasses.replace(OPTIONS, checkpoint=tmp_path / "c")
    text, dataset = printed(options)
    assert f"checkpoints: {tmp_path / 'c'}" in text.replace("\n", "")
    rows = [line.split() for line in text.splitlines() if "pessimistic" in line]
    assert [row[:3] for row in rows] == [["fiberpo_pessimistic", d, "gac"] for d in ("0", "1")]
    reward = dataset["language_held_out_reward"].isel(language_update=-1, language_delay=0)
    assert rows[0][3] == f"{float(reward.mean()):.2f}"
    assert dict(dataset.sizes) == {
        "language_loss": 1,
        "language_delay": 2,
        "language_control": 1,
        "language_seed": 2,
        "language_update": 2,
    }
    assert dataset.attrs["task"] == "brackets"
    for variable in dataset.data_vars.values():
        assert np.isfinite(variable).all()
        assert {"long_name", "units"} <= set(variable.attrs)
    files = sorted(file.name for file in (tmp_path / "c").iterdir())
    assert files == ["language-fiberpo_pessimistic.run", "language-start.run"]
    _, longer = printed(dataclasses.replace(options, updates=3))
    assert longer.sizes["language_update"] == 3
    xr.testing.assert_equal(longer.isel(language_update=slice(2)), dataset)


def test_folders_are_those_of_the_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """By default: more updates go on in the same one; anything else has its own."""
    first = language_tool._folder(OPTIONS)
    assert first.parts[:2] == ("results", "training")
    assert language_tool._folder(dataclasses.replace(OPTIONS, updates=50)) == first
    for change in ({"key": 1}, {"delays": (0,)}, {"step_size": 0.1}, {"every": 2}, {"runs": 3}):
        assert language_tool._folder(dataclasses.replace(OPTIONS, **change)) != first


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("losses", ()),
        ("losses", ("grpo", "grpo")),
        ("losses", ("fibrepo",)),
        ("delays", (-1,)),
        ("delays", ()),
        ("runs", 0),
        ("updates", 3),
        ("every", 0),
        ("step_size", 0.0),
        ("start_steps", 0),
        ("key", -1),
    ],
)
def test_bad_options_are_named(field: str, value: object, tmp_path: Path) -> None:
    options = dataclasses.replace(OPTIONS, every=2, checkpoint=tmp_path)
    with pytest.raises(ValueError, match=f"^{field}"):
        printed(dataclasses.replace(options, **{field: value}))


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match=r"^checkpoint"):
        printed(dataclasses.replace(OPTIONS, checkpoint=tmp_path / "file"))
    assert TOOL.name == "train"
    assert TOOL.options.train is None


def test_progress_and_checkpoints_that_dont_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bars are the caller's choice, and a checkpoint of other code is named with a way out."""
    asked = []

    def refused(key: Any, chosen: Any, grid: Any, advance: Any) -> None:
        asked.append(advance.__self__.progress)
        raise ValueError("checkpoint: got one of another fn")

    monkeypatch.setattr(language_tool, "train", refused)
    options = dataclasses.replace(OPTIONS, checkpoint=tmp_path)
    for progress in (True, False):
        with pytest.raises(ValueError, match=r"^checkpoint: .*another --checkpoint$"):
            TOOL.apply(options, Console(file=io.StringIO()), progress=progress)
    assert TOOL.progress
    assert asked == [True, False]
