"""This package shows that engines answer what the oracle answers."""
