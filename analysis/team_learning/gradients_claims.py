"""Claims about policy gradients of teams; their numbers are the variables of `gradients.run`."""

from boundlab.analysis.evidence import means_against, values_against
from boundlab.claims import Claim, Kind, Source

THEORY = "boundlab.theory.team_learning."
GRADIENTS = "tests/theory/team_learning/test_gradients.py::"
SYMMETRY = "tests/theory/team_learning/test_symmetry.py::"
SLOPE = Source("derived", "docs/team_learning.md#policy-gradient")
HITTING = Source("derived", "docs/team_learning.md#hitting-times")
TRAP = Source("derived", "docs/team_learning.md#symmetry-trap")
# Relative rounding of squared gradients.
ROUNDING = 1e-8
# Relative error of times read off between steps of the flow.
BETWEEN_STEPS = 1e-4
# Relative error of the flow's own steps and of the solver it is held against.
STEPS = 1e-5
# Relative to the trap's regret, what is left of the way there when the flow is stopped.
LATE = 1e-3


CLAIMS = (
    Claim(
        id="gradients-ratio",
        source=SLOPE,
        statement=r"Any reward, uniform start: slope of team / one is $A^{K-1}A_1$",
        kind=Kind.IDENTITY,
        check=values_against((("gradients_ratio", "gradients_theory"),), tolerance=ROUNDING),
        control=values_against((("gradients_ratio", "gradients_additive"),), tolerance=ROUNDING),
        control_statement="Aᴷ⁻¹, whatever the alignment",
        formula=THEORY + "gradient_speed_ratio",
        test=GRADIENTS + "test_slopes_by_enumeration",
    ),
    Claim(
        id="gradients-faster",
        source=SLOPE,
        statement=r"A team gains more at first if and only if $A_1>A^{-(K-1)}$",
        kind=Kind.IDENTITY,
        check=values_against((("gradients_faster", "gradients_predicted"),)),
        control=values_against((("gradients_faster", "gradients_mostly_additive"),)),
        control_statement="if and only if the reward is mostly additive, A₁ > ½",
        formula=THEORY + "gradient_speed_ratio",
        test=GRADIENTS + "test_slopes_by_enumeration",
    ),
    Claim(
        id="gradients-hitting",
        source=HITTING,
        statement=r"Time to probability $p$ is $T(A,\Delta,p)$; for a needle $T(A^K,\Delta,p)$",
        kind=Kind.IDENTITY,
        check=values_against(
            (("gradients_hitting", "gradients_hitting_theory"),), tolerance=BETWEEN_STEPS
        ),
        control=values_against(
            (("gradients_hitting", "gradients_hitting_no_log"),), tolerance=BETWEEN_STEPS
        ),
        control_statement="without the logarithm, 2(A−1)ξ/(AΔ)",
        formula=THEORY + "hitting_time",
        test=GRADIENTS + "test_hitting_times_by_ode_solver",
    ),
    Claim(
        id="gradients-own-team",
        source=HITTING,
        statement=r"Paid the team's mean, agents take $K$ times as long",
        kind=Kind.IDENTITY,
        check=values_against(
            (("gradients_team_over_own", "gradients_team_over_own_theory"),), tolerance=ROUNDING
        ),
        control=values_against(
            (("gradients_team_over_own", "gradients_team_over_own_theory"),),
            factor=3.0,
            tolerance=ROUNDING,
        ),
        control_statement="K² times, as trajectories if the outcome is as noisy as one's own score",
        formula=THEORY + "hitting_time",
        test=GRADIENTS + "test_hitting_times_at_the_edges",
    ),
    Claim(
        id="gradients-signal",
        source=SLOPE,
        statement=r"REINFORCE paid the team's mean: a $K$-th of the signal to noise",
        kind=Kind.EQUAL,
        check=means_against("gradients_signal", "gradients_signal_theory", "gradients_seed"),
        control=means_against("gradients_signal", "gradients_signal_square", "gradients_seed"),
        control_statement="a K²-th of it",
        formula=THEORY + "reinforce_signal_to_noise",
        test=GRADIENTS + "test_moments_by_enumeration",
    ),
    Claim(
        id="gradients-symmetric",
        source=TRAP,
        statement=r"Parity, uniform start: agents follow the flow of one of them",
        kind=Kind.IDENTITY,
        check=values_against(
            (("gradients_symmetric", "gradients_symmetric_theory"),), tolerance=STEPS
        ),
        control=values_against(
            (("gradients_symmetric", "gradients_symmetric_blind"),), tolerance=STEPS
        ),
        control_statement="parity is invisible to each agent at all times, not only at first",
        formula=THEORY + "symmetric_parity_flow",
        test=SYMMETRY + "test_flow_and_regret_by_enumeration",
    ),
    Claim(
        id="gradients-trap",
        source=TRAP,
        statement=r"They end at the symmetric maximiser, whose regret isn't 0",
        kind=Kind.IDENTITY,
        check=values_against((("gradients_late", "gradients_trap"),), tolerance=LATE),
        control=values_against((("gradients_late", "gradients_floor"),), tolerance=LATE),
        control_statement="they end at their own best actions, with the floor λ − Δ/K",
        formula=THEORY + "symmetric_trap_regret",
        test=SYMMETRY + "test_trap_is_where_the_flow_ends",
    ),
    Claim(
        id="gradients-escape",
        source=TRAP,
        statement=r"Noise of $.01$ frees them: a tenth of that regret at $t=1000$",
        kind=Kind.UPPER,
        check=means_against("gradients_escaped", "gradients_escape", "gradients_seed"),
        control=means_against("gradients_escaped_tied", "gradients_escape", "gradients_seed"),
        control_statement="noise that is the same for every agent frees them, too",
        formula=THEORY + "symmetric_trap_regret",
        test=SYMMETRY + "test_trap_by_a_maximiser",
    ),
)
