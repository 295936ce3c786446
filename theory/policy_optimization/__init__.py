"""Trust regions, improvement bounds, gate Jacobians, stale gradients: closed forms."""

from boundlab.theory.policy_optimization.alignment import EntropicOptimum as EntropicOptimum
from boundlab.theory.policy_optimization.alignment import bandit_step_limit as bandit_step_limit
from boundlab.theory.policy_optimization.alignment import drift_length as drift_length
from boundlab.theory.policy_optimization.alignment import entropic_optimum as entropic_optimum
from boundlab.theory.policy_optimization.alignment import kept_share as kept_share
from boundlab.theory.policy_optimization.alignment import projected_cosine as projected_cosine
from boundlab.theory.policy_optimization.alignment import projected_norm as projected_norm
from boundlab.theory.policy_optimization.alignment import projection_bound as projection_bound
from boundlab.theory.policy_optimization.alignment import (
    stale_policy_gradient as stale_policy_gradient,
)
from boundlab.theory.policy_optimization.improvement import achiam_bound as achiam_bound
from boundlab.theory.policy_optimization.improvement import (
    improvement_bound_discounted as improvement_bound_discounted,
)
from boundlab.theory.policy_optimization.improvement import (
    improvement_bound_finite as improvement_bound_finite,
)
from boundlab.theory.policy_optimization.improvement import (
    kakade_langford_bound as kakade_langford_bound,
)
from boundlab.theory.policy_optimization.jacobian import GateBounds as GateBounds
from boundlab.theory.policy_optimization.jacobian import censored_aggregate as censored_aggregate
from boundlab.theory.policy_optimization.jacobian import fiber_gradient as fiber_gradient
from boundlab.theory.policy_optimization.jacobian import fiber_jacobian as fiber_jacobian
from boundlab.theory.policy_optimization.jacobian import fiber_log_gate as fiber_log_gate
from boundlab.theory.policy_optimization.jacobian import gate_bounds as gate_bounds
from boundlab.theory.policy_optimization.jacobian import gate_lipschitz as gate_lipschitz
from boundlab.theory.policy_optimization.jacobian import hierarchy_bounds as hierarchy_bounds
from boundlab.theory.policy_optimization.jacobian import identity_box as identity_box
from boundlab.theory.policy_optimization.lengths import (
    expected_single_visits as expected_single_visits,
)
from boundlab.theory.policy_optimization.lengths import (
    length_weighted_gradient as length_weighted_gradient,
)
from boundlab.theory.policy_optimization.objectives import loss_gradient as loss_gradient
from boundlab.theory.policy_optimization.objectives import surrogate_loss as surrogate_loss
from boundlab.theory.policy_optimization.on_policy import on_policy_gradient as on_policy_gradient
from boundlab.theory.policy_optimization.on_policy import token_weights as token_weights
from boundlab.theory.policy_optimization.staleness import autocovariance as autocovariance
from boundlab.theory.policy_optimization.staleness import delayed_sgd_limit as delayed_sgd_limit
from boundlab.theory.policy_optimization.staleness import (
    gradient_autocorrelation as gradient_autocorrelation,
)
from boundlab.theory.policy_optimization.staleness import (
    gradient_second_moment as gradient_second_moment,
)
from boundlab.theory.policy_optimization.staleness import mixture_cosine as mixture_cosine
from boundlab.theory.policy_optimization.staleness import oscillation_limit as oscillation_limit
from boundlab.theory.policy_optimization.staleness import parameter_variance as parameter_variance
from boundlab.theory.policy_optimization.trust_region import TrustRegionStep as TrustRegionStep
from boundlab.theory.policy_optimization.trust_region import apc_gate as apc_gate
from boundlab.theory.policy_optimization.trust_region import apc_objective as apc_objective
from boundlab.theory.policy_optimization.trust_region import guaranteed_gain as guaranteed_gain
from boundlab.theory.policy_optimization.trust_region import (
    guaranteed_gain_finite as guaranteed_gain_finite,
)
from boundlab.theory.policy_optimization.trust_region import retraction as retraction
from boundlab.theory.policy_optimization.trust_region import (
    trust_region_radius as trust_region_radius,
)
from boundlab.theory.policy_optimization.trust_region import (
    trust_region_radius_finite as trust_region_radius_finite,
)
from boundlab.theory.policy_optimization.trust_region import tv_trpo_step as tv_trpo_step
