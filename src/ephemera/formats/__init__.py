"""This package reads events from, and writes answers to, what stands in files and messages: JSON, CSV, XML, Arrow."""
