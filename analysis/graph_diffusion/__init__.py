"""The study of coupled-SDE graph diffusion: its parts, put together."""
