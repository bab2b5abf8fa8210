"""Names that Python, pydantic, a disk, SQL or the generated code keep for themselves."""

from __future__ import annotations

import keyword
import re
from typing import Final

# Beside its fields a rendered payload module uses these names inside the class.
PAYLOAD_MODULE_NAMES: Final = frozenset(
    "str int float bool list dict dt Decimal UUID Literal Field JsonValue"
    " ConfigDict BaseModel".split()
)
# Attributes of pydantic's BaseModel: a field of such a name would hide one.
BASE_MODEL: Final = frozenset(
    "construct copy dict from_orm json parse_file parse_obj parse_raw schema schema_json"
    " update_forward_refs validate model_computed_fields model_config model_construct"
    " model_copy model_dump model_dump_json model_extra model_fields model_fields_set"
    " model_json_schema model_parametrized_name model_post_init model_rebuild"
    " model_validate model_validate_json model_validate_strings".split()
)
# Classes that stand beside the payload classes in some generated module.
CLASSES: Final = frozenset(
    "Any BaseModel ConfigDict Decimal Defer Enqueued Field Job JOB JOBS JsonValue"
    " Literal UUID None True False".split()
)
# Modules or names that ``jobs/__init__.py`` needs beside the jobs' own.
JOB_MODULES: Final = frozenset({"tuple"})

DEVICES: Final = frozenset(
    ["con", "prn", "aux", "nul", "conin", "conout"]
    + [f"{port}{number}" for port in ("com", "lpt") for number in range(10)]
)
# Packages that the generated code, its tests or its users import.
PACKAGES: Final = frozenset(
    "arq rq celery kombu redis psycopg pydantic pydantic_core sqlalchemy click qgen"
    " pytest tests annotated_types typing_extensions site_packages".split()
)
# The standard library of Python 3.11 to 3.13, so that all of them judge alike.
STANDARD_LIBRARY: Final = frozenset("""
    abc aifc antigravity argparse array ast asynchat asyncio asyncore atexit audioop
    base64 bdb binascii bisect builtins bz2 calendar cgi cgitb chunk cmath cmd code
    codecs codeop collections colorsys compileall concurrent configparser contextlib
    contextvars copy copyreg crypt csv ctypes curses dataclasses datetime dbm decimal
    difflib dis distutils doctest email encodings ensurepip enum errno faulthandler
    fcntl filecmp fileinput fnmatch fractions ftplib functools gc genericpath getopt
    getpass gettext glob graphlib grp gzip hashlib heapq hmac html http idlelib imaplib
    imghdr imp importlib inspect io ipaddress itertools json keyword lib2to3 linecache
    locale logging lzma mailbox mailcap marshal math mimetypes mmap modulefinder msilib
    msvcrt multiprocessing netrc nis nntplib nt ntpath nturl2path numbers opcode
    operator optparse os ossaudiodev pathlib pdb pickle pickletools pipes pkgutil
    platform plistlib poplib posix posixpath pprint profile pstats pty pwd py_compile
    pyclbr pydoc pydoc_data pyexpat queue quopri random re readline reprlib resource
    rlcompleter runpy sched secrets select selectors shelve shlex shutil signal site
    smtpd smtplib sndhdr socket socketserver spwd sqlite3 sre_compile sre_constants
    sre_parse ssl stat statistics string stringprep struct subprocess sunau symtable sys
    sysconfig syslog tabnanny tarfile telnetlib tempfile termios textwrap this threading
    time timeit tkinter token tokenize tomllib trace traceback tracemalloc tty turtle
    turtledemo types typing unicodedata unittest urllib uu uuid venv warnings wave
    weakref webbrowser winreg winsound wsgiref xdrlib xml xmlrpc zipapp zipfile
    zipimport zlib zoneinfo
    """.split())
# Reserved in PostgreSQL or in SQLite.
SQL_WORDS: Final = frozenset("""
    add all alter analyse analyze and any array as asc asymmetric authorization
    autoincrement between binary both case cast check collate collation column commit
    concurrently constraint create cross current_catalog current_date current_role
    current_schema current_time current_timestamp current_user default deferrable delete
    desc distinct do drop else end escape except exists false fetch for foreign freeze
    from full grant group having if ilike in index initially inner insert intersect into
    is isnull join lateral leading left like limit localtime localtimestamp natural not
    nothing notnull null offset on only or order outer overlaps placing primary
    references returning right rollback select session_user set similar some symmetric
    system_user table tablesample then to trailing transaction true union unique update
    user using values variadic verbose when where window with
    """.split())
# Environment variables that a worker's process reads by itself, and whose they are.
VARIABLES: Final = {
    "the system's": re.compile(
        "PATH|HOME|USER|LOGNAME|SHELL|PWD|OLDPWD|HOSTNAME|TERM|TMPDIR|TEMP|TMP|TZ|TZDIR"
        "|LANG|LANGUAGE|LC_[A-Z]+|IFS|ENV|BASH_ENV|MALLOC_.+|GLIBC_.+|(LD|DYLD)_.+"
    ),
    "Python's": re.compile("PYTHON.*|VIRTUAL_ENV|PIP_.+"),
    "OpenSSL's": re.compile("OPENSSL_.+|SSL_CERT_(FILE|DIR)"),
    "libpq's": re.compile(
        "PG(HOST|HOSTADDR|PORT|DATABASE|USER|PASSWORD|PASSFILE|SERVICE|SERVICEFILE"
        "|OPTIONS|APPNAME|SSL.*|REQUIRE.*|CHANNELBINDING|GSS.*|KRB.*|CONNECT_TIMEOUT"
        "|CLIENTENCODING|TARGETSESSIONATTRS|LOADBALANCEHOSTS|TZ|DATESTYLE|GEQO"
        "|SYSCONFDIR|LOCALEDIR|MINPROTOCOLVERSION|MAXPROTOCOLVERSION)"
    ),
    "celery's": re.compile(
        "CELERY_(APP|BROKER(_READ|_WRITE)?_URL|CONFIG_MODULE|LOADER|RESULT_BACKEND)"
        "|FORKED_BY_MULTIPROCESSING|C_FORCE_ROOT"
    ),
    "an address": re.compile("DATABASE_URL|REDIS_URL"),
    "qgen's": re.compile("_?QGEN_.+"),
}


def is_keyword(name: str) -> bool:
    """True for a word that can never be an identifier; ``type`` and ``match`` can."""
    return keyword.iskeyword(name)


def class_name(job: str) -> str:
    """``draft_reply`` -> ``DraftReply``."""
    return "".join(part[:1].upper() + part[1:] for part in job.split("_"))


def whose_variable(name: str, project: str) -> str | None:
    """Whose an environment variable is already, in words; None for one that is free."""
    if name == f"{project.upper()}_SPOOL":
        return "the worker's: the folder of its spool"
    found = (whose for whose, names in VARIABLES.items() if names.fullmatch(name))
    return next(found, None)
