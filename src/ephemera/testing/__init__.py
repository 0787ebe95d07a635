"""This package tests rules with pytest: stories are collected, and engines run on a time that only tests move.

pytest loads `ephemera.testing.plugin` wherever Ephemera is installed, so nothing here loads more than it needs.
"""
