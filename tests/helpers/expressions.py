"""GitHub's expressions, as far as our workflows and actions use them; any other expression fails the test.

https://docs.github.com/en/actions/reference/workflows-and-actions/expressions
"""

import json
import math
import re

TOKEN = re.compile(r"\s*(?:('(?:[^']|'')*')|(\d+(?:\.\d+)?)|([A-Za-z_][\w-]*)|(==|!=|&&|\|\||[!().,*\[\]]))")
LITERALS = {"true": True, "false": False, "null": None}
PLACE = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)


class Unknown(Exception):
    """An expression that is not known here."""


class Known(dict):
    """A context in which a name that is not there is a mistake, and not null as in what an event brings along."""


def text(value):
    """A value where a string is needed."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (str, int, float)):
        return str(value)
    raise Unknown(f"{value!r} as a string")


def filled(template, contexts, functions):
    """A template with its expressions evaluated; of one that is an expression alone, the value."""
    if not isinstance(template, str):
        return template
    if (found := PLACE.fullmatch(template.strip())) and template.count("${{") == 1:
        return evaluate(found[1], contexts, functions)
    return PLACE.sub(lambda found: text(evaluate(found[1], contexts, functions)), template)


def condition(expression, contexts, functions):
    """Whether an `if` holds; without a function of the status it also needs success()."""
    value = evaluate(found[1] if (found := PLACE.fullmatch(expression.strip())) else expression, contexts, functions)
    asks = re.search(r"\b(always|success|failure|cancelled)\(", expression)
    return bool(value and not _is_nan(value)) and (bool(asks) or functions["success"]())


def evaluate(expression, contexts, functions):
    """The value of an expression. Raises Unknown."""
    tokens, place = [], 0
    while expression[place:].strip():
        found = TOKEN.match(expression, place)
        if not found:
            raise Unknown(expression)
        tokens.append(found)
        place = found.end()
    parser = _Parser(tokens, contexts, functions)
    value = parser.either()
    if parser.tokens:
        raise Unknown(expression)
    return value


class _Parser:
    def __init__(self, tokens, contexts, functions):
        self.tokens, self.contexts, self.functions = tokens, contexts, functions | FUNCTIONS

    def take(self, *signs):
        if self.tokens and self.tokens[0][4] in signs:
            return self.tokens.pop(0)[4]
        return None

    def need(self, sign):
        if not self.take(sign):
            raise Unknown(f"{sign} is missing")

    def either(self):
        value = self.both()
        while self.take("||"):
            other = self.both()
            value = value or other
        return value

    def both(self):
        value = self.equality()
        while self.take("&&"):
            other = self.equality()
            value = value and other
        return value

    def equality(self):
        value = self.negation()
        while sign := self.take("==", "!="):
            value = _equal(value, self.negation()) == (sign == "==")
        return value

    def negation(self):
        return not self.negation() if self.take("!") else self.primary()

    def primary(self):
        if self.take("("):
            value = self.either()
            self.need(")")
            return value
        if not self.tokens:
            raise Unknown("an expression ends early")
        found = self.tokens.pop(0)
        if found[1]:
            return found[1][1:-1].replace("''", "'")
        if found[2]:
            return float(found[2]) if "." in found[2] else int(found[2])
        name = found[3]
        if name in LITERALS:
            return LITERALS[name]
        if name and self.take("("):
            return self.call(name)
        if name not in self.contexts:
            raise Unknown(f"the context {name}")
        return self.properties(self.contexts[name], name)

    def call(self, name):
        values = []
        while not self.take(")"):
            values.append(self.either())
            self.take(",")
        if name not in self.functions:
            raise Unknown(f"the function {name}")
        return self.functions[name](*values)

    def properties(self, value, where):
        is_list = False  # after `.*`, of each of which the property is taken
        while self.take("."):
            if self.take("*"):
                value, is_list = list(value or []), True
                continue
            name = self.tokens.pop(0)[3]
            where = f"{where}.{name}"
            value = [_property(each, name, where) for each in value] if is_list else _property(value, name, where)
        return value


def _property(value, name, where):
    if isinstance(value, Known) and name not in value:
        raise Unknown(where)
    return value.get(name) if isinstance(value, dict) else None


def _is_nan(value):
    return isinstance(value, float) and math.isnan(value)


def _equal(one, other):
    if isinstance(one, str) and isinstance(other, str):
        return one.lower() == other.lower()
    if type(one) is type(other):
        return one == other
    return _number(one) == _number(other)


def _number(value):
    if value is None or value == "":
        return 0.0
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def _contains(where, what):
    if isinstance(where, list):
        return any(_equal(each, what) for each in where)
    return text(what).lower() in text(where).lower()


FUNCTIONS = {"contains": _contains, "fromJSON": json.loads}
