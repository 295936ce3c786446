"""Score-based generation of graphs by systems of SDEs: exact laws, errors and bounds."""

from boundlab.theory.graph_diffusion.block_model import (
    sbm_information_density as sbm_information_density,
)
from boundlab.theory.graph_diffusion.block_model import sbm_joint_score as sbm_joint_score
from boundlab.theory.graph_diffusion.coupled_drift import (
    coupled_drift_bound as coupled_drift_bound,
)
from boundlab.theory.graph_diffusion.coupled_drift import (
    coupled_drift_covariance as coupled_drift_covariance,
)
from boundlab.theory.graph_diffusion.coupled_drift import (
    coupled_drift_reverse as coupled_drift_reverse,
)
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
from boundlab.theory.graph_diffusion.system_bounds import system_bound as system_bound
from boundlab.theory.graph_diffusion.system_bounds import (
    system_bound_with_score_error as system_bound_with_score_error,
)
from boundlab.theory.graph_diffusion.systems import block_fisher as block_fisher
from boundlab.theory.graph_diffusion.systems import (
    canonical_correlations as canonical_correlations,
)
from boundlab.theory.graph_diffusion.systems import conditional_modes as conditional_modes
from boundlab.theory.graph_diffusion.systems import covariance_kl as covariance_kl
from boundlab.theory.graph_diffusion.systems import joint_reverse as joint_reverse
from boundlab.theory.graph_diffusion.systems import mutual_information as mutual_information
from boundlab.theory.graph_diffusion.systems import noised_covariance as noised_covariance
