"""Sample complexity of one agent and of teams of agents: exact laws, bounds and crossovers."""
