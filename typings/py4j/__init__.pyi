"""Spark's way to its JVM; it comes without types."""
