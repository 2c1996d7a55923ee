"""The workloads of stormlet itself, and the limits that stand beside it."""
