"""This package holds columns, histories and the vectorised functions that engines are made of; it knows no clock."""
