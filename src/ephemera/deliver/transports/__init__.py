"""This package has the transports that are built in, each in a module of its own that loads what it needs when used."""
