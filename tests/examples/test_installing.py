"""What the recipes say that is to be installed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

RECIPES = sorted((Path(__file__).parents[2] / "examples/recipes").glob("*.py"))


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.stem)
def test_a_recipe_names_what_its_commands_need(recipe: Path) -> None:
    """Whoever installs what it names can run it by the command line, which needs an extra of its own."""
    text, _, _ = recipe.read_text("utf-8").removeprefix('"""').partition('"""')
    for extras in re.findall(r"pip install 'stormlet\[(.*?)\]'", text):
        assert "python -m stormlet" not in text or "cli" in extras.split(",")
