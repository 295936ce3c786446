"""Score-based generation of graphs by systems of SDEs: exact laws, errors and bounds."""
