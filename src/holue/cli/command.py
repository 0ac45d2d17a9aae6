"""Command: what all commands of holue do alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

from typer.core import TyperCommand, TyperGroup
from typer.main import get_command_from_info
from typer.models import CommandInfo

from holue.cli.inputs import check_inputs
from holue.cli.spelling import spelled
from holue.cli.warned import plain_warnings
from holue.errors import HolueError


class Command(TyperCommand):
    """A command whose help shows no type beside a flag, since a flag takes no value; its errors and warnings name its options.

    It never writes over its input.
    """

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, flags without a type."""
        return with_bare_flags(super().get_params(ctx))

    def invoke(self, ctx: Any) -> Any:
        """Run; an error of the library names the options of this command."""
        try:
            check_inputs(ctx.params)
            with plain_warnings(self):
                return super().invoke(ctx)
        except HolueError as error:
            error.args = (spelled(str(error), self), *error.args[1:])
            raise


class CommandGroup(TyperGroup):
    """All commands together, under the same rules."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, flags without a type."""
        return with_bare_flags(super().get_params(ctx))


def with_bare_flags(parameters: list[Any]) -> list[Any]:
    """The same parameters; an empty metavar keeps typer from writing ``<bool>`` beside flags, and beside ``--help``."""
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return parameters


class LazyGroup(CommandGroup):
    """A group that imports the module of a command only when that command is asked for.

    ``lazy`` names the commands, in the order of the help: each with its module, which holds a function of the same name, the
    class of the command and the panel of the help.
    """

    lazy: ClassVar[Mapping[str, LazyCommand]] = {}

    def list_commands(self, ctx: Any) -> list[str]:
        """All names."""
        return list(self.lazy)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of this name, imported now."""
        found = self.lazy.get(cmd_name)
        return None if found is None else found.command(cmd_name)

    @property
    def commands(self) -> dict[str, Any]:
        """Every command, all imported."""
        return {name: one.command(name) for name, one in self.lazy.items()}

    @commands.setter
    def commands(self, given: Mapping[str, Any]) -> None:
        """There is no other command than the lazy ones."""


@dataclass(frozen=True)
class LazyCommand:
    """Where a command is: its module under ``holue.cli.commands``, its class, and its panel in the help."""

    module: str
    panel: str | None = None
    cls: type[Command] = Command

    def command(self, name: str) -> Any:
        """Import the module and build the command."""
        function = getattr(import_module(f"holue.cli.commands.{self.module}"), name.replace("-", "_"))
        info = CommandInfo(name=name, callback=function, cls=self.cls, rich_help_panel=self.panel)
        return get_command_from_info(info, pretty_exceptions_short=True, rich_markup_mode="markdown")
