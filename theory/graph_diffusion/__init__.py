"""Score-based generation of graphs by systems of SDEs: exact laws, errors and bounds."""

from boundlab.theory.graph_diffusion.block_model import (
    sbm_information_density as sbm_information_density,
)
from boundlab.theory.graph_diffusion.block_model import sbm_joint_score as sbm_joint_score
from boundlab.theory.graph_diffusion.bounds import bound_benton_shape as bound_benton_shape
from boundlab.theory.graph_diffusion.bounds import bound_chen_shape as bound_chen_shape
from boundlab.theory.graph_diffusion.bounds import bound_entropy_fisher as bound_entropy_fisher
from boundlab.theory.graph_diffusion.bounds import bound_lipschitz as bound_lipschitz
from boundlab.theory.graph_diffusion.coupled_drift import (
    coupled_drift_bound as coupled_drift_bound,
)
from boundlab.theory.graph_diffusion.coupled_drift import (
    coupled_drift_covariance as coupled_drift_covariance,
)
from boundlab.theory.graph_diffusion.coupled_drift import (
    coupled_drift_reverse as coupled_drift_reverse,
)
from boundlab.theory.graph_diffusion.discretization import discretization_ei as discretization_ei
from boundlab.theory.graph_diffusion.discretization import discretization_em as discretization_em
from boundlab.theory.graph_diffusion.discretization import (
    discretization_with_score_error as discretization_with_score_error,
)
from boundlab.theory.graph_diffusion.discretization import (
    integrated_squared_precision as integrated_squared_precision,
)
from boundlab.theory.graph_diffusion.divergences import bretagnolle_huber as bretagnolle_huber
from boundlab.theory.graph_diffusion.divergences import gaussian_kl as gaussian_kl
from boundlab.theory.graph_diffusion.divergences import gaussian_w2 as gaussian_w2
from boundlab.theory.graph_diffusion.divergences import pinsker as pinsker
from boundlab.theory.graph_diffusion.divergences import w2_early_stop as w2_early_stop
from boundlab.theory.graph_diffusion.edge_density import (
    edge_sampling_errors as edge_sampling_errors,
)
from boundlab.theory.graph_diffusion.edge_density import (
    propagate_edge_density as propagate_edge_density,
)
from boundlab.theory.graph_diffusion.edge_starts import edge_chi_squared as edge_chi_squared
from boundlab.theory.graph_diffusion.edge_starts import (
    edge_initialization_kl as edge_initialization_kl,
)
from boundlab.theory.graph_diffusion.edge_starts import (
    edge_probability_after_sampling as edge_probability_after_sampling,
)
from boundlab.theory.graph_diffusion.edges import bernoulli_graph_totals as bernoulli_graph_totals
from boundlab.theory.graph_diffusion.edges import edge_entropy as edge_entropy
from boundlab.theory.graph_diffusion.edges import edge_fisher as edge_fisher
from boundlab.theory.graph_diffusion.edges import edge_log_density as edge_log_density
from boundlab.theory.graph_diffusion.edges import edge_mmse as edge_mmse
from boundlab.theory.graph_diffusion.edges import edge_posterior as edge_posterior
from boundlab.theory.graph_diffusion.edges import edge_score as edge_score
from boundlab.theory.graph_diffusion.graph_benchmarks import expected_distinct as expected_distinct
from boundlab.theory.graph_diffusion.graph_benchmarks import (
    expected_duplicates as expected_duplicates,
)
from boundlab.theory.graph_diffusion.graph_benchmarks import (
    expected_mmd_squared as expected_mmd_squared,
)
from boundlab.theory.graph_diffusion.graph_benchmarks import (
    shared_community_law as shared_community_law,
)
from boundlab.theory.graph_diffusion.grids import time_grid as time_grid
from boundlab.theory.graph_diffusion.horizon import optimal_horizon as optimal_horizon
from boundlab.theory.graph_diffusion.initialization import (
    discrete_hermite_moments as discrete_hermite_moments,
)
from boundlab.theory.graph_diffusion.initialization import (
    initialization_chi2 as initialization_chi2,
)
from boundlab.theory.graph_diffusion.initialization import initialization_kl as initialization_kl
from boundlab.theory.graph_diffusion.initialization import (
    initialization_kl_universal as initialization_kl_universal,
)
from boundlab.theory.graph_diffusion.linear_scores import block_mmse as block_mmse
from boundlab.theory.graph_diffusion.linear_scores import linear_score_error as linear_score_error
from boundlab.theory.graph_diffusion.linear_scores import (
    linear_score_reverse as linear_score_reverse,
)
from boundlab.theory.graph_diffusion.schemes import noised_variance as noised_variance
from boundlab.theory.graph_diffusion.schemes import (
    probability_flow_variance as probability_flow_variance,
)
from boundlab.theory.graph_diffusion.schemes import reverse_moments as reverse_moments
from boundlab.theory.graph_diffusion.schemes import reverse_sde_variance as reverse_sde_variance
from boundlab.theory.graph_diffusion.schemes import step_coefficients as step_coefficients
from boundlab.theory.graph_diffusion.spectrum import (
    aggregation_frobenius as aggregation_frobenius,
)
from boundlab.theory.graph_diffusion.spectrum import aggregation_matrix as aggregation_matrix
from boundlab.theory.graph_diffusion.spectrum import feature_spectrum as feature_spectrum
from boundlab.theory.graph_diffusion.spectrum import score_lipschitz as score_lipschitz
from boundlab.theory.graph_diffusion.spectrum import star_row_norm as star_row_norm
from boundlab.theory.graph_diffusion.system_bounds import system_bound as system_bound
from boundlab.theory.graph_diffusion.system_bounds import (
    system_bound_with_score_error as system_bound_with_score_error,
)
from boundlab.theory.graph_diffusion.systems import block_fisher as block_fisher
from boundlab.theory.graph_diffusion.systems import (
    canonical_correlations as canonical_correlations,
)
from boundlab.theory.graph_diffusion.systems import covariance_kl as covariance_kl
from boundlab.theory.graph_diffusion.systems import joint_reverse as joint_reverse
from boundlab.theory.graph_diffusion.systems import mutual_information as mutual_information
from boundlab.theory.graph_diffusion.systems import noised_covariance as noised_covariance
from boundlab.theory.graph_diffusion.systems import two_stage_reverse as two_stage_reverse
from boundlab.theory.graph_diffusion.training_loss import dsm_floor as dsm_floor
from boundlab.theory.graph_diffusion.training_loss import (
    score_error_from_loss as score_error_from_loss,
)
