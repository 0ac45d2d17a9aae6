"""Command: what all commands of holue do alike."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperGroup

from holue.cli.inputs import check_inputs
from holue.cli.spelling import spelled
from holue.errors import HolueError


class Command(TyperCommand):
    """A command whose help shows no type beside a flag, since a flag takes no value, and whose errors name its options.

    It never writes over its input.
    """

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, flags without a type."""
        return with_bare_flags(super().get_params(ctx))

    def invoke(self, ctx: Any) -> Any:
        """Run; an error of the library names the options of this command."""
        try:
            check_inputs(ctx.params)
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
