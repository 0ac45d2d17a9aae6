"""Spelling: the settings that a message of the library names, written as the options of a command."""

from __future__ import annotations

import re
from typing import Any

OPTIONS = {
    "by_group": "groups",
    "confidence_level": "confidence",
    "n_resamples": "resamples",
    "target_fpir": "fpir",
    "target_level": "target",
}
"""Settings that commands call by a shorter name; a command that has an option of the full name keeps it."""

PHRASES = {
    "use add_samples or replace": ("add", "replace"),
    "bring development probes with calibrate(X_dev, y_dev, gallery=...)": ("probes",),
}
"""Advice in the library's verbs; given as options by a command that has them."""

COMMANDS = {"make a new one with create=True": "make a new one with holue create"}
"""Advice in the library's verbs that is another command."""

# A name with or without a value; not inside a path, and not quoted as a key of a file is.
_SETTING = re.compile(
    r"""(?<![\w./\\'"-]) (?P<name>[a-z]\w*) (?: = (?: '(?P<word>[^']*)' | (?P<number>[\w.+-]*\w) )? )? (?![\w/\\'"-]|\.\w)""",
    re.VERBOSE,
)


def spelled(text: str, command: Any) -> str:
    """The text with ``raise target_level`` as ``raise --target``, and ``method='galue'`` as ``--method galue``.

    Only where the command has the option; and a single word without a value, such as *method*, may be plain English and stays.
    """
    options = {parameter.name: parameter.opts[0] for parameter in command.params if parameter.opts[0].startswith("--")}
    options |= {name: options[option] for name, option in OPTIONS.items() if option in options and name not in options}

    for phrase, names in PHRASES.items():
        if all(name in options for name in names):
            text = text.replace(phrase, f"give {' or '.join(options[name] for name in names)}")
    for phrase, named in COMMANDS.items():
        text = text.replace(phrase, named)
    flags = {parameter.name for parameter in command.params if getattr(parameter, "is_flag", False)}

    def option(found: re.Match[str]) -> str:
        name = found["name"]
        if name not in options or ("_" not in name and "=" not in found[0]):
            return found[0]
        value = None if name in flags else found["word"] or found["number"]
        return options[name] if value is None else f"{options[name]} {value}"

    return _SETTING.sub(option, text)
