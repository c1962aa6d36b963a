"""Reports of gates, held against the schema that is published with the tool."""

import contextlib
import json
from pathlib import Path
from unittest import mock

import jsonschema

from convbench.gate import formats

SCHEMA = json.loads(Path(formats.__file__).with_name("report.schema.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def valid(content):
    """A report's content. Raises ValidationError where the schema does not allow it."""
    VALIDATOR.validate(content)
    return content


@contextlib.contextmanager
def all_valid():
    """Every report that this process makes is valid."""
    made = formats.as_json
    with mock.patch.object(formats, "as_json", lambda report: valid(made(report))):
        yield
