"""Models made by hand and by hypothesis, for the tests of what is rendered."""

import datetime as dt
import keyword
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from qgen import model as m

# Keywords are refused by the front.
WORDS = st.from_regex(r"[a-z][a-z0-9_]{0,39}", fullmatch=True).filter(
    lambda word: not keyword.iskeyword(word)
)
FIELDS = st.from_regex(r"[a-zA-Z][a-zA-Z0-9_]{0,58}", fullmatch=True).map(
    lambda name: f"f_{name}"
)
# Texts that have broken generators before, beside everything hypothesis thinks of.
HOSTILE = [
    '"""',
    "'''",
    '"; import os; os.system("true")  #',
    "{{ 7 * 7 }}{% raw %}",
    "\\",
    "ends with \\",
    'ends with "',
    '"starts',
    "a\nb\r\nc\x00\x1b[31m",
    "\u202eright to left\u2066",
    "line\u2028separator \x85 \x0c",
    "-->  */ --\n'); DROP TABLE support_jobs; --",
    "| a | b |\n|---|---|\n`code` <script>alert(1)</script>",
    "<<<<<<< ours\n=======\n>>>>>>> theirs\n",
    "日本語の説明 " * 12,
    "🙂" * 50,
    "\ud800",
    "%s %(x)s {x} $x ${x}",
    "x" * 300,
    "word " * 60,
    "qgen-signature: 0000000000000000",
]
TEXTS = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=200))


def job(name: str = "draft_reply", **values: Any) -> m.Job:
    """A job with the defaults of the language."""
    defaults: dict[str, Any] = {
        "class_name": "".join(part.title() for part in name.split("_")) or "X",
        "wire": name,
        "description": "",
        "handler": f"support.handlers:{name}",
        "queue": "default",
        "retry": "default",
        "timeout": 600.0,
        "longest": None,
        "priority": "normal",
        "unique_by": (),
        "version": 1,
        "aliases": (),
        "max_defers": 100,
        "payload": (m.Field("text", m.Scalar("str")),),
    }
    return m.Job(name=name, **defaults | values)


def retry(name: str = "default", **values: Any) -> m.Retry:
    """A policy with the defaults of the language."""
    defaults: dict[str, Any] = {
        "tries": 3,
        "wait": 10.0,
        "factor": 2.0,
        "max_wait": 600.0,
        "jitter": 0.2,
        "ladder": (),
        "max_elapsed": None,
        "max_replays": 3,
        "never": (),
        "only": (),
    }
    return m.Retry(name=name, **defaults | values)


def model(*jobs: m.Job, **values: Any) -> m.Model:
    """A model of these jobs (one, if none is given)."""
    defaults: dict[str, Any] = {
        "project": m.Project(
            "support",
            "support_queue",
            "src",
            "tests/support_queue",
            "support.handlers",
        ),
        "record": m.Record("sqlite", "DATABASE_URL", "support_jobs"),
        "redis": m.Redis("REDIS_URL", None, True, None),
        "stall": m.Stall(15.0, 60.0, 10.0),
        "grace": 30.0,
        "retention": m.Retention(2592000.0, 15552000.0, None),
        "target": m.Target("arq", ("arq>=0.28,<0.29", "pydantic>=2.9,<3"), ()),
        "times": m.Times(55.0, 70.0, 625.0, 30.0, 30.0, 3, 80.0),
        "retries": (retry(),),
        "queues": (m.Queue("default", ()),),
        "workers": (m.Worker("main", ("default",), 4),),
        "jobs": tuple(sorted(jobs or [job()], key=lambda each: each.name)),
    }
    return m.Model(**defaults | values)


# --- by hypothesis ----------------------------------------------------------------

_ZONES = st.sampled_from([dt.UTC, dt.timezone(dt.timedelta(minutes=330))])
_DECIMALS = st.decimals(-1000, 1000, places=3).map(lambda d: Decimal(str(d)))
_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "str": TEXTS,
    "int": st.integers(),
    "float": st.floats(allow_nan=False, allow_infinity=False),
    "bool": st.booleans(),
    "decimal": _DECIMALS,
    "uuid": st.uuids(),
    "datetime": st.datetimes(timezones=_ZONES),
    "date": st.dates(),
    "json": st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), TEXTS),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3).map(tuple),
            st.dictionaries(TEXTS, inner, max_size=3).map(
                lambda d: m.Table(tuple(sorted(d.items())))
            ),
        ),
        max_leaves=6,
    ),
}


@st.composite
def types(draw: st.DrawFn, depth: int = 2) -> tuple[m.FieldType, Any]:
    """A field type and a strategy of its values."""
    kind = draw(st.integers(0, 4 if depth else 1))
    if kind == 0:
        scalar = draw(st.sampled_from(sorted(_VALUES)))
        return m.Scalar(scalar), _VALUES[scalar]  # type: ignore[arg-type]
    if kind == 1:
        values = tuple(
            draw(st.lists(TEXTS.filter(bool), min_size=1, max_size=8, unique=True))
        )
        return m.Enum(values), st.sampled_from(values)
    of, values_of = draw(types(depth - 1))
    if kind == 2:
        return m.ListOf(of), st.lists(values_of, max_size=4).map(tuple)
    if kind == 3:
        table = st.dictionaries(TEXTS, values_of, max_size=3)
        return m.DictOf(of), table.map(lambda d: m.Table(tuple(sorted(d.items()))))
    if isinstance(of, m.Optional):
        return of, values_of
    return m.Optional(of), st.one_of(st.none(), values_of)


@st.composite
def fields(draw: st.DrawFn) -> m.Field:
    """A payload field; its limits fit its type, not its default."""
    kind, values = draw(types())
    default = draw(st.none() | values.map(m.Default))
    limits: dict[str, Any] = {}
    if draw(st.booleans()):
        match kind:
            case m.Scalar("str"):
                limits = {"max_length": draw(st.integers(1, 10**6))}
                if draw(st.booleans()):
                    limits["pattern"] = draw(st.sampled_from(["^[a-z]+$", r"\d\"'"]))
            case m.Scalar("int"):
                limits = {"min": -1, "max": draw(st.integers(0, 10**12))}
            case m.Scalar("decimal"):
                limits = {"min": draw(_DECIMALS)}
    return m.Field(
        draw(FIELDS),
        kind,
        default,
        m.Constraints(**limits),
        draw(st.just("") | TEXTS),
        draw(st.booleans()),
    )


@st.composite
def jobs(draw: st.DrawFn) -> m.Job:
    """A job with any text in every place that takes one."""
    name = f"j_{draw(WORDS)}"[:40]
    payload = draw(st.lists(fields(), max_size=5, unique_by=lambda field: field.name))
    names = [field.name for field in payload]
    return job(
        name,
        class_name=f"J{draw(st.from_regex('[A-Za-z0-9]{1,39}', fullmatch=True))}",
        wire=draw(
            st.just(name) | st.from_regex(r"[A-Za-z0-9_.:/-]{1,200}", fullmatch=True)
        ),
        description=draw(TEXTS),
        handler=draw(
            st.from_regex(
                r"(support.handlers|([a-z]{1,9}\.){0,5}h):h_[a-z]{1,60}", fullmatch=True
            )
        ),
        timeout=draw(st.none() | st.floats(0.001, 1e7)),
        priority=draw(st.sampled_from(["high", "normal", "low"])),
        unique_by=tuple(names[: draw(st.integers(0, 3))]),
        version=draw(st.integers(1, 99)),
        aliases=tuple(draw(st.lists(WORDS, max_size=6, unique=True))),
        max_defers=draw(st.sampled_from([100, 5])),
        payload=tuple(sorted(payload, key=lambda field: field.name)),
        **draw(st.just({}) | paid()),
        reply=draw(st.none() | FUNCTIONS),
        on_failed=draw(st.none() | FUNCTIONS),
    )


FUNCTIONS = st.from_regex(
    r"(support.handlers|[a-z]{1,60}):f_[a-z]{1,60}", fullmatch=True
)
AMOUNTS = st.integers(0, 10**15 - 1)


def paid() -> st.SearchStrategy[dict[str, Any]]:
    """What makes a job paid."""
    return st.fixed_dictionaries(
        {
            "agent": WORDS,
            "max_cost": AMOUNTS,
            "billing": st.sampled_from(["calls", "attempt"]),
        }
    )


@st.composite
def agents(draw: st.DrawFn) -> m.Agent:
    """An agent with any text and any amount in its places."""
    periods: tuple[m.Period, ...] = ("hour", "day", "week", "month")

    def caps() -> tuple[tuple[m.Period, int], ...]:
        return tuple((p, draw(AMOUNTS)) for p in periods if draw(st.booleans()))

    by = draw(st.none() | FIELDS)
    return m.Agent(
        name=draw(WORDS),
        owner=draw(TEXTS),
        caps=caps(),
        job_cap=draw(st.none() | AMOUNTS),
        each_by=by,
        each_caps=caps() if by else (),
        when_capped=draw(st.sampled_from(["wait", "deny"])),
        on_unknown=draw(st.sampled_from(["hold", "retry"])),
        provider_keys=draw(st.booleans()),
        provider_key_ttl=draw(st.none() | st.floats(0.001, 1e7)),
        not_billed=tuple(
            draw(
                st.lists(st.from_regex(r"[a-z]{1,40}:[A-Z][a-z]{1,40}", fullmatch=True))
            )
        ),
    )


@st.composite
def schedules(draw: st.DrawFn) -> m.Schedule:
    """A schedule with any text in its payload."""
    line = draw(st.none() | st.sampled_from(["*/5 * * * *", "0 30 7 1 jan mon-fri"]))
    texts = st.dictionaries(FIELDS, TEXTS | st.booleans() | st.integers(), max_size=4)
    return m.Schedule(
        name=draw(WORDS),
        job=draw(st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.:/-]{0,199}", fullmatch=True)),
        cron=line,
        every=None if line else draw(st.floats(1, 1e9)),
        timezone=draw(st.sampled_from(["UTC", "Australia/Sydney"])) if line else "UTC",
        missed=draw(st.sampled_from(["skip", "one", "all"])),
        max_missed=draw(st.integers(1, 1000)),
        overlap=draw(st.sampled_from(["skip", "allow"])),
        enabled=draw(st.booleans()),
        payload=m.Table(tuple(sorted(draw(texts).items()))),
    )


@st.composite
def models(draw: st.DrawFn) -> m.Model:
    """A whole model."""
    names = draw(st.lists(WORDS, min_size=1, max_size=6, unique=True))
    payers = draw(st.lists(agents(), max_size=3, unique_by=lambda agent: agent.name))
    exceptions = st.lists(
        st.from_regex(r"[a-z]{1,30}\.[a-z]{1,30}:[A-Z][a-z]{1,30}", fullmatch=True),
        max_size=5,
    ).map(tuple)
    return model(
        *draw(
            st.lists(
                jobs(),
                min_size=1,
                max_size=4,
                unique_by=(lambda j: j.name, lambda j: j.class_name),
            )
        ),
        retries=tuple(
            retry(
                name,
                never=draw(exceptions),
                ladder=tuple(draw(st.lists(st.floats(0.1, 1e6), max_size=12))),
                max_elapsed=draw(st.none() | st.floats(1, 1e6)),
            )
            for name in sorted({*names, "default"})
        ),
        queues=tuple(
            m.Queue(name, tuple(draw(st.lists(WORDS, max_size=4))))
            for name in sorted(names)
        ),
        workers=tuple(m.Worker(name, tuple(names), 4) for name in sorted(names)),
        spend=m.Spend(draw(TEXTS.filter(bool)), "Australia/Sydney"),
        agents=tuple(sorted(payers, key=lambda agent: agent.name)),
        schedules=tuple(
            draw(st.lists(schedules(), max_size=3, unique_by=lambda each: each.name))
        ),
        facts=tuple(
            m.Fact(draw(TEXTS), "GIVEN", draw(TEXTS), draw(TEXTS)) for _ in range(3)
        ),
    )
