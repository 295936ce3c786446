"""What people read: verdict tables, figures and the report, made from saved results."""

import base64
import importlib
import io
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import xarray as xr
from rich import box
from rich.console import Console
from rich.table import Table

from boundlab import results
from boundlab.experiment import Study
from boundlab.verdicts import Status, Verdict, verify

Job = tuple[Study, Path]


def publish(
    command: str, jobs: Sequence[Job], folder: Path, rate: float, *, say: Callable[[str], None]
) -> int:
    """Carry out `run`, `verify`, `figures` or `report` on saved results and return the exit code."""
    if command == "run":
        for study, path in jobs:
            if study.shown is not None:
                module = f"boundlab.figures.{study.name}.{study.shown}"
                drawn = drawn_by(module, results.load(path))
                for file in save_figures(drawn, folder / "figures", study.name):
                    say(f"wrote {file}")
        return 0
    loaded = [(study, path, results.load(path)) for study, path in jobs]
    if command == "figures":
        for study, _, dataset in loaded:
            for file in draw(study, dataset, folder / "figures"):
                say(f"wrote {file}")
        return 0
    judged = [
        (study, path, dataset, verify(study, dataset, false_alarm_rate=rate))
        for study, path, dataset in loaded
    ]
    for study, _, _, verdicts in judged:
        print_verdicts(study, verdicts, Console(width=None if sys.stdout.isatty() else 100))
    if command == "report":
        file = folder / "report.html"
        write_report(judged, file, rate)
        say(f"wrote {file}")
        for name, table in (("verdicts", markdown), ("verdicts-in-short", markdown_in_short)):
            page = folder / f"{name}.md"
            page.write_text("\n".join(table(study, v) for study, _, _, v in judged), "utf-8")
            say(f"wrote {page}")
    return exit_code([verdict for *_, verdicts in judged for verdict in verdicts])


def exit_code(verdicts: Sequence[Verdict]) -> int:
    """0 all hold and every control is rejected, 1 violated or a control passed, 4 inconclusive."""
    if any(v.status == Status.VIOLATED or not v.control_rejected for v in verdicts):
        return 1
    return 4 if any(v.status == Status.INCONCLUSIVE for v in verdicts) else 0


def draw(study: Study, dataset: xr.Dataset, folder: Path) -> list[Path]:
    """Draw the study's figures into `folder` as PNG and SVG; return the files."""
    return save_figures(_figures(study, dataset), folder, study.name)


def save_figures(figures: Mapping[str, tuple[Any, str]], folder: Path, prefix: str) -> list[Path]:
    """Save drawn figures as PNG and SVG, their names after `prefix`, and close them."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for name, (figure, _) in figures.items():
        for suffix in ("png", "svg"):
            file = folder / f"{prefix}-{name}.{suffix}"
            figure.savefig(file, dpi=150)
            files.append(file)
        _close(figure)
    return files


def _figures(study: Study, dataset: xr.Dataset) -> dict[str, tuple[Any, str]]:
    return drawn_by(f"boundlab.figures.{study.name}", dataset)


def drawn_by(module: str, dataset: xr.Dataset) -> dict[str, tuple[Any, str]]:
    """Figures and captions by name, as `draw` of a module of figures makes them."""
    import matplotlib

    matplotlib.use("Agg", force=False)
    return importlib.import_module(module).draw(dataset)


def _close(figure: Any) -> None:
    import matplotlib.pyplot as plt

    plt.close(figure)


def print_verdicts(study: Study, verdicts: Sequence[Verdict], console: Console) -> None:
    """Print the verdict table of one study."""
    table = Table(title=study.title, title_justify="left", box=box.SIMPLE, pad_edge=False)
    for column, justify in (
        ("claim", "left"),
        ("verdict", "left"),
        ("control", "left"),
        ("measured", "right"),
        ("reference", "right"),
        ("seeds", "right"),
        ("p", "right"),
    ):
        table.add_column(column, justify=justify)  # type: ignore[arg-type]
    colours = {Status.HOLDS: "green", Status.VIOLATED: "red", Status.INCONCLUSIVE: "yellow"}
    for verdict in verdicts:
        table.add_row(
            verdict.claim,
            f"[{colours[verdict.status]}]{verdict.status}[/]",
            "rejected" if verdict.control_rejected else "[red]passed[/]",
            number(verdict.measured),
            number(verdict.reference),
            str(verdict.num_seeds or "–"),
            number(verdict.p_value),
        )
    console.print(table)
    counts = [sum(v.status == status for v in verdicts) for status in Status]
    rejected = sum(v.control_rejected for v in verdicts)
    console.print(
        f"{len(verdicts)} claims: {counts[0]} hold, {counts[1]} violated, {counts[2]} inconclusive; "
        f"{rejected} of {len(verdicts)} controls rejected",
        highlight=False,
    )


def markdown(study: Study, verdicts: Sequence[Verdict]) -> str:
    """The verdict table of one study in Markdown."""
    lines = [
        f"{study.title}\n",
        "| claim | kind | verdict | control | measured | reference | seeds |",
        "| --- | --- | --- | --- | ---: | ---: | ---: |",
    ]
    for claim, verdict in zip(study.claims, verdicts, strict=True):
        control = "rejected" if verdict.control_rejected else "**passed**"
        lines.append(
            f"| `{claim.id}` | {claim.kind} | {verdict.status} | {control} "
            f"| {number(verdict.measured)} | {number(verdict.reference)} "
            f"| {verdict.num_seeds or '–'} |"
        )
    return "\n".join(lines) + "\n"


def markdown_in_short(study: Study, verdicts: Sequence[Verdict]) -> str:
    """The verdicts of one study in Markdown, a row a kind of claim: measured / reference of each."""
    lines = [
        f"{study.title}\n",
        "| kind | claim, measured / reference | verdicts | controls |",
        "| --- | --- | --- | --- |",
    ]
    pairs = list(zip(study.claims, verdicts, strict=True))
    for kind in dict.fromkeys(claim.kind for claim in study.claims):
        chosen = [(claim, verdict) for claim, verdict in pairs if claim.kind == kind]
        numbers = (
            f"`{claim.id}` {number(verdict.measured)} / {number(verdict.reference)}"
            for claim, verdict in chosen
        )
        counts = (
            (sum(verdict.status == status for _, verdict in chosen), status) for status in Status
        )
        rejected = sum(verdict.control_rejected for _, verdict in chosen)
        lines.append(
            f"| {kind} | {', '.join(numbers)} "
            f"| {', '.join(f'{count} {status}' for count, status in counts if count)} "
            f"| {rejected} of {len(chosen)} rejected |"
        )
    return "\n".join(lines) + "\n"


def number(value: float) -> str:
    """A number for a table: four digits, a dash for NaN."""
    return "–" if math.isnan(value) else f"{value:.4g}"


def write_report(
    judged: Sequence[tuple[Study, Path, xr.Dataset, tuple[Verdict, ...]]], file: Path, rate: float
) -> None:
    """Write one self-contained page: verdicts, then figures with captions, then provenance."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("boundlab", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["number"] = number
    sections = []
    for study, path, dataset, verdicts in judged:
        sections.append(
            {
                "study": study,
                "rows": [
                    {"claim": claim, "verdict": verdict, "statement": mathtext(claim.statement)}
                    for claim, verdict in zip(study.claims, verdicts, strict=True)
                ],
                "figures": [
                    {"name": name, "caption": caption, "image": _inline(figure)}
                    for name, (figure, caption) in _figures(study, dataset).items()
                ],
                "provenance": results.provenance(dataset),
                "file": path.name,
            }
        )
    page = environment.get_template("report.html").render(sections=sections, rate=rate)
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(f".{file.name}.partial")
    try:
        partial.write_text(page, encoding="utf-8")
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)


def _inline(figure: Any) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150)
    _close(figure)
    return base64.b64encode(buffer.getvalue()).decode()


def mathtext(statement: str) -> str:
    """A one-line statement in mathtext as an inline SVG, drawn without LaTeX."""
    from matplotlib.figure import Figure
    from matplotlib.font_manager import FontProperties
    from matplotlib.mathtext import math_to_image

    buffer = io.BytesIO()
    if "$" not in statement:
        figure = Figure(figsize=(0.01, 0.01))
        figure.text(0, 0, statement, fontsize=10)
        figure.savefig(buffer, format="svg", bbox_inches="tight", pad_inches=0.02)
    else:
        math_to_image(statement, buffer, prop=FontProperties(size=10), format="svg")
    text = buffer.getvalue().decode()
    return "data:image/svg+xml;base64," + base64.b64encode(text.encode()).decode()
