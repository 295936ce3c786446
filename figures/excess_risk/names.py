"""Names of the operators, in every figure the same. L is depth, so the Laplacian is written D − A."""

OPERATORS = {
    "laplacian": "D − A + I",
    "normalized_adjacency": "(I + S)/2",
    "adjacency": "A + (ρ + 1) I",
    "personalized_pagerank": "PageRank",
}


def with_operator(case: str) -> str:
    """`case` with the kind of its operator replaced by the operator's name."""
    for kind in ("normalized_adjacency", "laplacian"):
        case = case.replace(kind, OPERATORS[kind])
    return case
