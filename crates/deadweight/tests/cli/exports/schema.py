"""Checks JSON against a JSON Schema.

usage: schema.py SCHEMA FILE...
"""

import json
import sys

import jsonschema

with open(sys.argv[1]) as file:
    schema = json.load(file)
validator = jsonschema.validators.validator_for(schema)(schema)
for name in sys.argv[2:]:
    with open(name) as file:
        validator.validate(json.load(file))
