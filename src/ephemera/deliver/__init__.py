"""This package delivers messages: an outbox that outlives a crash, a sender behind it, and transports."""
