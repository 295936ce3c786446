"""Claims and the evidence for them.

A claim says what must hold of a study's dataset, and brings a *control*: the same check on a
deliberately wrong theory, which the data must reject. Checks only gather evidence; `boundlab.verify`
alone turns it into p-values and verdicts.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from boundlab.checks import check_choice, check_number, fail
from boundlab.typing import Numbers, Scalar


class Kind(StrEnum):
    """What a claim says of the measured mean m and the reference r, in every case."""

    UPPER = "upper"  # m ≤ r
    LOWER = "lower"  # m ≥ r
    EQUAL = "equal"  # m = r, to the tolerance
    RATE = "rate"  # m ∝ pointsʳ: the fitted exponent equals r, to the tolerance
    ORDER = "order"  # m < the mean of `compared_with`, paired by key
    IDENTITY = "identity"  # no randomness: exact = r, to the tolerance


class Source(NamedTuple):
    """Where a statement comes from: a key of references.bib, or `derived`, and the place in it."""

    reference: str
    place: str


@dataclass(frozen=True)
class Evidence:
    """Samples (or exact values) and the references they are held against, a column a case.

    Give either `samples` or `exact`. A case is a grid point: cases are tested simultaneously.
    """

    samples: NDArray[np.floating] | None = None
    """(seeds, cases) simulated values; for `rate` (seeds, cases, points)."""
    exact: NDArray[np.floating] | None = None
    """(cases,) values without randomness, held against the reference to `tolerance`, no p-value."""
    reference: Numbers = 0.0
    """Scalar or (cases,): bound, expected value or exponent. `order` has none."""
    compared_with: NDArray[np.floating] | None = None
    """For `order`: (seeds, cases) values on the same keys whose mean must be the larger."""
    points: NDArray[np.floating] | None = None
    """For `rate`: (points,) positive abscissae, at least two."""
    tolerance: Scalar = 0.0
    """Relative error that the theory admits: 0 for an exact formula."""
    resolution: Scalar = 0.05
    """`equal` and `rate` hold when the interval is within this relative distance of the reference."""
    labels: tuple[str, ...] = ()
    """Names of the cases, for messages; numbered when empty."""

    def __post_init__(self) -> None:
        if (self.samples is None) == (self.exact is None):
            raise ValueError("samples, exact: exactly one of them must be given")
        values = self.samples if self.exact is None else self.exact
        shaped = np.asarray(values)
        name = "samples" if self.exact is None else "exact"
        if shaped.size == 0 or not np.issubdtype(shaped.dtype, np.floating):
            raise fail(
                name, f"{shaped.dtype} of shape {shaped.shape}", "a floating array, not empty"
            )
        for label, array in ((name, shaped), ("reference", self.reference)):
            if not np.isfinite(array).all():
                raise fail(label, "NaN or infinity", "finite numbers")
        dims = 1 if self.exact is not None else 2 if self.points is None else 3
        if shaped.ndim != dims:
            raise fail(name, f"shape {shaped.shape}", f"{dims} dimensions")
        cases = shaped.shape[0 if self.exact is not None else 1]
        reference = np.asarray(self.reference, dtype=np.float64)
        if reference.shape not in ((), (cases,)):
            raise fail("reference", f"shape {reference.shape}", f"a scalar or ({cases},)")
        object.__setattr__(self, "reference", np.broadcast_to(reference, (cases,)))
        if self.points is not None:
            points = np.asarray(self.points, dtype=np.float64)
            usable = np.isfinite(points).all() and (points > 0).all()
            if points.shape != shaped.shape[2:] or not usable or len(np.unique(points)) < 2:
                raise fail("points", points, "positive finite numbers, one a point, two different")
            if not (shaped.sum(axis=0) > 0).all():
                raise fail("samples", "a mean that is not positive", "positive means for a rate")
        if self.compared_with is not None:
            other = np.asarray(self.compared_with)
            if other.shape != shaped.shape or not np.isfinite(other).all():
                raise fail("compared_with", f"shape {other.shape}", f"finite, {shaped.shape}")
        if self.labels and len(self.labels) != cases:
            raise fail("labels", f"{len(self.labels)} of them", f"{cases}, one a case")
        for label, number in (("tolerance", self.tolerance), ("resolution", self.resolution)):
            check_number(label, number, 0)


Check = Callable[[xr.Dataset], Evidence]


@dataclass(frozen=True)
class Claim:
    """One statement of a study, how to check it, and the wrong statement its check must reject."""

    id: str
    """Short unique name within the study."""
    source: Source
    """Where the statement comes from."""
    statement: str
    """The statement in one line of mathtext."""
    kind: Kind
    """What the statement says of measurement and reference."""
    check: Check
    """Evidence for the statement, from the study's dataset."""
    control: Check
    """The same evidence against a deliberately wrong theory."""
    control_statement: str
    """What the control asserts, in a few words."""
    formula: str
    """Dotted name of the function that evaluates the theory."""
    test: str
    """Path of the test that checks this formula by an independent route."""

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, tuple(Kind))
        object.__setattr__(self, "kind", Kind(self.kind))
