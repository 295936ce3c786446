"""A study: presets, one experiment that returns a labelled dataset, and the claims about it."""

import dataclasses
import json
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import xarray as xr

from boundlab.checks import check_key, fail
from boundlab.claims import Claim
from boundlab.long_runs import advance
from boundlab.parts import study_precision
from boundlab.precision import one_blas_thread
from boundlab.sweeps import sweep

PRESETS = ("smoke", "quick", "paper")

# Called as repeat(name, fn, grid, keys, batch_size=...): a sweep whose checkpoint and progress bar
# are decided by whoever runs the study. What `Study.run` hands to the experiment is a `Runner`.
Repeat = Callable[..., xr.Dataset]
Experiment = Callable[[Any, jax.Array, Repeat], xr.Dataset]


@dataclass(frozen=True)
class Runner:
    """How the parts of a study repeat simulations and train, each under a name of its own."""

    checkpoint: str | Path | None = None
    """Folder of the logs from which an interrupted run resumes; none by default."""
    progress: bool = False
    """Whether bars are drawn."""

    def __call__(self, name: str, *args: Any, **kwargs: Any) -> xr.Dataset:
        """`boundlab.sweep(fn, grid, keys, ...)` under `name`."""
        path = self._path(f"{name}.sweep")
        return sweep(*args, checkpoint=path, progress=self.progress, **kwargs)

    def advance(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """`boundlab.long_runs.advance(fn, state, num_chunks, ...)` under `name`."""
        path = self._path(f"{name}.run")
        return advance(*args, checkpoint=path, progress=self.progress, **kwargs)

    def _path(self, file: str) -> Path | None:
        return None if self.checkpoint is None else Path(self.checkpoint) / file


@dataclass(frozen=True)
class Tool:
    """A use of a study's theory on a user's own data: `boundlab run STUDY --NAME VALUE`."""

    name: str
    """The field of `options` that asks for the tool; None by default."""
    options: Any
    """A frozen dataclass with the defaults; its fields become options of the command line."""
    apply: Callable[..., xr.Dataset]
    """apply(options, console) prints for people and returns what is saved and drawn."""
    figures: str
    """Module of the study's figures whose `draw` shows that dataset."""
    progress: bool = False
    """Whether `apply` takes a keyword `progress` besides: whether to show bars."""


@dataclass(frozen=True)
class Study:
    """One study of the suite; made once in its module of `boundlab.analysis`."""

    name: str
    """The one word by which every folder knows it."""
    title: str
    """One line for people."""
    sources: tuple[str, ...]
    """Keys of references.bib."""
    presets: Mapping[str, Hashable]
    """`smoke` (seconds), `quick` (about a minute on two cores) and `paper` (the full grid)."""
    experiment: Experiment
    """experiment(config, key, repeat) -> dataset; call `run` instead, which sets the precision."""
    claims: tuple[Claim, ...]
    """What must hold of the dataset."""
    costs: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Measured time of each preset, for `boundlab list`."""
    tool: Tool | None = None
    """What the study offers for a user's own data, if anything."""
    shown: str | None = None
    """Module of the study's figures that `boundlab run` draws at once; the others on request."""

    def __post_init__(self) -> None:
        if tuple(self.presets) != PRESETS:
            raise fail("presets", tuple(self.presets), f"{PRESETS}")
        ids = [claim.id for claim in self.claims]
        if len(set(ids)) < len(ids):
            raise fail("claims", ids, "distinct ids")

    def run(
        self,
        config: Hashable,
        key: Any,
        *,
        checkpoint: str | Path | None = None,
        progress: bool = False,
    ) -> xr.Dataset:
        """Run the experiment and return its dataset.

        `config` is one of `presets` or another of that class; `key` = jax.random.key(seed).
        `checkpoint`: folder for logs of sweeps and of training, from which an interrupted run resumes.
        Everything runs with x64 on, so that theory is float64; simulations state their own precision.
        """
        expected = type(self.presets["quick"])
        if not isinstance(config, expected):
            raise fail("config", f"a {type(config).__name__}", f"a {expected.__name__}")
        check_key("key", key)
        with one_blas_thread(), study_precision():
            dataset = self.experiment(config, key, Runner(checkpoint, progress))
        # JAX arrays in it would be computed with in the precision of whoever reads them.
        dataset = dataset.as_numpy()
        fields = dataclasses.asdict(config)  # type: ignore[call-overload]
        return dataset.assign_attrs(study=self.name, config=json.dumps(fields, sort_keys=True))
