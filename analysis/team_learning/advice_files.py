"""A team task from a file: a reward tensor or logged episodes (.npz), or a table of episodes (.csv).

.npz: `reward` (A_1, …, A_K), axis k agent k; or `actions` (n, K), integers from 0, and `rewards` (n,).
Others are ignored. .csv: a header, then one line an episode; the column `reward` (else the last one)
holds the team's reward, each other column an agent's action under any label. The labels of an agent are
numbered in their order, as numbers if all are, else as text.
"""

import csv
import zipfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from boundlab.checks import fail

ACCEPTED = "an .npz file of plain arrays, as numpy.savez writes it, or a .csv table"
FIELDS = "reward, or actions and rewards"


class TeamFile(NamedTuple):
    """Arguments of `advise`, and names to print; names are None where the file has none."""

    reward: np.ndarray | None
    actions: np.ndarray | None
    rewards: np.ndarray | None
    agents: tuple[str, ...] | None
    labels: tuple[tuple[str, ...], ...] | None
    """Of the actions of each agent."""


def load_team_file(path: Path) -> TeamFile:
    """Read `path`; raises `ValueError` that names the file and what is wrong with it."""
    if not path.is_file():
        raise fail("advise", f"{path}, which is no file", ACCEPTED)
    return _table(path) if path.suffix.lower() == ".csv" else _arrays(path)


def _arrays(path: Path) -> TeamFile:
    try:
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            raise ValueError("a single array")
        with loaded as arrays:
            fields = {name: arrays[name] for name in arrays}
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise fail("advise", f"{path}, which is none", ACCEPTED) from error
    given = {name: fields[name] for name in ("reward", "actions", "rewards") if name in fields}
    if set(given) not in ({"reward"}, {"actions", "rewards"}):
        got = ", ".join(sorted(fields)) or "no fields"
        raise ValueError(f"{path}: {fail('fields', got, FIELDS)}")
    return TeamFile(given.get("reward"), given.get("actions"), given.get("rewards"), None, None)


def _table(path: Path) -> TeamFile:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = [row for row in csv.reader(file) if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise fail("advise", f"{path}, which is none", ACCEPTED) from error
    accepted = "a header of at least one agent's column and the reward's, then one line an episode"
    if len(rows) < 2 or len(rows[0]) < 2:
        raise fail("advise", f"{path} of {len(rows)} lines", accepted)
    header, body = [name.strip() for name in rows[0]], rows[1:]
    uneven = next((i for i, row in enumerate(body) if len(row) != len(header)), None)
    if uneven is not None:
        got = f"{len(body[uneven])} columns in episode {uneven + 1}"
        raise ValueError(f"{path}: {fail('columns', got, f'{len(header)}, as in the header')}")
    place = header.index("reward") if "reward" in header else len(header) - 1
    columns = [[cell.strip() for cell in column] for column in zip(*body, strict=True)]
    rewards = _numbers(columns[place])
    if rewards is None or not np.isfinite(rewards).all():
        message = fail("rewards", f"text or nothing in column {header[place]!r}", "finite numbers")
        raise ValueError(f"{path}: {message}")
    agents = [k for k in range(len(header)) if k != place]
    empty = next((header[k] for k in agents if "" in columns[k]), None)
    if empty is not None:
        message = fail("actions", f"nothing in column {empty!r}", "a label in every episode")
        raise ValueError(f"{path}: {message}")
    actions, labels = zip(*(_numbered(columns[k]) for k in agents), strict=True)
    names = tuple(header[k] for k in agents)
    return TeamFile(None, np.stack(actions, axis=1), rewards, names, labels)


def _numbered(column: list[str]) -> tuple[np.ndarray, tuple[str, ...]]:
    """Labels as integers from 0, and the labels in that order."""
    labels = sorted(set(column))
    values = _numbers(labels)
    if values is not None:
        labels = [labels[i] for i in np.argsort(values, kind="stable")]
    number = {label: i for i, label in enumerate(labels)}
    return np.array([number[label] for label in column]), tuple(labels)


def _numbers(column: list[str]) -> np.ndarray | None:
    try:
        return np.array([float(cell) for cell in column])
    except ValueError:
        return None
