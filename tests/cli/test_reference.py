import os
from pathlib import Path

from holue.cli.app import app
from holue.cli.reference import command_reference

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"


def test_the_reference_page_is_what_the_commands_say() -> None:
    made = command_reference(app)
    if os.environ.get("HOLUE_UPDATE_DOCS"):
        PAGE.write_text(made, "utf-8")
    assert PAGE.read_text("utf-8") == made, "run HOLUE_UPDATE_DOCS=1 pytest tests/cli/test_reference.py"
