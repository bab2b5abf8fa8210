"""QG2xx: single values."""

from qgen.diagnostics.catalogue.code import Code

WRONG_TYPE = Code(
    "QG201",
    "value of the wrong type",
    "The key takes another type of value. A boolean is never a number, a number never a"
    " text.",
    '[workers.main]\nconcurrency = "4"\n',
)
OUT_OF_RANGE = Code(
    "QG202",
    "value out of range",
    "The number or the length is outside what the key allows. Zero, negatives, nan and"
    ' inf never mean "no limit"; where a key allows none it is written "none".',
    "[retries.default]\ntries = 0\n",
)
NOT_A_CHOICE = Code(
    "QG203",
    "not one of the choices",
    "The key takes one of a few words.",
    '[record]\ndialect = "postgres"\n',
)
NOT_A_DURATION = Code(
    "QG204",
    "not a duration",
    "A duration is a text of whole numbers with units, the largest first: d, h, m, s,"
    " ms. It is never zero.",
    '[stall]\nafter = "1 minute"\n',
)
NOT_MONEY = Code(
    "QG205",
    "not an amount of money",
    "Money is a decimal in quotes with at most six places. A bare TOML number would be"
    " rounded in binary.",
    "[defaults]\nmax_cost = 0.2\n",
)
NOT_A_NAME = Code(
    "QG206",
    "not a name",
    "Names become modules, functions, columns and Redis keys, so they are short ASCII"
    " words. `wire` keeps a foreign name of a job.",
    "[queues.Slow-Lane]\n",
)
NOT_A_VARIABLE = Code(
    "QG207",
    "not the name of a variable",
    "Addresses and paths that differ between places come from environment variables;"
    " the spec holds only their names.",
    '[redis]\nurl_env = "redis://localhost"\n',
)
NOT_A_REFERENCE = Code(
    "QG208",
    "not a Python reference",
    "Modules, functions and exceptions are named as Python imports them, with a colon"
    " between module and name.",
    '[defaults]\nhandler = "support.handlers.run"\n',
)
NOT_A_TYPE = Code(
    "QG209",
    "not a field type",
    "The type of a payload field is one of a few words, or a list, dict or optional of"
    " them.",
    '[jobs.draft_reply.payload]\nticket_id = "strng"\n',
)
NOT_A_FOLDER = Code(
    "QG210",
    "not a folder inside the spec's own",
    "Everything is written below the folder that holds the spec.",
    '[project]\nname = "support"\noutput = "../elsewhere"\n',
)
NOT_A_RATE = Code(
    "QG211",
    "not a rate",
    "A rate is a number of starts and a duration.",
    '[queues.default]\nrate = "fast"\n',
)
NOT_CRON = Code(
    "QG212",
    "not a cron line",
    "A cron line has five fields, or six with seconds first, each in its range.",
    '[schedules.nightly]\njob = "digest"\ncron = "0 25 * * *"\n\n[jobs.digest]\n',
)
NOT_A_ZONE = Code(
    "QG213",
    "not a time zone",
    "A time zone is UTC or an area and a city. Abbreviations such as EST mean different"
    " things in different places and know no summer time.",
    '[spend]\ntimezone = "AEST"\n',
)
NOT_A_NUMBER = Code(
    "QG214",
    "not a number",
    "A limit of a field is a number, or a decimal in quotes for a decimal field.",
    '[jobs.draft_reply.payload]\nn = { type = "int", min = "one" }\n',
)
NOT_A_TEXT = Code(
    "QG215",
    "empty, too long or unprintable text",
    "A text here has between 1 and 4,000 characters and no NUL.",
    '[spend]\nunit = ""\n',
)
CANNOT_ADOPT = Code(
    "QG216",
    "table that cannot be adopted",
    "An adopted table needs one plain column for each name and one word for each state."
    " A status kept as a boolean, inside JSON, or a key of several columns cannot be"
    " claimed by one conditional update.",
    "[record]\nexisting = true\n\n[record.columns]\nstate = \"meta->>'status'\"\n",
)
SECRET = Code(
    "QG217",
    "secret in the spec",
    "A spec is committed and shared. A value that looks like a password or a key is"
    " refused and never repeated; it must be rotated, because it has been written down.",
    "[jobs.draft_reply.payload]\n"
    'note = { type = "str", default = "sk-proj-abcdefghijklmnopqrstu" }\n',
)
REPEATED = Code(
    "QG218",
    "listed twice",
    "The same entry stands twice in a list.",
    '[jobs.draft_reply]\nunique_by = ["ticket_id", "ticket_id"]\n'
    'payload.ticket_id = "uuid"\n',
)
BAD_PATTERN = Code(
    "QG219",
    "not a regular expression",
    "The pattern of a field must be one that both the validator and Python understand:"
    " no look-around and no back-references.",
    '[jobs.draft_reply.payload]\ncode = { type = "str", pattern = "[a-" }\n',
)
DEFAULT_UNFIT = Code(
    "QG220",
    "default that its field refuses",
    "The default of a field must be a value of the field's own type and limits.",
    '[jobs.draft_reply.payload]\nn = { type = "int", default = "three" }\n',
)
LIMIT_UNFIT = Code(
    "QG221",
    "limit that does not fit the type",
    "`min` and `max` go with numbers, lengths with texts, lists and dicts, `pattern`"
    " with texts, `values` with enums; a least is never above a greatest.",
    '[jobs.draft_reply.payload]\nn = { type = "int", max_length = 5 }\n',
)
ENUM_VALUES = Code(
    "QG222",
    "enum without usable values",
    "An enum needs `values`: all texts or all whole numbers, each once.",
    '[jobs.draft_reply.payload]\ntone = { type = "enum" }\n',
)
LOOKS_SECRET = Code(
    "QG223",
    "field called like a secret",
    "A payload stays in the database and in backups. A field that is called like a"
    " secret is at least marked `sensitive`, so that it is shown nowhere; better, the"
    " handler reads the secret where it is kept.",
    '[jobs.draft_reply.payload]\napi_key = "str"\n',
    severity="warning",
)
