"""QG1xx: keys and tables."""

from qgen.diagnostics.catalogue.code import Code

UNKNOWN_KEY = Code(
    "QG101",
    "unknown key",
    "A key that the language does not have is refused, because a misspelt limit would"
    " otherwise silently not apply.",
    '[stall]\nhartbeat = "15s"\n',
)
WRONG_TABLE = Code(
    "QG102",
    "key of another table",
    "The key exists, but in another table.",
    '[queues.default]\ntimeout = "5m"\n',
)
MISSING_KEY = Code(
    "QG103",
    "missing key",
    "A key that has no default was left out.",
    "[project]\n",
)
NO_JOBS = Code(
    "QG104",
    "no jobs",
    "Without a job nothing can be generated.",
    raw=b'schema_version = 1\n\n[project]\nname = "support"\n',
)
SCHEMA_VERSION = Code(
    "QG105",
    "version of the language",
    "`schema_version` says which version of the language the spec is written in; this"
    " qgen reads version 1.",
    "schema_version = 2\n",
)
REDIS_SHAPE = Code(
    "QG106",
    "Redis not by one address",
    "Redis is reached by one address in one variable. An address in parts would put a"
    " password into the spec; Sentinel and Cluster need another dispatch and are not"
    " supported.",
    '[redis]\nhost = "localhost"\n',
)
