"""``python -m stormlet bench``: what a tuple costs, beside the same work without a framework, in one run."""
