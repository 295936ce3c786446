"""One-round linear graph neural network: SGD and ridge on aggregated Gaussian signals.

A sample is a whole signal on the n nodes, aggregated by a graph operator, m = Gx with x ~ N(0, I),
so that M = E[mmᵀ] = GGᵀ; its label is mᵀθ* + ε, or ReLU(mᵀθ*) + ε. Each function draws one run
from one key and evaluates its risk in closed form; `boundlab.sweep` repeats it.
"""

from boundlab.models.linear_gnn_ridge import RiskProfile, simulate_relu_ridge, simulate_ridge
from boundlab.models.linear_gnn_sgd import simulate_sgd

__all__ = ["RiskProfile", "simulate_relu_ridge", "simulate_ridge", "simulate_sgd"]
