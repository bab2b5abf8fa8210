"""QG3xx: names that Python, a disk or the generated code already uses."""

from qgen.diagnostics.catalogue.code import Code

KEYWORD = Code(
    "QG301",
    "word of Python",
    "The name becomes a Python module, function, class or attribute, and Python keeps"
    " this word for itself.",
    "[jobs.import]\n",
)
DEVICE = Code(
    "QG302",
    "file name that Windows keeps",
    "con, nul, aux, prn, com1 and the like name devices on Windows: a repository with"
    " such a file cannot be checked out there.",
    "[jobs.aux]\n",
)
RESERVED = Code(
    "QG303",
    "name that the generated code uses",
    "The name would hide one that the generated code or its libraries need.",
    '[jobs.draft_reply.payload]\nmodel_config = "str"\n',
)
MEET = Code(
    "QG304",
    "two names that meet",
    "Two names become the same class, file or wire name.",
    "[jobs.send_2]\n\n[jobs.send2]\n",
)
ALIAS_TAKEN = Code(
    "QG305",
    "former name in use",
    "A former name or a wire name may belong to one job or queue only, or rows waiting"
    " under it would have two owners.",
    '[queues.default]\naliases = ["slow"]\n\n[queues.slow]\n'
    '\n[workers.main]\nqueues = ["default", "slow"]\n',
)
PACKAGE_TAKEN = Code(
    "QG306",
    "package that hides another",
    "The generated package, the handlers and the libraries they import are found by"
    " name; two of one name hide each other.",
    '[project]\nname = "support"\npackage = "json"\n',
)
SQL_WORD = Code(
    "QG307",
    "word of SQL",
    "The name of the table stands unquoted in SQL, which keeps this word for itself.",
    '[record]\ntable = "order"\n',
)
PATHS_MEET = Code(
    "QG308",
    "two folders that meet",
    "The package and its tests need folders of their own.",
    '[project]\nname = "support"\ntests = "src/support_queue/tests"\n',
)
SAME_VARIABLE = Code(
    "QG309",
    "one variable for two things",
    "An environment variable holds one value.",
    '[redis]\nurl_env = "DATABASE_URL"\n',
)
TAKEN_VARIABLE = Code(
    "QG310",
    "variable that means something else already",
    "A worker starts with its whole environment. A variable that Python, the system, a"
    " library or the worker itself reads cannot also hold a number or a cron line: the"
    " worker would not start, or not as it should.",
    '[env]\nPYTHONPATH = "workers.main.concurrency"\n',
)
