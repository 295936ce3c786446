"""Settings of the study of policy losses and its three presets."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Config:
    """What the study runs. Sizes and counts are static; all else is traced."""

    alignment_rewards: int = 48
    """Random rewards of the bandit on which learners are compared."""
    alignment_seeds: int = 24
    """Runs of the quadratic on which they are compared."""
    alignment_steps: int = 3000
    """Updates of each of these runs, more than 1,500 and a multiple of 50."""
    alignment_runs: int = 100
    """Random valleys on which the bound on projected descent is evaluated."""
    alignment_bound_steps: int = 400
    """Updates of such a run."""

    delays_simulated: tuple[int, ...] = (0, 1, 2, 4, 8, 16)
    """Delays, in updates, at which SGD is run; 0 and 1 must be among them."""
    delays_steps: int = 40_000
    """Updates of a run with noise, of which the first 1,000 aren't counted."""
    delays_seeds: int = 32
    """Runs with noise at each delay, of 64 modes each."""

    drift_seeds: int = 32
    """Random trees and old policies on which every loss runs its inner loop."""
    drift_steps: int = 500
    """Steps of gradient ascent in an inner loop, a multiple of 25."""
    drift_losses: int = 6
    """How many of the losses run: the first three have claims, the others are drawn beside them."""
    drift_trees: int = 24
    """Random trees at each bias of the end token on which gradients are compared."""
    drift_batches: int = 8192
    """Batches of sequences in which states are counted that are seen once."""

    gates_batches: int = 64
    """Random batches of log-ratios at each of the scales at which gates are differentiated."""
    gates_grid: int = 161
    """Points along each side of the maps of regimes."""

    region_processes: int = 600
    """Random decision processes, and policies, on which improvement bounds are evaluated."""
    region_trees: int = 80
    """Random trees of each number of steps from 1 to 5, likewise."""
    region_states: int = 10_000
    """Random samples of single states that are retracted to the region."""
    region_programs: int = 120
    """Trust-region steps that are solved by linear programs, too."""
    region_seeds: int = 256
    """Runs behind the simulated improvements."""
    region_episodes: int = 1280
    """Episodes of each run, under the old and the new policy."""

    losses_batches: int = 32
    """Random batches on which every loss is compared with the same written out."""

    language_updates: int = 0
    """Updates of policy optimisation of the language models; 0: none is trained."""
    language_losses: tuple[str, ...] = ("grpo", "gspo", "cispo", "fiberpo", "fiberpo_pessimistic")
    """Losses that are compared on it: those of the library, and variants that the part names."""
    language_delays: tuple[int, ...] = (0, 4, 16)
    """How many updates old the parameters are that draw the samples."""
    language_seeds: int = 8
    """Models of each loss and delay, with and without alignment control."""


PRESETS = {
    "smoke": Config(
        alignment_rewards=24,
        alignment_seeds=12,
        alignment_steps=2000,
        alignment_bound_steps=200,
        drift_seeds=24,
        drift_losses=3,
        drift_trees=6,
        drift_batches=2048,
        gates_batches=12,
        gates_grid=61,
        losses_batches=6,
        delays_simulated=(0, 1, 8),
        delays_steps=8000,
        delays_seeds=16,
        region_processes=200,
        region_trees=40,
        region_states=2000,
        region_programs=40,
        region_seeds=64,
        region_episodes=768,
    ),
    "quick": Config(),
    "paper": Config(
        alignment_rewards=256,
        alignment_seeds=96,
        alignment_steps=6000,
        alignment_runs=1000,
        alignment_bound_steps=2000,
        language_updates=200,
        drift_seeds=256,
        drift_trees=256,
        drift_batches=32_768,
        gates_batches=1024,
        gates_grid=401,
        losses_batches=512,
        delays_simulated=(0, 1, 2, 4, 8, 16, 32),
        delays_seeds=128,
        region_processes=10_000,
        region_trees=1000,
        region_states=100_000,
        region_programs=1000,
        region_seeds=512,
        region_episodes=4096,
    ),
}
