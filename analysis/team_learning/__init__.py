"""The study of teams of agents: its parts, put together, and its adviser."""
