"""qgen: a durable queue worker, generated from a short description."""

__version__ = "0.1.0"
