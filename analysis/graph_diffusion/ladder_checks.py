"""Single numbers of the ladder: fixed points, starts, score bias, laws that aren't Gaussian.

Each stands beside a value found in another way: quadrature, a closed form of the limit, many steps.
"""

from itertools import pairwise

import numpy as np
import scipy.stats
import xarray as xr

from boundlab.analysis.graph_diffusion.config import Config
from boundlab.theory import graph_diffusion as theory

QUADRATURE_EIGENVALUES = np.array([0.05, 0.5, 1.0, 3.0, 20.0])
QUADRATURE_TIMES = np.linspace(3.0, 0.01, 21)
QUADRATURE_NODES = 40
FINE_STEPS = 1000
FIXED_STEP, FIXED_STEPS = 0.1, 400
START_EIGENVALUE, START_HORIZON, START_STOP = 3.0, 1.5, 0.01
BIAS, BIAS_HORIZON = 0.1, 1.26
# Discrete laws that are noised: values and their probabilities.
LAWS = {
    "sparse edge": ((0.0, 1.0), (0.9, 0.1)),
    "edge": ((0.0, 1.0), (0.5, 0.5)),
    "sign": ((-1.0, 1.0), (0.3, 0.7)),
    "three values": ((-1.0, 0.5, 2.0), (0.2, 0.5, 0.3)),
}
LAW_HORIZONS = np.array([0.3, 0.6, 1.0])
# Moments in the Hermite series, and how many the truncated control keeps: mean and variance.
SERIES, TWO_MOMENTS = 80, 2


def checks(config: Config) -> xr.Dataset:
    """All of them as one dataset."""
    return xr.merge([_quadrature(), _small_steps(), _fixed_points(), _fine(config), _laws()])


def _noised(t: np.ndarray | float, lam: np.ndarray) -> np.ndarray:
    return 1 + (lam - 1) * np.exp(-2 * np.asarray(t))


def _quadrature() -> xr.Dataset:
    """Both discretisation terms by Gauss–Legendre quadrature of the frozen gap's variance."""
    lam = QUADRATURE_EIGENVALUES
    nodes, weights = np.polynomial.legendre.leggauss(QUADRATURE_NODES)
    score, drift = np.zeros((2, len(lam)))
    for tau, t in pairwise(QUADRATURE_TIMES):
        half = (tau - t) / 2
        s = ((tau + t) / 2 + half * nodes)[:, None]
        now, then, decay = _noised(s, lam), _noised(tau, lam), np.exp(s - tau)
        for total, first, last, factor in (
            (score, 1 / now, 1 / then, 1.0),
            (drift, 1 - 2 / now, 1 - 2 / then, 0.25),
        ):
            gap = (first - last * decay) ** 2 * now + last**2 * (1 - decay**2)
            total += factor * half * (weights[:, None] * gap).sum(axis=0)
    entropy = 0.5 * np.log(_noised(QUADRATURE_TIMES[:, None], lam)).sum(axis=1)
    fisher = (1 / _noised(QUADRATURE_TIMES[:, None], lam)).sum(axis=1)
    by_entropy = theory.bound_entropy_fisher(entropy, fisher, QUADRATURE_TIMES, len(lam))
    dim = "ladder_quadrature_eigenvalue"
    closed = np.asarray(theory.discretization_ei(lam, QUADRATURE_TIMES))
    return xr.Dataset(
        {
            "ladder_closed_ei": (dim, closed, {"long_name": "discretisation term, closed form"}),
            "ladder_closed_em": (
                dim,
                np.asarray(theory.discretization_em(lam, QUADRATURE_TIMES)),
                {"long_name": "the same of Euler–Maruyama"},
            ),
            "ladder_quadrature_ei": (dim, score, {"long_name": "discretisation term, quadrature"}),
            "ladder_quadrature_em": (dim, drift, {"long_name": "the same of Euler–Maruyama"}),
            "ladder_by_entropy": (
                (),
                float(by_entropy),
                {"long_name": "from entropy and Fisher information"},
            ),
            "ladder_by_modes": ((), closed.sum(), {"long_name": "summed over modes"}),
            "ladder_by_modes_em": ((), drift.sum(), {"long_name": "the same of Euler–Maruyama"}),
        },
        coords={dim: lam},
    )


def _small_steps() -> xr.Dataset:
    """D at small equal steps beside h∫v^{−2}, and beside h(T − δ), which the diffusion length takes."""
    lam, (first, last) = QUADRATURE_EIGENVALUES[1:], QUADRATURE_TIMES[[0, -1]]
    h = (first - last) / FINE_STEPS
    found = theory.discretization_ei(lam, np.linspace(first, last, FINE_STEPS + 1))
    leading = h * np.asarray(theory.integrated_squared_precision(lam, first, last))
    dim = "ladder_fine_eigenvalue"
    return xr.Dataset(
        {
            "ladder_fine": (dim, np.asarray(found), {"long_name": "D at 1,000 steps"}),
            "ladder_leading": (dim, leading, {"long_name": "h times the integral of 1/v²"}),
            "ladder_flat": (
                dim,
                np.full(len(lam), h * (first - last)),
                {"long_name": "h times the length of time"},
            ),
        },
        coords={dim: lam},
    )


def _fixed_points() -> xr.Dataset:
    """Variance after 400 steps of .1 at λ = 1 beside (e^h + 1)/(3 − e^h) and 2/(2 − h)."""
    h = FIXED_STEP
    grid = np.linspace(FIXED_STEPS * h + h, h, FIXED_STEPS + 1)
    schemes = ("exponential_integrator", "euler_maruyama")
    found = [float(theory.reverse_moments([1.0], grid, scheme)[1][0]) for scheme in schemes]
    closed = np.array([(np.exp(h) + 1) / (3 - np.exp(h)), 2 / (2 - h)])
    dim = "ladder_bounded"
    described = {"units": "1"}
    return xr.Dataset(
        {
            "ladder_limit": (
                dim,
                np.array(found),
                {"long_name": "variance after 400 steps", **described},
            ),
            "ladder_fixed_point": (dim, closed, {"long_name": "fixed point", **described}),
            "ladder_other_fixed_point": (
                dim,
                closed[::-1].copy(),
                {"long_name": "fixed point of the other scheme", **described},
            ),
        },
        coords={dim: list(schemes)},
    )


def _fine(config: Config) -> xr.Dataset:
    """Start and score bias without discretisation: closed forms beside many small steps."""
    lam, horizon, stop = START_EIGENVALUE, START_HORIZON, START_STOP
    grid = np.linspace(horizon, stop, config.ladder_fine_steps + 1)
    scheme = "exponential_integrator"
    variance = float(theory.reverse_moments([lam], grid, scheme)[1][0])
    target = theory.noised_variance([lam], stop)
    flow = theory.probability_flow_variance([lam], horizon, stop)
    sde = theory.reverse_sde_variance([lam], horizon, stop)
    grid = np.linspace(BIAS_HORIZON, stop, config.ladder_fine_steps + 1)
    mean, spread = theory.reverse_moments([1.0], grid, scheme, 0.0, BIAS)
    closed = 2 * BIAS**2 * (1 - np.exp(-(BIAS_HORIZON - stop))) ** 2
    numbers = {
        "ladder_sde_variance": (variance, "variance of many small steps from N(0, 1)", "1"),
        "ladder_sde_theory": (float(sde[0]), "the reverse SDE's, closed form", "1"),
        "ladder_flow_theory": (float(flow[0]), "the probability flow's, closed form", "1"),
        "ladder_flow_kl": (
            float(theory.gaussian_kl(target, flow)[0]),
            "KL of the probability flow from N(0, 1)",
            "nats",
        ),
        "ladder_sde_kl": (
            float(theory.gaussian_kl(target, sde)[0]),
            "KL of the reverse SDE from N(0, 1)",
            "nats",
        ),
        "ladder_start_kl": (
            float(theory.initialization_kl([lam], horizon)[0]),
            "KL of the noised data from N(0, 1)",
            "nats",
        ),
        "ladder_bias_kl": (
            float(theory.gaussian_kl(1.0, float(spread[0]), 0.0, float(mean[0]))),
            "KL with a constant score bias, many small steps",
            "nats",
        ),
        "ladder_bias_theory": (closed, "the same, closed form", "nats"),
        "ladder_bias_bound": (
            BIAS**2 * (BIAS_HORIZON - stop),
            "bound on it, the bias squared times the length of time",
            "nats",
        ),
    }
    return xr.Dataset(
        {
            name: ((), value, {"long_name": text, "units": units})
            for name, (value, text, units) in numbers.items()
        }
    )


def _laws() -> xr.Dataset:
    """KL and χ² of noised discrete laws from N(0, 1) on a grid, their bound and their series."""
    x, step = np.linspace(-12.0, 12.0, 4001, retstep=True)
    log_normal = scipy.stats.norm.logpdf(x)
    shape = (len(LAWS), len(LAW_HORIZONS))
    kl, chi2, bound, gaussian, series, short = np.empty((6, *shape))
    for i, (values, weights) in enumerate(LAWS.values()):
        mean = float(np.dot(weights, values))
        moment = float(np.dot(weights, np.square(values)))
        hermite = np.asarray(theory.discrete_hermite_moments(values, weights, SERIES))[None, :]
        for j, horizon in enumerate(LAW_HORIZONS.tolist()):
            m, std = np.exp(-horizon), np.sqrt(1 - np.exp(-2 * horizon))
            parts = [
                w * scipy.stats.norm.pdf(x, m * a, std)
                for a, w in zip(values, weights, strict=True)
            ]
            density = np.sum(parts, axis=0)
            kl[i, j] = step * np.sum(density * (np.log(density) - log_normal))
            chi2[i, j] = step * np.sum((density - np.exp(log_normal)) ** 2 * np.exp(-log_normal))
            bound[i, j] = theory.initialization_kl_universal(moment, 1, 2 * horizon)
            gaussian[i, j] = theory.initialization_kl([moment - mean**2], horizon, [mean])[0]
            series[i, j] = theory.initialization_chi2(hermite, 2 * horizon)
            short[i, j] = theory.initialization_chi2(hermite[:, :TWO_MOMENTS], 2 * horizon)
    dims = ("ladder_law", "ladder_law_horizon")
    variables = {
        "ladder_law_kl": (kl, "KL of the noised law from N(0, 1), quadrature", "nats"),
        "ladder_law_bound": (bound, "bound on it for any law", "nats"),
        "ladder_law_gaussian": (gaussian, "KL of a Gaussian with the same two moments", "nats"),
        "ladder_law_log_chi2": (np.log1p(series), "log(1 + χ²), which bounds it", "nats"),
        "ladder_law_chi2": (chi2, "χ² of the noised law, quadrature", "1"),
        "ladder_law_series": (series, "χ² by its Hermite series", "1"),
        "ladder_law_short_series": (short, "χ² by two terms of the series", "1"),
    }
    return xr.Dataset(
        {
            name: (dims, values, {"long_name": text, "units": units})
            for name, (values, text, units) in variables.items()
        },
        coords={"ladder_law": list(LAWS), "ladder_law_horizon": LAW_HORIZONS},
    )
