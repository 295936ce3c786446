"""The ladder of a sampler's error on Gaussian modes: exact KL, path bound, Lipschitz bound, shapes.

Everything is exact but the runs of the four schemes, whose means and variances are drawn. λ is the
eigenvalue of a mode, N the number of steps from T down to δ.
"""

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from boundlab.analysis.datasets import describe
from boundlab.analysis.graph_diffusion.config import Config
from boundlab.analysis.graph_diffusion.ladder_checks import checks
from boundlab.analysis.graph_diffusion.ladder_claims import CLAIMS as CLAIMS
from boundlab.analysis.graph_diffusion.ladder_simulation import simulated
from boundlab.analysis.graph_diffusion.padded_grids import padded_grid
from boundlab.experiment import Repeat
from boundlab.theory import graph_diffusion as theory

SCHEMES = ("exponential_integrator", "euler_maruyama", "ancestral", "probability_flow")
BOUNDED = SCHEMES[:2]
EIGENVALUES = np.array([0.5, 1.0, 3.0])
HORIZON, EARLY_STOP = 4.0, 0.01
# The grid of cases in which every bound is held against the exact KL.
CASE_EIGENVALUES = np.geomspace(1e-3, 200.0, 13)
CASE_MEANS = np.linspace(-1.0, 1.0, len(CASE_EIGENVALUES))
CASE_HORIZONS = (0.5, 1.0, 2.0, 4.0, 8.0)
CASE_KINDS = ("uniform", "geometric")
# (relative score error, score bias) of the exponential integrator.
ERRORS = ((0.1, 0.0), (-0.2, 0.0), (0.5, 0.0), (0.0, 0.3), (0.1, 1.0))


def run(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """The ladder over N, the bounds on a grid of cases, single numbers, and drawn moments."""
    parts = [_ladder(config), _cases(config), checks(config), simulated(config, key, repeat)]
    return describe(xr.merge(parts), "nats")


def _ladder(config: Config) -> xr.Dataset:
    """Exact KL and W₂ of the four schemes over N, the path bound, Lipschitz bound and shapes."""
    most = max(config.ladder_steps)

    @jax.jit
    @jax.vmap
    def one(steps: jax.Array) -> dict[str, jax.Array]:
        times = padded_grid(HORIZON, EARLY_STOP, steps, most)
        target = theory.noised_variance(EIGENVALUES, EARLY_STOP)
        found = [theory.reverse_moments(EIGENVALUES, times, scheme)[1] for scheme in SCHEMES]
        distance = jax.vmap(lambda v, u: theory.gaussian_w2(v[None], u[None]))
        return {
            "kl": jnp.stack([theory.gaussian_kl(target, variance) for variance in found]),
            "w2": jnp.stack([distance(target, variance) for variance in found]),
            "path": jnp.stack(
                [
                    theory.discretization_ei(EIGENVALUES, times),
                    theory.discretization_em(EIGENVALUES, times),
                ]
            ),
        }

    found = one(jnp.asarray(config.ladder_steps, jnp.float64))
    start = np.asarray(theory.initialization_kl(EIGENVALUES, HORIZON))
    slopes = np.maximum(1.0, 1.0 / EIGENVALUES)
    of_data = theory.initialization_kl(EIGENVALUES, 0.0)

    def shapes(slope: jax.Array, kl: jax.Array, second: jax.Array) -> tuple[list[jax.Array], ...]:
        lipschitz = [
            theory.bound_lipschitz(slope, 1, HORIZON, EARLY_STOP, steps)
            for steps in config.ladder_steps
        ]
        chen = [
            theory.bound_chen_shape(kl, second, slope, 1, HORIZON, steps)
            for steps in config.ladder_steps
        ]
        return lipschitz, chen

    lipschitz, chen = map(np.stack, jax.jit(jax.vmap(shapes))(slopes, of_data, EIGENVALUES))
    grids = [np.geomspace(HORIZON, EARLY_STOP, steps + 1) for steps in config.ladder_steps]
    benton = jax.jit(lambda: jnp.stack([theory.bound_benton_shape(grid, 1) for grid in grids]))()
    cases = ("ladder_steps", "ladder_scheme", "ladder_eigenvalue")
    bounded = ("ladder_steps", "ladder_bounded", "ladder_eigenvalue")
    modes = ("ladder_steps", "ladder_eigenvalue")
    path = np.asarray(found["path"])
    variables = {
        "ladder_kl": (cases, found["kl"], "exact KL of the sampler's output"),
        "ladder_path": (bounded, path, "discretisation term of the path bound"),
        "ladder_bound": (bounded, start + path, "path bound: start and discretisation"),
        "ladder_lipschitz": (modes, lipschitz, "Lipschitz bound on the discretisation term"),
        "ladder_chen": (modes, chen, "shape of a bound on total variation, Lipschitz score"),
        "ladder_benton": ("ladder_steps", benton, "shape of a bound on the KL, geometric grid"),
        "ladder_start": ("ladder_eigenvalue", start, "KL of the start"),
    }
    data = {
        name: (dims, np.asarray(values), {"long_name": text})
        for name, (dims, values, text) in variables.items()
    }
    data["ladder_w2"] = (
        cases,
        np.asarray(found["w2"]),
        {"long_name": "Wasserstein-2 distance of the sampler's output", "units": "1"},
    )
    coords = {
        "ladder_steps": np.array(config.ladder_steps),
        "ladder_scheme": list(SCHEMES),
        "ladder_bounded": list(BOUNDED),
        "ladder_eigenvalue": EIGENVALUES,
    }
    return xr.Dataset(data, coords)


def _cases(config: Config) -> xr.Dataset:
    """Exact KL and the terms of its bound over horizons, steps, kinds of grid and eigenvalues."""
    most = max(config.ladder_case_steps)
    rows = [
        (horizon, steps, kind == "geometric")
        for horizon in CASE_HORIZONS
        for steps in config.ladder_case_steps
        for kind in CASE_KINDS
    ]
    lam, mean = CASE_EIGENVALUES, CASE_MEANS

    @jax.jit
    @jax.vmap
    def one(row: jax.Array) -> dict[str, jax.Array]:
        times = padded_grid(row[0], EARLY_STOP, row[1], most, row[2] > 0)
        target = theory.noised_variance(lam, EARLY_STOP)
        center = np.exp(-EARLY_STOP) * mean
        found = [theory.reverse_moments(lam, times, scheme)[1] for scheme in BOUNDED]

        def off(pair: jax.Array) -> tuple[jax.Array, jax.Array]:
            moments = theory.reverse_moments(lam, times, BOUNDED[0], pair[0], pair[1], mean)
            path = theory.discretization_with_score_error(lam, times, pair[0], pair[1])
            return theory.gaussian_kl(target, moments[1], center, moments[0]), path

        error_kl, error_path = jax.vmap(off)(jnp.asarray(ERRORS, jnp.float64))
        return {
            "kl": jnp.stack([theory.gaussian_kl(target, variance) for variance in found]),
            "path": jnp.stack(
                [theory.discretization_ei(lam, times), theory.discretization_em(lam, times)]
            ),
            "start": theory.initialization_kl(lam, row[0]),
            "error_kl": error_kl,
            "error_path": error_path,
            "error_start": theory.initialization_kl(lam, row[0], mean),
        }

    found = {name: np.asarray(array) for name, array in one(jnp.asarray(rows, jnp.float64)).items()}
    slopes = np.maximum(1.0, 1.0 / lam)

    def lipschitz_bounds(slope: jax.Array) -> jax.Array:
        """NaN for geometric grids: it is a statement on equal steps."""
        given = [(horizon, EARLY_STOP, steps) for horizon, steps, _ in rows]
        bounds = jnp.stack([theory.bound_lipschitz(slope, 1, *one) for one in given])
        return jnp.where(np.array([row[2] for row in rows]), jnp.nan, bounds)

    bounds = jax.jit(jax.vmap(lipschitz_bounds, out_axes=1))
    lipschitz, unit = np.asarray(bounds(slopes)), np.asarray(bounds(np.ones_like(lam)))
    case, mode = "ladder_case", "ladder_case_eigenvalue"
    by_scheme, by_error = (case, "ladder_bounded", mode), (case, "ladder_error", mode)
    start, error_start = found["start"][:, None], found["error_start"][:, None]
    variables = {
        "ladder_case_kl": (by_scheme, found["kl"], "exact KL"),
        "ladder_case_bound": (by_scheme, start + found["path"], "path bound"),
        "ladder_case_half": (
            by_scheme,
            start + found["path"] / 2,
            "path bound, half its path term",
        ),
        "ladder_case_path": ((case, mode), found["path"][:, 0], "discretisation term"),
        "ladder_case_swapped": (
            (case, mode),
            start[:, 0] + found["path"][:, 0],
            "start and exponential integrator's term, claimed of Euler–Maruyama",
        ),
        "ladder_case_lipschitz": (
            (case, mode),
            lipschitz,
            "Lipschitz bound on the discretisation term",
        ),
        "ladder_case_unit_lipschitz": (
            (case, mode),
            unit,
            "the same with Lipschitz constant 1",
        ),
        "ladder_error_kl": (by_error, found["error_kl"], "exact KL with a wrong score"),
        "ladder_error_bound": (
            by_error,
            error_start + found["error_path"],
            "path bound with score error",
        ),
        "ladder_error_half": (
            by_error,
            error_start + (found["error_path"] + found["path"][:, :1]) / 2,
            "path bound with half of what the score error adds",
        ),
    }
    names = [
        f"T={horizon:g} N={steps} {CASE_KINDS[int(geometric)]}"
        for horizon, steps, geometric in rows
    ]
    coords = {
        case: names,
        mode: lam,
        "ladder_bounded": list(BOUNDED),
        "ladder_error": [f"e={error:g} b={bias:g}" for error, bias in ERRORS],
    }
    data = {
        name: (dims, values, {"long_name": text})
        for name, (dims, values, text) in variables.items()
    }
    return xr.Dataset(data, coords)
