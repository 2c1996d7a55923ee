"""Deterministic simulation: the real engine, disturbed in ways that a seed decides, and judged by a witness."""
