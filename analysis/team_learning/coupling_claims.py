"""Claims about coupled teams; their numbers are the variables of `coupling.run`."""

import numpy as np
import xarray as xr

from boundlab.analysis.datasets import case_labels, column
from boundlab.analysis.evidence import means_against, values_against
from boundlab.claims import Check, Claim, Evidence, Kind, Source

THEORY = "boundlab.theory.team_learning."
REGRET = "tests/theory/team_learning/test_regret.py::"
ALIGNMENT = "tests/theory/team_learning/test_alignment.py::"
PARITY = Source("derived", "docs/team_learning.md#parity")
CROSSOVER = Source("derived", "docs/team_learning.md#budget-crossover")
ALIGNED = Source("derived", "docs/team_learning.md#alignment")
ORDER_Q = Source("derived", "docs/team_learning.md#order-q-coupling")
SEED = "coupling_seed"
# The CLT and independent errors of (E4), relative to the regret of 64 trajectories.
CLT_ERROR = 0.04
ROUNDING = 1e-9
# Δ of the default task, in units of reward.
GAP = 0.6
# Tolerance of the linear programs, relative.
PROGRAM = 1e-6


def _regret(learner: str, theory: str) -> Check:
    return means_against(f"coupling_regret_{learner}", f"coupling_expected_{theory}", SEED)


def _judged(theory: str) -> Check:
    """Shared rewards at the first budget, where the coupling is neither absent nor all there is."""
    against = means_against(
        "coupling_judged",
        theory,
        SEED,
        tolerance=CLT_ERROR,
        resolution=0.08,
        selected=(("coupling_weight", "coupling_simulated_weight"),),
    )

    def check(dataset: xr.Dataset) -> Evidence:
        weights = dataset["coupling_simulated_weight"]
        return against(dataset.isel(coupling_simulated_weight=np.flatnonzero(weights > 0.2)))

    return check


def _ordered(smaller: xr.DataArray, larger: xr.DataArray) -> Evidence:
    pair = xr.Dataset({"smaller": smaller, "larger": larger})
    return Evidence(
        samples=column(pair, "smaller", SEED),
        compared_with=column(pair, "larger", SEED),
        labels=case_labels(pair, "smaller", SEED),
    )


def _beside(smaller: str, larger: str, side: str) -> Check:
    """Order of two learners at budgets on one side of the crossover."""

    def check(dataset: xr.Dataset) -> Evidence:
        part = dataset.sel(coupling_side=side)
        return _ordered(part[f"coupling_beside_{smaller}"], part[f"coupling_beside_{larger}"])

    return check


def _team_below(*, with_floor: bool) -> Check:
    """The team below the joint learner at every budget, where it has a floor or hasn't."""

    def check(dataset: xr.Dataset) -> Evidence:
        weights = dataset["coupling_simulated_weight"].values
        finite = np.isfinite(dataset["coupling_crossover"].sel(coupling_weight=weights).values)
        part = dataset.isel(coupling_simulated_weight=np.flatnonzero(finite == with_floor))
        return _ordered(part["coupling_regret_own"], part["coupling_regret_joint"])

    return check


def _order_floor(theory: str) -> Check:
    """Floors counted from Δ below the best: of a floor of 0 there is no relative error."""
    selected = (("coupling_strength", "coupling_order_simulated"),)
    against = means_against("counted", "expected", SEED, selected=selected)

    def check(dataset: xr.Dataset) -> Evidence:
        floor = dataset[theory].sel(coupling_kind="order", coupling_signal="shared", drop=True)
        counted = GAP + dataset["coupling_order_regret"]
        return against(dataset.assign(counted=counted, expected=GAP + floor))

    return check


CLAIMS = (
    Claim(
        id="coupling-joint",
        source=PARITY,
        statement=r"Joint learner: regret is $\sum_g P_g(v_{\max}-v_g)$ at $m=N/A^K$",
        kind=Kind.EQUAL,
        check=_regret("joint", "joint"),
        control=_regret("joint", "joint_additive"),
        control_statement="the law of the additive spectrum, without the coupling",
        formula=THEORY + "team_regret",
        test=REGRET + "test_by_enumeration",
    ),
    Claim(
        id="coupling-own",
        source=PARITY,
        statement=r"Own rewards: floor $+\Delta q-\lambda\,P(\mathrm{errors\ solve\ parity})$",
        kind=Kind.EQUAL,
        check=_regret("own", "own"),
        control=_regret("own", "own_missed"),
        control_statement="errors never solve the parity",
        formula=THEORY + "team_regret",
        test=REGRET + "test_by_enumeration",
    ),
    Claim(
        id="coupling-shared",
        source=Source("derived", "docs/team_learning.md#credit-assignment"),
        statement=r"Shared reward: the same with $\Delta/K$ and $\sigma_{\mathrm{eff}}$, to 4 %",
        kind=Kind.EQUAL,
        check=_judged("coupling_judged_theory"),
        control=_judged("coupling_judged_alone"),
        control_statement="outcome noise alone, without the teammates' variance",
        formula=THEORY + "team_regret",
        test=REGRET + "test_by_enumeration",
    ),
    Claim(
        id="coupling-never",
        source=CROSSOVER,
        statement=r"$\lambda\leq\Delta/K$: the team beats the joint learner at every $N$",
        kind=Kind.ORDER,
        check=_team_below(with_floor=False),
        control=_team_below(with_floor=True),
        control_statement="it does so where λ > Δ/K as well",
        formula=THEORY + "budget_crossover",
        test=REGRET + "test_published_crossovers",
    ),
    Claim(
        id="coupling-before",
        source=CROSSOVER,
        statement=r"$N=N^*/1.5$: the team still beats the joint learner",
        kind=Kind.ORDER,
        check=_beside("own", "joint", "below"),
        control=_beside("own", "joint", "above"),
        control_statement="it still does at 1.5 N*",
        formula=THEORY + "budget_crossover",
        test=REGRET + "test_crossover_is_the_last_of_two",
    ),
    Claim(
        id="coupling-after",
        source=CROSSOVER,
        statement=r"$N=1.5\,N^*$: the joint learner beats the team",
        kind=Kind.ORDER,
        check=_beside("joint", "own", "above"),
        control=_beside("joint", "own", "below"),
        control_statement="it does already at N*/1.5",
        formula=THEORY + "budget_crossover",
        test=REGRET + "test_crossover_is_the_last_of_two",
    ),
    Claim(
        id="coupling-floor",
        source=ALIGNED,
        statement=r"Floors: $\lambda-\Delta/K$ (parity), $\lambda-q\Delta/K$ (order $q$)",
        kind=Kind.IDENTITY,
        check=values_against((("coupling_floor", "coupling_floor_theory"),), tolerance=ROUNDING),
        control=values_against((("coupling_floor", "coupling_floor_single"),), tolerance=ROUNDING),
        control_statement="one switch is enough at any order",
        formula=THEORY + "order_q_alignment",
        test=ALIGNMENT + "test_order_q_floors_by_loops",
    ),
    Claim(
        id="coupling-order",
        source=ORDER_Q,
        statement=r"Order $q$: shared rewards find it iff $\lambda>A^{q-1}\Delta/K$",
        kind=Kind.EQUAL,
        check=_order_floor("coupling_floor_theory"),
        control=_order_floor("coupling_floor_single"),
        control_statement="one switch is enough at any order",
        formula=THEORY + "order_q_alignment",
        test=ALIGNMENT + "test_order_q_floors_by_loops",
    ),
    Claim(
        id="coupling-share",
        source=PARITY,
        statement=r"$A_1=1/(1+K\lambda^2/\Delta^2)$ for parity; order $q$ in closed form",
        kind=Kind.IDENTITY,
        check=values_against((("coupling_share", "coupling_share_theory"),), tolerance=ROUNDING),
        control=values_against(
            (("coupling_share", "coupling_share_forgetful"),), tolerance=ROUNDING
        ),
        control_statement="1/(1 + λ²/Δ²), without the number of agents",
        formula=THEORY + "parity_alignment",
        test=ALIGNMENT + "test_shares_by_regression",
    ),
    Claim(
        id="coupling-sup",
        source=ALIGNED,
        statement=r"$\alpha_0=\lambda/2$, $\lambda(q-1)/2q$, $\Delta(K-1)/2K$ (parity, order, needle)",
        kind=Kind.IDENTITY,
        check=values_against((("coupling_sup", "coupling_sup_theory"),), tolerance=PROGRAM),
        control=values_against((("coupling_sup", "coupling_sup_raw"),), tolerance=PROGRAM),
        control_statement="α not centred: λ",
        formula=THEORY + "sup_alignment",
        test=ALIGNMENT + "test_sup_alignment_by_the_dual",
    ),
    Claim(
        id="coupling-two-alpha",
        source=PARITY,
        statement=r"Parity: the floor is at most $2\alpha_0$",
        kind=Kind.UPPER,
        check=values_against((("coupling_left", "coupling_left_bound"),)),
        control=values_against((("coupling_left", "coupling_left_half_bound"),)),
        control_statement="at most α₀",
        formula=THEORY + "sup_alignment",
        test=ALIGNMENT + "test_parity_floor_by_loops",
    ),
    Claim(
        id="coupling-feasible",
        source=PARITY,
        statement=r"A team reaches $\varepsilon$ up to $\lambda^*=\varepsilon+\Delta/K$",
        kind=Kind.IDENTITY,
        check=values_against(
            (("coupling_feasible", "coupling_feasible_theory"),), tolerance=ROUNDING
        ),
        control=values_against(
            (("coupling_feasible", "coupling_feasible_rule"),), tolerance=ROUNDING
        ),
        control_statement="up to λ = ε, as 2α < ε asks",
        formula=THEORY + "bias_floor",
        test=ALIGNMENT + "test_parity_floor_by_loops",
    ),
)
