"""The API reference: a page made from the OpenAPI description, so that it cannot fall behind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

INTRODUCTION = """# API of the service

Made from the service's own description (`/openapi.json`). [Run the service](service.md) shows how to begin. Every request but
`/livez` and `/readyz` needs a key. Any route may answer with a [problem](#problem)."""


def api_reference(description: Mapping[str, Any]) -> str:
    """Every route with its parameters and bodies, and every schema with its fields, as Markdown."""
    parts = [INTRODUCTION, "## Routes"]
    for path, operations in description["paths"].items():
        parts += [_route(method, path, operation) for method, operation in operations.items()]
    parts.append("## Bodies and answers")
    parts += [_schema(name, schema) for name, schema in sorted(description["components"]["schemas"].items())]
    return "\n\n".join(parts) + "\n"


def _route(method: str, path: str, operation: Mapping[str, Any]) -> str:
    lines = [f"### `{method.upper()} {path}`", operation["description"]]
    rows = [(f"`{each['name']}` ({each['in']})", each["description"]) for each in operation.get("parameters", [])]
    rows += [("body", " or ".join(_content(operation["requestBody"])))] if "requestBody" in operation else []
    for status, answer in operation["responses"].items():
        if int(status) < 300:
            rows.append((f"{status}", " or ".join(_content(answer)) or answer.get("description", "")))
    return "\n\n".join([*lines, _table(rows)])


def _content(body: Mapping[str, Any]) -> Iterator[str]:
    for kind, about in body.get("content", {}).items():
        named = _type(about.get("schema", {}))
        yield named if kind == "application/json" else f"`{kind}`"


def _schema(name: str, schema: Mapping[str, Any]) -> str:
    required = schema.get("required", [])
    rows = [
        (
            f"`{field}`",
            f"{_type(about)}{'' if field in required else ', optional'}. {about.get('description', '')}".strip(),
        )
        for field, about in schema.get("properties", {}).items()
    ]
    return "\n\n".join([f"### {name}", schema.get("description", ""), _table(rows)])


def _type(about: Mapping[str, Any]) -> str:
    """A type in words, with a link where it is a schema of its own.

    >>> _type({"type": "array", "items": {"type": "integer"}}), _type({"$ref": "#/components/schemas/Problem"})
    ('array of integer', '[Problem](#problem)')
    """
    if "$ref" in about:
        name = about["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "enum" in about:
        return " or ".join(f"`{each}`" for each in about["enum"])
    if "const" in about:
        return f"`{about['const']}`"
    for key in ("anyOf", "allOf", "oneOf"):
        if key in about:
            return " or ".join(dict.fromkeys(_type(each) for each in about[key]))
    if about.get("type") == "array":
        return f"array of {_type(about.get('items', {}))}"
    return str(about.get("type", "anything"))


def _table(rows: list[tuple[str, str]]) -> str:
    cells = [(left, " ".join(right.split()).replace("|", "\\|")) for left, right in rows]
    return "\n".join(["| | |", "|---|---|", *(f"| {left} | {right} |" for left, right in cells)]) if cells else ""
