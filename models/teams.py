"""Tasks of teams of agents, learners and simulators on them: the public names in one place."""

from boundlab.models.team_regression import coupling_matrix as coupling_matrix
from boundlab.models.team_regression import (
    simulate_coupled_regression as simulate_coupled_regression,
)
from boundlab.models.team_regression import simulate_fixed_design as simulate_fixed_design
from boundlab.models.team_regression import simulate_regression as simulate_regression
