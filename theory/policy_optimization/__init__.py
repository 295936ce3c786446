"""Trust regions, improvement bounds, gate Jacobians, stale gradients: closed forms."""
