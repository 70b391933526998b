"""Equality of heads, which compare by identity."""

from inspect import isdatadescriptor
from operator import attrgetter
from typing import Final

from elasticq.http.connection.facts import Head

NAMES: Final = sorted(name for name, member in vars(Head).items() if isdatadescriptor(member) and name[0] != "_")
"""All attributes of a Head, also when it is compiled, so a new one is compared as well."""
facts_of: Final = attrgetter(*NAMES)
