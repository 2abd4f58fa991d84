# SPDX-License-Identifier: MIT
"""The figures of a row of results, as the daemon describes them in openapi.json (components.schemas.ResultFigures)."""

import typing


class Figure(typing.NamedTuple):
    group: str | None  # the member of a row that has it; None: the row itself
    name: str
    title: str
    unit: str
    usual: bool  # shown by default

    def of(self, row):
        """Its median in that row; None where there is none."""
        holder = row if self.group is None else row.get(self.group) or {}
        return median(holder.get(self.name))


def median(value):
    return value.get("median") if isinstance(value, dict) else value


def figures_of(openapi):
    """The figures, in the order of the daemon's table."""
    found = []
    for name, schema in openapi["components"]["schemas"]["ResultFigures"]["properties"].items():
        members = {name: schema} if "x-unit" in schema else schema["properties"]
        group = None if "x-unit" in schema else name
        found += [
            Figure(group, member, one["title"], one["x-unit"], one["x-usual"])
            for member, one in members.items()
            if "x-unit" in one
        ]
    return found
