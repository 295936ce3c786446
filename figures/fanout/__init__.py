"""Full-graph against mini-batch training, through batch size and fan-out."""
