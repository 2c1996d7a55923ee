"""Why a tree is still open, and what went wrong with it."""
