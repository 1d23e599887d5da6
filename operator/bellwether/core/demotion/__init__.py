"""Decide which brokers may not lead, and when and how fast demoted brokers get their leaders back."""
