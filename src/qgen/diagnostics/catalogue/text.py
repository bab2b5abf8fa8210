"""QG0xx: the text of the file."""

from qgen.diagnostics.catalogue.code import Code

SYNTAX = Code(
    "QG001",
    "not TOML",
    "The file breaks the rules of TOML 1.0, so nothing in it could be read. Only the"
    " first such place is known; mend it and look again.",
    'jobs = "draft_reply\n',
)
ENCODING = Code(
    "QG002",
    "not UTF-8",
    "A spec is UTF-8, with or without a byte order mark. Editors and shells on Windows"
    " may write UTF-16 or an 8-bit code page instead.",
    raw="schema_version = 1\n".encode("utf-16"),
)
STRAY_MARK = Code(
    "QG003",
    "byte order mark inside the file",
    "A byte order mark may only stand at the very beginning. One further down comes from"
    " joining two files.",
    "\ufeff[stall]\n",
)
LONE_CR = Code(
    "QG004",
    "lone carriage return",
    "Lines end with LF or CRLF. A carriage return alone ends no line, so two lines would"
    " be read as one.",
    'defaults.queue = "default"\rdefaults.tries = 2\n',
)
DUPLICATE = Code(
    "QG005",
    "defined twice",
    "TOML allows each key and each table once. Two of them usually come from a merge.",
    '[stall]\nsweep = "5s"\n\n[stall]\nheartbeat = "5s"\n',
)
CONFLICT = Code(
    "QG006",
    "conflict markers",
    "The file holds the markers of an unfinished merge.",
    "<<<<<<< ours\n[stall]\n=======\n[redis]\n>>>>>>> theirs\n",
)
TOO_LARGE = Code(
    "QG007",
    "too large",
    "A spec is read up to 5 MB, which is room for ten thousand jobs.",
    raw=b"#" * 5_000_001,
)
TOO_DEEP = Code(
    "QG008",
    "nested too deeply",
    "No key of the language needs more than a handful of levels; values are read up to"
    " 40.",
    f"x = {'[' * 60}{']' * 60}\n",
)
HUGE_NUMBER = Code(
    "QG009",
    "number too long",
    "A number of thousands of digits cannot be read.",
    f"x = {'1' * 5000}\n",
)
