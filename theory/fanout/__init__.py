"""Full-graph against mini-batch training, through batch size and fan-out."""

from boundlab.theory.fanout.block_degrees import BlockDegreeLaw, block_degree_law
from boundlab.theory.fanout.cost import training_flops
from boundlab.theory.fanout.discrepancy import WassersteinDelta, wasserstein_delta
from boundlab.theory.fanout.moments import (
    Moments,
    average_covariances,
    neighbor_mean_moments,
    row_distance,
    two_hop_variance,
)
from boundlab.theory.fanout.noise import (
    GradientCovariance,
    GradientNoise,
    gradient_covariance,
    gradient_noise,
    noise_floor,
)
from boundlab.theory.fanout.order_statistics import expected_maximum
from boundlab.theory.fanout.pac_bayes import pac_bayes_bound
from boundlab.theory.fanout.population import (
    PopulationTrajectory,
    population_gradient_descent,
    population_loss,
)
from boundlab.theory.fanout.published_rates import (
    Elasticities,
    paper_elasticities,
    paper_iterations_ce,
    paper_iterations_mse,
)
from boundlab.theory.fanout.ridge import ImplicitRidge, implicit_ridge, mean_iterate
from boundlab.theory.fanout.sampled_loss import (
    LossMoments,
    batch_loss_std,
    cross_entropy_gap,
    sampled_loss_moments,
)
from boundlab.theory.fanout.stopping import HittingTime, hitting_time
from boundlab.theory.fanout.touched import (
    expected_touched_nodes,
    touched_layers,
    touched_nodes,
    touched_regular,
)
from boundlab.theory.fanout.trivial_losses import (
    explained_share,
    relu_binary_cross_entropy_floor,
    zero_predictor_loss,
)
from boundlab.theory.fanout.wasserstein import gaussian_w2

__all__ = [
    "BlockDegreeLaw",
    "Elasticities",
    "GradientCovariance",
    "GradientNoise",
    "HittingTime",
    "ImplicitRidge",
    "LossMoments",
    "Moments",
    "PopulationTrajectory",
    "WassersteinDelta",
    "average_covariances",
    "batch_loss_std",
    "block_degree_law",
    "cross_entropy_gap",
    "expected_maximum",
    "expected_touched_nodes",
    "explained_share",
    "gaussian_w2",
    "gradient_covariance",
    "gradient_noise",
    "hitting_time",
    "implicit_ridge",
    "mean_iterate",
    "neighbor_mean_moments",
    "noise_floor",
    "pac_bayes_bound",
    "paper_elasticities",
    "paper_iterations_ce",
    "paper_iterations_mse",
    "population_gradient_descent",
    "population_loss",
    "relu_binary_cross_entropy_floor",
    "row_distance",
    "sampled_loss_moments",
    "touched_layers",
    "touched_nodes",
    "touched_regular",
    "training_flops",
    "two_hop_variance",
    "wasserstein_delta",
    "zero_predictor_loss",
]
