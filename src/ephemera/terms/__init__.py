"""This package holds data terms: values, matching of query terms, construction of new terms, XML and JSON."""
