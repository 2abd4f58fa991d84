# SPDX-License-Identifier: MIT
"""The suites' client with checks for these tests alone: every JSON response is validated against openapi.json, and
refusals against their problem."""

import functools
import json
import re
from dataclasses import dataclass, field
from urllib.parse import unquote

from ipclabtest import PATIENCE_SECONDS
from ipclabtest import client as shared
from ipclabtest.client import Events, parse_raw, read_all
from jsonschema_rs import Draft202012Validator

__all__ = ["PATIENCE_SECONDS", "Client", "Events", "check_problem", "description_of", "parse_raw", "read_all"]

PROBLEM_TYPE = "urn:ipclab:problem:"


class Description(dict):
    """openapi.json, and a validator for each of its schemas that has been asked for: to make one takes longer than an
    answer's check."""

    def __init__(self, text):
        super().__init__(json.loads(text))
        self.validators = {}

    def validate(self, schema, value):
        key = json.dumps(schema)
        if key not in self.validators:
            self.validators[key] = Draft202012Validator({**schema, "components": self["components"]})
        self.validators[key].validate(value)


# It is the same for the daemons of one build.
description_of = functools.lru_cache(Description)


@dataclass
class Client(shared.Client):
    openapi: dict = field(default_factory=dict)

    def refused(self, method, target, status, slug, body=None, headers=None):
        """Asks for what must be refused with exactly this problem, and returns the problem."""
        answer = self.request(method, target, body, headers)
        check_problem(answer, status, slug)
        return answer.json | {"headers": answer.headers}

    def check_shape(self, method, target, answer):
        if not self.openapi:
            return
        if answer.headers["Content-Type"] == "application/problem+json":
            schema = {"$ref": "#/components/schemas/Problem"}
        else:
            path = re.sub(r"/\d+(?=/|$)", "/{id}", unquote(target.split("?")[0]))
            path = re.sub(r"^/baselines/[^/]+", "/baselines/{name}", path)
            operation = self.openapi["paths"][path][{"HEAD": "get"}.get(method, method.lower())]
            schema = operation["responses"][str(answer.status)]["content"]["application/json"]["schema"]
        self.validate(schema, answer.json)

    def validate(self, schema, value):
        self.openapi.validate(schema, value)


def check_problem(answer, status, slug):
    assert answer.status == status, answer
    assert answer.headers["Content-Type"] == "application/problem+json", answer
    assert answer.json["status"] == status
    assert answer.json["type"] == PROBLEM_TYPE + slug, answer
    assert answer.json["detail"] and answer.json["title"]
