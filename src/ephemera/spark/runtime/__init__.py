"""This package has what all of Spark needs: Java, sessions, workers, and the exchange of messages."""
