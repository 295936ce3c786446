"""The house rules: import directions, the package list, sizes, and refusal to be imported bare."""

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = {
    "core": "",
    "theory": "theory",
    "models": "models",
    "analysis": "analysis",
    "figures": "figures",
}
# What a folder may import of the package, besides itself.
CORE_FOR_ALL = {"checks", "precision", "typing", "__version__"}
FORBIDDEN = {
    "theory": {"models", "analysis", "figures"},
    "models": {"theory", "analysis", "figures"},
    "figures": {"theory", "models", "analysis"},
    "core": {"theory", "models", "figures"},
}


def _sources(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def _imports(file: Path) -> set[str]:
    """First name after `boundlab.` of everything the file imports."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {a.name.split(".")[1] for a in node.names if a.name.startswith("boundlab.")}
        elif isinstance(node, ast.ImportFrom) and node.module:
            if node.module == "boundlab":
                found |= {alias.name for alias in node.names}
            elif node.module.startswith("boundlab."):
                found.add(node.module.split(".")[1])
    return found


@pytest.mark.parametrize("folder", sorted(FORBIDDEN))
def test_imports_run_one_way(folder: str) -> None:
    for file in _sources(folder):
        wrong = _imports(file) & FORBIDDEN[folder]
        assert not wrong, f"{file.relative_to(ROOT)} imports {wrong}"


@pytest.mark.parametrize("folder", ["theory", "models"])
def test_theory_and_models_use_helpers_of_core_only(folder: str) -> None:
    for file in _sources(folder):
        assert _imports(file) <= CORE_FOR_ALL | {folder}, file


def test_package_list_is_the_folders_on_disk() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    on_disk = {}
    for folder in FOLDERS:
        for init in (ROOT / folder).rglob("__init__.py"):
            path = init.parent.relative_to(ROOT)
            parts = path.parts[1:] if folder == "core" else path.parts
            on_disk[".".join(("boundlab", *parts))] = str(path)
    assert settings["package-dir"] == on_disk
    assert sorted(settings["packages"]) == sorted(on_disk)
    assert not (ROOT / "boundlab").exists(), "would shadow the installed package"


@pytest.mark.parametrize("folder", sorted(FOLDERS))
def test_a_bare_import_fails_at_once(folder: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"import {folder}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert "ImportError" in done.stderr


def test_files_are_small() -> None:
    lengths = [
        len(file.read_text().splitlines()) for folder in FOLDERS for file in _sources(folder)
    ]
    assert max(lengths) <= 500


def test_every_source_is_in_the_bibliography() -> None:
    import boundlab

    known = (ROOT / "references.bib").read_text()
    for study in boundlab.studies():
        for key in {*study.sources, *(claim.source.reference for claim in study.claims)}:
            assert key == "derived" or f"{{{key}," in known, key


def test_every_claim_names_its_formula_its_page_and_its_test() -> None:
    import importlib

    import boundlab

    for study in boundlab.studies():
        for claim in study.claims:
            module, _, name = claim.formula.rpartition(".")
            assert callable(getattr(importlib.import_module(module), name)), claim.id
            file, _, test = claim.test.partition("::")
            assert (ROOT / file).is_file(), claim.test
            if test:
                assert f"def {test}(" in (ROOT / file).read_text(), claim.test
            if claim.source.reference == "derived":
                page, _, anchor = claim.source.place.partition("#")
                headings = [
                    line.lstrip("# ").lower().replace(" ", "-")
                    for line in (ROOT / page).read_text().splitlines()
                    if line.startswith("#")
                ]
                assert anchor in headings, claim.source.place


def test_pages_list_every_claim() -> None:
    import boundlab

    text = (ROOT / "README.md").read_text()
    tables = (ROOT / "docs" / "verdicts.md").read_text()
    assert len(text.splitlines()) < 140
    for study in boundlab.studies():
        for claim in study.claims:
            assert f"`{claim.id}`" in text, claim.id
            assert f"| `{claim.id}` | {claim.kind} |" in tables, claim.id
