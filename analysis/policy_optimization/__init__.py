"""The study of policy losses, trust regions and stale gradients: its parts, put together."""
