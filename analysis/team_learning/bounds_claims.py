"""Claims of the part on bounds."""

from boundlab.analysis.evidence import means_against, values_against
from boundlab.claims import Check, Claim, Kind, Source

THEORY = "boundlab.theory.team_learning."
SELECTION = "tests/theory/team_learning/test_selection.py::"
BOUNDS = "tests/theory/team_learning/test_bounds.py::"
DISCOVERY = "tests/theory/team_learning/test_discovery.py::"


def _derived(heading: str) -> Source:
    return Source("derived", f"docs/team_learning.md#{heading}")


# What 6·10⁴ trials that fail with probability .05 resolve.
FAILURES = 0.15
ROUNDING = 1e-9
# Relative distance of the bounds' ratio from the exact one, on this table.
TRACKING = 0.2


def _means(samples: str, reference: str, resolution: float = FAILURES) -> Check:
    return means_against(
        f"bounds_{samples}", f"bounds_{reference}", "bounds_seed", resolution=resolution
    )


def _exact(*pairs: tuple[str, str], tolerance: float = ROUNDING) -> Check:
    named = tuple((f"bounds_{value}", f"bounds_{other}") for value, other in pairs)
    return values_against(named, tolerance=tolerance)


CLAIMS = (
    Claim(
        id="bounds-selected",
        source=_derived("selection"),
        statement=r"$P(g)=c_g\int\varphi\,\Phi^{c_g-1}\prod_{h\neq g}\Phi(z+(v_g-v_h)s)^{c_h}$",
        kind=Kind.EQUAL,
        check=_means("selected", "selected_theory", 0.2),
        control=_means("selected", "selected_even", 0.2),
        control_statement="one arm a group",
        formula=THEORY + "selection_probabilities",
        test=SELECTION + "test_groups_by_quadrature",
    ),
    Claim(
        id="bounds-slepian",
        source=_derived("selection"),
        statement=r"$q(M,x)\leq 1-\Phi(x/\sqrt{2})^{M-1}\leq\frac{1}{2}(M-1)e^{-x^2/4}$",
        kind=Kind.UPPER,
        check=_exact(("missed", "missed_slepian"), ("missed_slepian", "missed_union")),
        control=_exact(("missed", "missed_known")),
        control_statement="q ≤ 1 − Φ(x)^{M−1}, as if the best arm's value were known",
        formula=THEORY + "slippage_bounds",
        test=SELECTION + "test_slippage_by_quadrature",
    ),
    Claim(
        id="bounds-half",
        source=_derived("selection"),
        statement=r"$q(M,x)\geq\frac{1}{2}(1-\Phi(x)^{M-1})$",
        kind=Kind.LOWER,
        check=_exact(("missed", "missed_half")),
        control=_exact(("missed", "missed_known")),
        control_statement="without the ½",
        formula=THEORY + "slippage_bounds",
        test=SELECTION + "test_slippage_by_quadrature",
    ),
    Claim(
        id="bounds-fano",
        source=_derived("selection"),
        statement=r"Fano: $x_*^2\geq 2((1-\delta)\ln M-\ln 2)$",
        kind=Kind.LOWER,
        check=_exact(("exact", "fano")),
        control=_exact(("exact", "fano_twice")),
        control_statement="4 for 2, the constant of the union bound",
        formula=THEORY + "fano_lower",
        test=SELECTION + "test_roots_between_their_bounds",
    ),
    Claim(
        id="bounds-union",
        source=_derived("selection"),
        statement=r"Union: $x_*^2\leq 4\ln((M-1)/(2\delta))$",
        kind=Kind.UPPER,
        check=_exact(("exact", "union")),
        control=_exact(("exact", "union_half")),
        control_statement="2 for 4, the constant of Fano's bound",
        formula=THEORY + "union_upper",
        test=SELECTION + "test_roots_between_their_bounds",
    ),
    Claim(
        id="bounds-growth",
        source=_derived("selection"),
        statement=r"$x_*^2$ grows with the number of arms $M$ and with $1/\delta$",
        kind=Kind.LOWER,
        check=_exact(("growth", "growth_none"), ("growth_stricter", "growth_none")),
        control=_exact(("growth", "growth_logarithm")),
        control_statement="at least in proportion to ln M",
        formula=THEORY + "slippage_root",
        test=SELECTION + "test_roots_between_their_bounds",
    ),
    Claim(
        id="bounds-any-algorithm",
        source=_derived("lower-bounds"),
        statement=r"$Mx_*^2\geq\frac{1}{2}(M-1)\,\mathrm{kl}(\delta,1-\delta)$",
        kind=Kind.LOWER,
        check=_exact(("exact", "pac_lower")),
        control=_exact(("exact", "union")),
        control_statement="at least the union bound",
        formula=THEORY + "pac_lower_bound",
        test="tests/theory/team_learning/test_selection_bounds.py::test_lower_bound_by_divergence",
    ),
    Claim(
        id="bounds-valid",
        source=_derived("selection"),
        statement=r"One agent with the union bound's samples fails with at most $\delta$",
        kind=Kind.UPPER,
        check=_means("failure_union", "delta"),
        control=_means("failure_fano", "delta"),
        control_statement="with those of Fano's bound",
        formula=THEORY + "union_upper",
        test=SELECTION + "test_roots_between_their_bounds",
    ),
    Claim(
        id="bounds-one",
        source=_derived("full-information"),
        statement=r"One agent needs exactly $1/\rho_F$ times a team's samples",
        kind=Kind.EQUAL,
        check=_means("failure_one", "delta"),
        control=_means("failure_k_times_team", "delta"),
        control_statement="K times a team's, the paper's 1/K at small numbers of actions",
        formula=THEORY + "slippage_root",
        test=SELECTION + "test_ratios_published",
    ),
    Claim(
        id="bounds-team",
        source=_derived("full-information"),
        statement=r"A team needs $x_*^2(A,1-(1-\delta)^{1/K})\,\sigma^2/\Delta^2$",
        kind=Kind.EQUAL,
        check=_means("failure_team", "delta"),
        control=_means("failure_undivided", "delta"),
        control_statement="δ for each agent",
        formula=THEORY + "slippage_root",
        test=SELECTION + "test_ratios_published",
    ),
    Claim(
        id="bounds-above-inverse",
        source=_derived("full-information"),
        statement=r"$\rho_F>1/K$: a team saves less than a factor $K$",
        kind=Kind.LOWER,
        check=_exact(("ratio", "ratio_inverse")),
        control=_exact(("ratio", "ratio_bounds")),
        control_statement="at least the ratio of the bounds",
        formula=THEORY + "slippage_root",
        test=SELECTION + "test_ratios_published",
    ),
    Claim(
        id="bounds-slow",
        source=_derived("full-information"),
        statement=r"$\rho_F-1/K$ falls as $A$ grows",
        kind=Kind.UPPER,
        check=_exact(("ratio_excess", "ratio_excess_even")),
        control=_exact(("ratio_excess", "ratio_excess_halved")),
        control_statement="it halves from A to A²",
        formula=THEORY + "slippage_root",
        test=SELECTION + "test_ratios_published",
    ),
    Claim(
        id="bounds-tracking",
        source=_derived("full-information"),
        statement=r"The bounds' ratio $\kappa$ is within 20 % of the exact $\rho_F$",
        kind=Kind.IDENTITY,
        check=_exact(("ratio_bounds", "ratio"), tolerance=TRACKING),
        control=_exact(("ratio_inverse", "ratio"), tolerance=TRACKING),
        control_statement="1/K is",
        formula=THEORY + "finite_class_samples",
        test=BOUNDS + "test_finite_classes_by_hand",
    ),
    Claim(
        id="bounds-loose",
        source=_derived("full-information"),
        statement=r"Uniform convergence asks for over 2.89 times the exact samples",
        kind=Kind.LOWER,
        check=_exact(("uniform_excess", "least_excess")),
        control=_exact(("union_excess", "least_excess")),
        control_statement="the union bound for Gaussian noise does",
        formula=THEORY + "finite_class_samples",
        test=BOUNDS + "test_finite_classes_by_hand",
    ),
    Claim(
        id="bounds-loosest",
        source=_derived("full-information"),
        statement=r"The union bound asks for at most 2.3 times the exact samples",
        kind=Kind.UPPER,
        check=_exact(("union_excess", "union_most_excess")),
        control=_exact(("uniform_excess", "union_most_excess")),
        control_statement="uniform convergence does",
        formula=THEORY + "union_upper",
        test=SELECTION + "test_roots_between_their_bounds",
    ),
    Claim(
        id="bounds-cubed",
        source=_derived("finite-classes"),
        statement=r"Dependent over independent bound, equal classes: $K^3$",
        kind=Kind.IDENTITY,
        check=_exact(("class_ratio", "class_cubed")),
        control=_exact(("class_ratio", "class_squared")),
        control_statement="K², for one of the K stages",
        formula=THEORY + "finite_class_samples",
        test=BOUNDS + "test_finite_classes_by_hand",
    ),
    Claim(
        id="bounds-crossover",
        source=_derived("finite-classes"),
        statement=r"A team's bound is one agent's at $\alpha_*=(\varepsilon/2)(1-\sqrt{\kappa})$",
        kind=Kind.IDENTITY,
        check=_exact(("class_misaligned", "class_one")),
        control=_exact(("class_limit", "class_one")),
        control_statement="at (ε/2)(1 − 1/√K)",
        formula=THEORY + "alignment_crossover",
        test=BOUNDS + "test_crossover_by_bracketing",
    ),
    Claim(
        id="bounds-separable",
        source=_derived("joint-training"),
        statement=r"Additive reward: the joint maximiser is the agents' one by one",
        kind=Kind.IDENTITY,
        check=_exact(("differs", "none")),
        control=_exact(("differs_coupled", "none")),
        control_statement="under parity too",
        formula=THEORY + "finite_class_samples",
        test="tests/models/test_team_simulation.py",
    ),
    Claim(
        id="bounds-joint-training",
        source=_derived("joint-training"),
        statement=r"Joint training on the product class fails as $K$ agents do, no $K^2$",
        kind=Kind.EQUAL,
        check=_means("joint_failure", "joint_failure_theory"),
        control=_means("joint_failure", "joint_failure_staged"),
        control_statement="as with n/K² samples, each agent solved to ε/K",
        formula=THEORY + "slippage_failure",
        test=SELECTION + "test_slippage_by_quadrature",
    ),
    Claim(
        id="bounds-floor",
        source=_derived("joint-training"),
        statement=r"Without noise agents one by one lose $\max(0,\lambda-\Delta/K)$ to the joint",
        kind=Kind.IDENTITY,
        check=_exact(("floor", "floor_theory")),
        control=_exact(("floor", "floor_alignment")),
        control_statement="2α₀ = λ, the misalignment's bound",
        formula=THEORY + "bias_floor",
        test="tests/theory/team_learning/test_alignment.py",
    ),
    Claim(
        id="bounds-discovery-one",
        source=_derived("discovery"),
        statement=r"One agent misses the best of $A^K$ with probability $(1-A^{-K})^n$",
        kind=Kind.EQUAL,
        check=_means("discovery_one", "discovery_one_theory", 0.3),
        control=_means("discovery_one", "discovery_one_fresh", 0.3),
        control_statement="1 − n/A^K, as if no joint action came twice",
        formula=THEORY + "discovery_failure",
        test=DISCOVERY + "test_failures_by_hand",
    ),
    Claim(
        id="bounds-discovery-team",
        source=_derived("discovery"),
        statement=r"A team misses one with probability $1-(1-(1-1/A)^n)^K$",
        kind=Kind.EQUAL,
        check=_means("discovery_team", "discovery_team_theory", 0.3),
        control=_means("discovery_team", "discovery_team_single", 0.3),
        control_statement="(1 − 1/A)^n, that of one of its agents",
        formula=THEORY + "discovery_failure",
        test=DISCOVERY + "test_failures_by_hand",
    ),
    Claim(
        id="bounds-coupon",
        source=_derived("discovery"),
        statement=r"The sizes of discovery fail with at most $\delta$",
        kind=Kind.UPPER,
        check=_exact(
            ("discovery_one_theory", "discovery_delta"),
            ("discovery_team_theory", "discovery_delta"),
        ),
        control=_exact(("discovery_team_short", "discovery_delta")),
        control_statement="so does a team with the size of one of its agents",
        formula=THEORY + "coupon_samples",
        test=DISCOVERY + "test_smallest_integers",
    ),
    Claim(
        id="bounds-lipschitz",
        source=_derived("lipschitz-policies"),
        statement=r"$\mathrm{TV}\leq\min(T/2,\sqrt{T}/2)\,\|\Delta\theta\|$ for linear softmax",
        kind=Kind.UPPER,
        check=_exact(("variation", "variation_pinsker"), ("variation_pinsker", "variation_hybrid")),
        control=_exact(("variation", "variation_token")),
        control_statement="½‖Δθ‖ for texts of any length",
        formula=THEORY + "softmax_lipschitz",
        test=BOUNDS + "test_total_variation_by_enumeration",
    ),
)
