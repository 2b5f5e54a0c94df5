"""Reads an OpenAPI document as JSON and prints, as a JSON list, what is wrong with it."""

import json
import sys

from openapi_spec_validator import OpenAPIV30SpecValidator

found = OpenAPIV30SpecValidator(json.load(sys.stdin)).iter_errors()
print(json.dumps([f"{'/'.join(str(step) for step in error.path)}: {error.message}" for error in found]))
