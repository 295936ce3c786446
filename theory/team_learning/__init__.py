"""Sample complexity of one agent and of teams of agents: exact laws, bounds and crossovers."""

from boundlab.theory.team_learning.alignment import anova_alignment as anova_alignment
from boundlab.theory.team_learning.alignment import bias_floor as bias_floor
from boundlab.theory.team_learning.alignment import sup_alignment as sup_alignment
from boundlab.theory.team_learning.alignment_forms import TaskAlignment as TaskAlignment
from boundlab.theory.team_learning.alignment_forms import needle_alignment as needle_alignment
from boundlab.theory.team_learning.alignment_forms import order_q_alignment as order_q_alignment
from boundlab.theory.team_learning.alignment_forms import parity_alignment as parity_alignment
from boundlab.theory.team_learning.best_response import best_response_floor as best_response_floor
from boundlab.theory.team_learning.best_response import (
    information_class_sizes as information_class_sizes,
)
from boundlab.theory.team_learning.best_response import information_floor as information_floor
from boundlab.theory.team_learning.best_response import information_regret as information_regret
from boundlab.theory.team_learning.best_response import two_phase_samples as two_phase_samples
from boundlab.theory.team_learning.bounds import alignment_crossover as alignment_crossover
from boundlab.theory.team_learning.bounds import finite_class_samples as finite_class_samples
from boundlab.theory.team_learning.bounds import pac_samples as pac_samples
from boundlab.theory.team_learning.bounds import sequence_lipschitz as sequence_lipschitz
from boundlab.theory.team_learning.bounds import softmax_lipschitz as softmax_lipschitz
from boundlab.theory.team_learning.bounds import weighted_samples as weighted_samples
from boundlab.theory.team_learning.chain import attrition as attrition
from boundlab.theory.team_learning.chain import chain_amplification as chain_amplification
from boundlab.theory.team_learning.chain import chain_returns as chain_returns
from boundlab.theory.team_learning.chain import product_gap_terms as product_gap_terms
from boundlab.theory.team_learning.chain import (
    uniform_chain_amplification as uniform_chain_amplification,
)
from boundlab.theory.team_learning.crossover import budget_crossover as budget_crossover
from boundlab.theory.team_learning.discovery import coupon_samples as coupon_samples
from boundlab.theory.team_learning.discovery import coverage_mean as coverage_mean
from boundlab.theory.team_learning.discovery import coverage_probability as coverage_probability
from boundlab.theory.team_learning.discovery import discovery_failure as discovery_failure
from boundlab.theory.team_learning.gradients import gradient_speed_ratio as gradient_speed_ratio
from boundlab.theory.team_learning.gradients import hitting_time as hitting_time
from boundlab.theory.team_learning.gradients import initial_slope as initial_slope
from boundlab.theory.team_learning.gradients import (
    reinforce_second_moment as reinforce_second_moment,
)
from boundlab.theory.team_learning.gradients import (
    reinforce_signal_to_noise as reinforce_signal_to_noise,
)
from boundlab.theory.team_learning.known_results import bandit_samples as bandit_samples
from boundlab.theory.team_learning.known_results import equilibrium_episodes as equilibrium_episodes
from boundlab.theory.team_learning.known_results import generative_samples as generative_samples
from boundlab.theory.team_learning.known_results import logged_samples as logged_samples
from boundlab.theory.team_learning.regression import neglected_variance as neglected_variance
from boundlab.theory.team_learning.regression import noise_inflation as noise_inflation
from boundlab.theory.team_learning.regression import regression_crossover as regression_crossover
from boundlab.theory.team_learning.regression import regression_risk as regression_risk
from boundlab.theory.team_learning.regression import running_mean_weights as running_mean_weights
from boundlab.theory.team_learning.regression_accuracy import (
    accuracy_crossover as accuracy_crossover,
)
from boundlab.theory.team_learning.regression_accuracy import (
    chi_square_samples as chi_square_samples,
)
from boundlab.theory.team_learning.regression_accuracy import (
    dimension_ratio_limit as dimension_ratio_limit,
)
from boundlab.theory.team_learning.regression_accuracy import (
    regression_samples as regression_samples,
)
from boundlab.theory.team_learning.regret import team_failure as team_failure
from boundlab.theory.team_learning.regret import team_regret as team_regret
from boundlab.theory.team_learning.selection import bernoulli_selection as bernoulli_selection
from boundlab.theory.team_learning.selection import (
    selection_probabilities as selection_probabilities,
)
from boundlab.theory.team_learning.selection import slippage_failure as slippage_failure
from boundlab.theory.team_learning.selection import slippage_root as slippage_root
from boundlab.theory.team_learning.selection_bounds import SlippageBounds as SlippageBounds
from boundlab.theory.team_learning.selection_bounds import fano_lower as fano_lower
from boundlab.theory.team_learning.selection_bounds import pac_lower_bound as pac_lower_bound
from boundlab.theory.team_learning.selection_bounds import slippage_bounds as slippage_bounds
from boundlab.theory.team_learning.selection_bounds import union_upper as union_upper
from boundlab.theory.team_learning.spectra import needle_spectrum as needle_spectrum
from boundlab.theory.team_learning.spectra import order_q_spectrum as order_q_spectrum
from boundlab.theory.team_learning.spectra import parity_spectrum as parity_spectrum
from boundlab.theory.team_learning.spectra import reward_spectrum as reward_spectrum
from boundlab.theory.team_learning.staged import staged_failure as staged_failure
from boundlab.theory.team_learning.staged import staged_minimax_samples as staged_minimax_samples
from boundlab.theory.team_learning.staged import staged_union_samples as staged_union_samples
from boundlab.theory.team_learning.staged import staged_worst_gap as staged_worst_gap
from boundlab.theory.team_learning.symmetry import symmetric_parity_flow as symmetric_parity_flow
from boundlab.theory.team_learning.symmetry import (
    symmetric_parity_regret as symmetric_parity_regret,
)
from boundlab.theory.team_learning.symmetry import symmetric_trap_regret as symmetric_trap_regret
from boundlab.theory.team_learning.tokens import solved_fraction as solved_fraction
from boundlab.theory.team_learning.tokens import solving_trajectories as solving_trajectories
from boundlab.theory.team_learning.trajectories import (
    joint_trajectories_needed as joint_trajectories_needed,
)
from boundlab.theory.team_learning.trajectories import trajectories_needed as trajectories_needed
