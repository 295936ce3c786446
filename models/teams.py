"""Tasks of teams of agents, learners and simulators on them: the public names in one place."""

from boundlab.models.digit_rewards import digit_rewards as digit_rewards
from boundlab.models.digit_tasks import DigitRisks as DigitRisks
from boundlab.models.digit_tasks import DigitTask as DigitTask
from boundlab.models.digit_tasks import digit_risks as digit_risks
from boundlab.models.digit_tasks import digit_task as digit_task
from boundlab.models.digit_tasks import incoming_carries as incoming_carries
from boundlab.models.sample_complexity import SampleComplexity as SampleComplexity
from boundlab.models.sample_complexity import binomial_interval as binomial_interval
from boundlab.models.sample_complexity import (
    empirical_sample_complexity as empirical_sample_complexity,
)
from boundlab.models.team_chain import ChainLearners as ChainLearners
from boundlab.models.team_chain import ChainRollouts as ChainRollouts
from boundlab.models.team_chain import ChainTask as ChainTask
from boundlab.models.team_chain import chain_losses as chain_losses
from boundlab.models.team_chain import simulate_chain as simulate_chain
from boundlab.models.team_chain import simulate_on_policy as simulate_on_policy
from boundlab.models.team_chain import simulate_staged as simulate_staged
from boundlab.models.team_discovery import DiscoveryTimes as DiscoveryTimes
from boundlab.models.team_discovery import simulate_discovery as simulate_discovery
from boundlab.models.team_policy_gradient import LearningPath as LearningPath
from boundlab.models.team_policy_gradient import expected_reward as expected_reward
from boundlab.models.team_policy_gradient import gradient_flow as gradient_flow
from boundlab.models.team_policy_gradient import initial_logits as initial_logits
from boundlab.models.team_policy_gradient import policy_gradient as policy_gradient
from boundlab.models.team_policy_gradient import reinforce as reinforce
from boundlab.models.team_policy_gradient import reinforce_gradient as reinforce_gradient
from boundlab.models.team_regression import coupling_matrix as coupling_matrix
from boundlab.models.team_regression import (
    simulate_coupled_regression as simulate_coupled_regression,
)
from boundlab.models.team_regression import simulate_fixed_design as simulate_fixed_design
from boundlab.models.team_regression import simulate_learners as simulate_learners
from boundlab.models.team_regression import simulate_regression as simulate_regression
from boundlab.models.team_search import InformationRegret as InformationRegret
from boundlab.models.team_search import SearchRuns as SearchRuns
from boundlab.models.team_search import simulate_best_response as simulate_best_response
from boundlab.models.team_search import simulate_information as simulate_information
from boundlab.models.team_search import simulate_two_phases as simulate_two_phases
from boundlab.models.team_simulation import FullInformation as FullInformation
from boundlab.models.team_simulation import simulate_full_information as simulate_full_information
from boundlab.models.team_simulation import simulate_regret as simulate_regret
from boundlab.models.team_tasks import NeedleTask as NeedleTask
from boundlab.models.team_tasks import OrderTask as OrderTask
from boundlab.models.team_tasks import ParityTask as ParityTask
from boundlab.models.team_tasks import marginal_rewards as marginal_rewards
from boundlab.models.team_tasks import own_rewards as own_rewards
from boundlab.models.team_tasks import reward_groups as reward_groups
from boundlab.models.team_tasks import reward_tensor as reward_tensor
from boundlab.models.team_tasks import team_reward as team_reward
from boundlab.models.token_policies import text_laws as text_laws
from boundlab.models.token_policies import token_features as token_features
from boundlab.models.token_policies import total_variation as total_variation
from boundlab.models.token_tasks import Solved as Solved
from boundlab.models.token_tasks import TokenTask as TokenTask
from boundlab.models.token_tasks import explore_tokens as explore_tokens
