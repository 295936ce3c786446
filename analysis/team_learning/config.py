"""Settings of the study of teams of agents and its three presets."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Config:
    """What the study runs. Sizes and counts are static; all else is traced."""

    bandit_agents: tuple[int, ...] = (1, 2, 3, 4, 6)
    """Team sizes K (agents of four actions) whose sample complexity is measured."""
    bandit_seeds: int = 96
    """Keys of each measurement of bandit feedback."""
    bandit_trials: int = 2048
    """Trials behind each measured sample complexity."""
    bandit_raw_trials: int = 192
    """Trials of a key in which trajectories are played one by one."""

    bounds_seeds: int = 128
    """Runs behind the rates of failure at exact sizes and bounds."""
    bounds_trials: int = 512
    """Trials of each of these runs, under full information."""
    bounds_discovery_trials: int = 256
    """Trials of each, in discovery without noise."""

    chain_seeds: int = 512
    """Runs of all that is simulated on chains, best response, contexts and tokens."""
    chain_trials: int = 512
    """Independent teams in each run."""

    coupling_weights: int = 65
    """Couplings from 0 to .8 of the regret curves and the phase diagram, 1 more than a multiple of 32."""
    coupling_seeds: int = 128
    """Keys of the simulated regrets."""
    coupling_trials: int = 512
    """Trials of a key, joint and own learners."""
    coupling_raw_trials: int = 64
    """Trials of a key in which trajectories are played one by one."""

    digits_samples: tuple[int, ...] = (80, 100, 140, 200, 280, 400)
    """Numbers of training examples n of the digits, from 51 to 401."""
    digits_seeds: int = 512
    """Shuffles of the digits into training and held-out images."""
    digits_pool: int = 512
    """Trainings on the digits whose rewards are the population of logged episodes."""
    digits_trials: int = 16384
    """Times that both learners choose model sizes from episodes of that population."""

    gradients_tensors: int = 24
    """Random rewards of each team size whose gradients at uniform policies are compared."""
    gradients_seeds: int = 256
    """Runs of REINFORCE, and of learners with noise on their first logits."""
    gradients_draws: int = 2048
    """Trajectories of each run of REINFORCE."""

    regression_seeds: int = 3072
    """Runs of the regression task; each draws weights and samples and fits all learners."""
    regression_pac_seeds: int = 320
    """Fixed designs of the regression task, behind its rates of failure."""
    regression_pac_trials: int = 128
    """Noises drawn on each design."""


PRESETS = {
    "smoke": Config(
        coupling_weights=33,
        coupling_seeds=64,
        coupling_trials=128,
        coupling_raw_trials=48,
        chain_seeds=128,
        chain_trials=256,
        bounds_seeds=64,
        bounds_trials=128,
        bounds_discovery_trials=32,
        bandit_agents=(2, 3),
        bandit_trials=256,
        bandit_raw_trials=128,
        gradients_seeds=128,
        gradients_draws=1024,
        digits_samples=(80, 140, 400),
        digits_seeds=64,
        digits_trials=2048,
        regression_seeds=128,
        regression_pac_seeds=64,
        regression_pac_trials=64,
    ),
    "quick": Config(),
    "paper": Config(
        coupling_weights=161,
        coupling_seeds=1024,
        coupling_trials=1024,
        coupling_raw_trials=128,
        chain_seeds=2048,
        bounds_seeds=1024,
        bounds_trials=1024,
        bounds_discovery_trials=256,
        bandit_agents=(1, 2, 3, 4, 6, 8),
        bandit_seeds=256,
        bandit_trials=4096,
        bandit_raw_trials=1024,
        gradients_tensors=96,
        gradients_seeds=2048,
        digits_samples=(60, 70, 80, 100, 120, 140, 170, 200, 240, 280, 340, 400),
        digits_seeds=2048,
        regression_seeds=8192,
        regression_pac_seeds=1024,
    ),
}
