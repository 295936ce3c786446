"""The command line: boundlab list | run | verify | figures | report | doctor.

Exit codes: 0 all hold; 1 a claim is violated or a control passed (or a canary is dead); 2 bad usage;
3 interrupted, run again to resume; 4 none of these, but a claim is inconclusive; 70 a fault of boundlab
or of a library, with its traceback.
"""

import dataclasses
import itertools
import os
import secrets
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import jax
import tyro
from rich.console import Console

from boundlab.registry import STUDY_NAMES, studies, study

Preset = Literal["smoke", "quick", "paper"]
INTERNAL_ERROR = 70  # EX_SOFTWARE of sysexits
COMMANDS = ("list", "run", "verify", "figures", "report", "doctor")


@dataclass(frozen=True)
class Options:
    """Options that every command shares."""

    studies: Annotated[tuple[str, ...], tyro.conf.Positional] = ()
    """Names of studies (all of them when none is given)."""
    preset: Preset = "quick"
    """smoke: rejects every control; quick: decides every claim; paper: the full grid."""
    seed: int = 0
    """Seed of the run; everything random follows from it."""
    fresh: bool = False
    """Draw a new seed instead of the fixed one."""
    x64: bool = True
    """Simulate in float64; --no-x64 sets the dtype of a study's config to float32."""
    out: Path = Path("results")
    """Folder for results, figures and the report."""
    progress: bool = True
    """Show progress on a terminal."""
    false_alarm_rate: float = 1e-3
    """Probability that any true claim of a study is called violated."""

    def __post_init__(self) -> None:
        for name in self.studies:
            study(name)
        if not 0 <= self.seed < 2**32:  # larger ones would repeat these without x64
            raise ValueError(f"seed: got {self.seed}, expected an integer in [0, 2^32)")
        if not 0 < self.false_alarm_rate < 1:
            raise ValueError(
                f"false_alarm_rate: got {self.false_alarm_rate}, expected a number in (0, 1)"
            )


def main() -> None:
    """Run the command line and exit with its code."""
    sys.exit(run_command(sys.argv[1:]))


def run_command(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    console = Console(stderr=True)
    if not arguments or arguments[0] in ("-h", "--help"):
        Console().print(_usage(), highlight=False, markup=False)
        return 0 if arguments else 2
    command, rest = arguments[0], list(arguments[1:])
    if command not in COMMANDS:
        console.print(
            f"command: got {command!r}, expected one of {', '.join(COMMANDS)}",
            markup=False,
            soft_wrap=True,
        )
        return 2
    signal.signal(signal.SIGTERM, _interrupt)  # a polite stop leaves resumable logs, like Ctrl-C
    try:
        return _dispatch(command, rest, console)
    except KeyboardInterrupt:
        console.print(
            "interrupted; the same command resumes where it stopped "
            "(after --fresh, with --seed and the number above instead)",
            soft_wrap=True,
        )
        return 3
    except (ValueError, OSError) as error:
        # Both name the argument or the file, what was found and what is accepted.
        console.print(str(error), style="red", markup=False, highlight=False, soft_wrap=True)
        return 2
    except SystemExit as error:  # tyro's own usage errors
        return error.code if isinstance(error.code, int) else 2
    except Exception:  # Python's own exit code 1 would say that a claim is violated
        console.print_exception()
        return INTERNAL_ERROR


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _usage() -> str:
    return (
        "usage: boundlab {" + ",".join(COMMANDS) + "} [STUDY ...] [options]\n\n"
        "  list     studies, their claims and what each preset costs\n"
        "  run      run studies and save their datasets\n"
        "  verify   run what is missing and print the verdict on every claim\n"
        "  figures  run what is missing and draw every figure\n"
        "  report   all of this in one self-contained report.html\n"
        "  doctor   versions, devices, precision, and kernels that some jax versions break\n\n"
        "studies: " + ", ".join(STUDY_NAMES) + "\n"
        "boundlab run STUDY --help lists the options, those of the study included."
    )


def _dispatch(command: str, arguments: list[str], console: Console) -> int:
    if command == "list":
        tyro.cli(_List, args=arguments, prog="boundlab list")
        return _list(Console())
    if command == "doctor":
        tyro.cli(_Doctor, args=arguments, prog="boundlab doctor")
        return _examine()
    options, overrides, asked = _parse(command, arguments)
    _check_folder(options.out)
    if options.fresh:
        options = dataclasses.replace(options, seed=secrets.randbits(31))
        console.print(f"seed {options.seed}", highlight=False)
    _use_compilation_cache()
    if asked is not None:
        from boundlab.tools import use

        plain = Console(width=None if sys.stdout.isatty() else 100)
        chosen, say = study(options.studies[0]), _teller(console)
        use(chosen, asked, options.out, plain, say=say, progress=options.progress)
        return 0
    jobs = _results(options, overrides, console)
    from boundlab import publish

    return publish.publish(
        command, jobs, options.out, options.false_alarm_rate, say=_teller(console)
    )


@dataclass(frozen=True)
class _List:
    """List the studies, their claims and what each preset costs."""


@dataclass(frozen=True)
class _Doctor:
    """Print the state of this installation and run the canaries."""


def _list(console: Console) -> int:
    for item in studies():
        costs = ", ".join(f"{preset} {cost}" for preset, cost in item.costs.items())
        console.print(f"[bold]{item.name}[/bold]  {item.title}  ({costs})", highlight=False)
        for claim in item.claims:
            console.print(
                f"  {claim.id:32} {claim.kind:9} {claim.source.reference}, {claim.source.place}",
                highlight=False,
                markup=False,
                soft_wrap=True,
            )
    return 0


def _examine() -> int:
    from boundlab.doctor import examine

    return 0 if examine(Console(), str(_cache_folder())) else 1


def _parse(command: str, arguments: list[str]) -> tuple[Options, Any, Any]:
    """Options, and the config of the study when exactly one is named (its fields are options too).

    The third is the options of the study's tool when `run` asks for it.
    """
    named = _positional(arguments)
    prog = f"boundlab {command}"
    if len(named) != 1:
        return tyro.cli(Options, args=arguments, prog=prog), None, None
    chosen = study(named[0])
    sources = [("config", chosen.presets[_preset(arguments)])]
    if command == "run" and chosen.tool is not None:
        sources.append(("tool", chosen.tool.options))
    every: Any = dataclasses.make_dataclass(
        "Command",
        [("options", Annotated[Options, tyro.conf.OmitArgPrefixes])]
        + [
            (name, Annotated[_class(default), tyro.conf.OmitArgPrefixes], field(default=default))
            for name, default in sources
        ],
    )
    parsed: Any = tyro.cli(every, args=arguments, prog=prog, description=_usage().split("\n")[0])
    asked = _asked(chosen.tool, getattr(parsed, "tool", None))
    if asked is not None:
        _refuse_options_of_runs(chosen, parsed)
    return parsed.options, parsed.config, asked


def _class(default: Any) -> Any:
    return type(default)


def _asked(tool: Any, options: Any) -> Any:
    """The tool's options if it is asked for; its other options make no sense without."""
    if options is None or getattr(options, tool.name) is not None:
        return options
    for item in dataclasses.fields(options):
        if getattr(options, item.name) != getattr(tool.options, item.name):
            raise ValueError(f"{item.name}: given without --{tool.name}, expected both")
    return None


def _check_folder(out: Path) -> None:
    """Refuse a place for results that is a file, before anything is computed."""
    taken = next((path for path in (out, *out.parents) if path.is_file()), None)
    if taken is not None:
        raise ValueError(f"out: got {out}, but {taken} is a file, expected a folder")


def _refuse_options_of_runs(chosen: Any, parsed: Any) -> None:
    """A tool runs no study: it uses the folder, and no other option of a run."""
    config = chosen.presets[parsed.options.preset]
    for given, default in ((parsed.options, Options()), (parsed.config, config)):
        for item in dataclasses.fields(given):
            used = default is not config and item.name in ("studies", "out", "progress")
            if not used and getattr(given, item.name) != getattr(default, item.name):
                raise ValueError(
                    f"{item.name}: given with --{chosen.tool.name}, which runs no study, "
                    "expected one of the two"
                )


def _positional(arguments: list[str]) -> list[str]:
    """Names of studies among the words that are no option's value."""
    valued = ("--preset", "--seed", "--out", "--false-alarm-rate")
    before = ["", *arguments]
    return [
        word
        for previous, word in zip(before, arguments, strict=False)
        if word in STUDY_NAMES and previous not in valued
    ]


def _preset(arguments: list[str]) -> str:
    """The preset among the arguments (the last one): it decides the defaults of other options."""
    words = [word.removeprefix("--preset=") for word in arguments if word.startswith("--preset=")]
    pairs = itertools.pairwise(arguments)
    words += [following for word, following in pairs if word == "--preset"]
    known = [word for word in words if word in ("smoke", "quick", "paper")]
    return known[-1] if known else "quick"


def _results(options: Options, config: Any, console: Console) -> list[tuple[Any, Path]]:
    from boundlab.results import run_and_save

    names = options.studies or STUDY_NAMES
    jobs = []
    for item in (study(name) for name in dict.fromkeys(names)):
        preset = item.presets[options.preset]
        chosen: Any = preset if config is None else config
        if not options.x64:
            if not hasattr(chosen, "dtype"):
                raise ValueError(f"x64: {item.name} has no dtype to set, expected --x64")
            chosen = dataclasses.replace(chosen, dtype="float32")
        path = run_and_save(
            item,
            chosen,
            preset=options.preset if chosen == preset else f"{options.preset}-changed",
            seed=options.seed,
            folder=options.out,
            progress=options.progress,
            report=_teller(console),
        )
        jobs.append((item, path))
    return jobs


def _teller(console: Console) -> Callable[[str], None]:
    return lambda text: console.print(text, highlight=False, markup=False, soft_wrap=True)


def _cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "boundlab" / "xla"


def _use_compilation_cache() -> None:
    """Keep compiled programs between commands; before the first array."""
    if os.environ.get("JAX_COMPILATION_CACHE_DIR") is None:
        jax.config.update("jax_compilation_cache_dir", str(_cache_folder()))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)


if __name__ == "__main__":
    main()
