"""Connections to brokers: sockets, TLS, SASL, tokens, and the choice of the broker that is asked."""
