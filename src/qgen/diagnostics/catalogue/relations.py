"""QG4xx: keys that must agree with each other."""

from qgen.diagnostics.catalogue.code import Code

JOB = '[jobs.draft_reply]\npayload.ticket_id = "uuid"\n'

STALL_TOO_SHORT = Code(
    "QG401",
    "stall.after too near to stall.heartbeat",
    "A process that misses one or two beats is not dead. `stall.after` is at least"
    " three times `stall.heartbeat`.",
    '[stall]\nheartbeat = "15s"\nafter = "30s"\n',
)
SOFT_TIMEOUT = Code(
    "QG402",
    "soft_timeout not below timeout",
    "The warning must come before the stop.",
    f'{JOB}timeout = "5m"\nsoft_timeout = "6m"\n',
)
LONGEST = Code(
    "QG403",
    "longest above timeout",
    "A job that ran longer than its timeout would be stopped every time.",
    f'{JOB}timeout = "5m"\nlongest = "6m"\n',
)
GRACE = Code(
    "QG404",
    "grace shorter than a job",
    "At a stop, jobs that need longer than `shutdown.grace` are released and begin anew"
    " elsewhere. The jobs are kept; their work so far is lost. For a paid job see QG441.",
    f'{JOB}longest = "5m"\n',
    severity="warning",
)
GRACE_OF_PAID = Code(
    "QG441",
    "grace shorter than a paid job",
    "A stop cuts what runs longer than `shutdown.grace`. A paid call that is cut may have"
    " been billed: without `provider_keys` its job is held and waits for a person (with"
    ' on_unknown = "retry" it pays again). A job that says in `longest` that its runs'
    " end within the grace is not warned about.",
    '[agents.writer]\nowner = "ann"\ncap = { day = "1" }\n\n'
    f'{JOB}agent = "writer"\nmax_cost = "0.20"\ntimeout = "5m"\n',
    severity="warning",
)
JOB_CAP = Code(
    "QG405",
    "cap of a job below its max_cost",
    "No attempt could ever reserve its money, so each would be denied.",
    '[agents.writer]\nowner = "ann"\ncap = { job = "0.10" }\n\n'
    f'{JOB}agent = "writer"\nmax_cost = "0.20"\n',
)
DAY_CAP = Code(
    "QG406",
    "scheduled runs above the day's cap",
    "The runs that a schedule starts in a day may cost more than the agent's cap of a"
    " day; the last ones would wait or be denied.",
    '[agents.writer]\nowner = "ann"\ncap = { day = "1" }\n\n'
    '[schedules.often]\njob = "draft_reply"\nevery = "1m"\n\n'
    '[jobs.draft_reply]\nagent = "writer"\nmax_cost = "0.20"\n',
    severity="warning",
)
ELAPSED = Code(
    "QG407",
    "max_elapsed shorter than one wait",
    "No second attempt could ever start.",
    '[retries.default]\nwait = "1h"\nmax_wait = "1h"\nmax_elapsed = "10m"\n',
)
NOT_A_BUILTIN = Code(
    "QG408",
    "no such builtin exception",
    "A bare name is a builtin exception; others are written `module:Name`.",
    '[retries.default]\nnever = ["ValueErorr"]\n',
)
ONLY_WITH_NEVER = Code(
    "QG409",
    "only with never",
    "`only` names what is retried, `never` what is not; together they contradict or"
    " repeat each other.",
    '[retries.default]\nonly = ["OSError"]\nnever = ["ValueError"]\n',
)
WAIT_WITH_LADDER = Code(
    "QG410",
    "ladder with wait, factor or max_wait",
    "A ladder lists the waits one by one; the growing wait is the other way.",
    '[retries.default]\nladder = ["10s", "1m"]\nwait = "10s"\n',
)
CRON_WITH_EVERY = Code(
    "QG411",
    "cron and every",
    "A schedule has exactly one of them.",
    '[schedules.nightly]\njob = "digest"\ncron = "0 7 * * *"\nevery = "1d"\n'
    "\n[jobs.digest]\n",
)
UNKNOWN_JOB = Code(
    "QG412",
    "unknown job",
    "The schedule names a job that the spec does not have.",
    '[schedules.nightly]\njob = "draft"\nevery = "1d"\n',
)
SCHEDULE_PAYLOAD = Code(
    "QG413",
    "payload that the job refuses",
    "A schedule must give every field of its job that has no default, and none that the"
    " job does not have.",
    '[schedules.nightly]\njob = "draft_reply"\nevery = "1d"\n',
)
UNKNOWN_QUEUE = Code(
    "QG414",
    "unknown queue",
    "The queue has no table. Only `default` needs none.",
    f'{JOB}queue = "slow"\n',
)
UNKNOWN_POLICY = Code(
    "QG415",
    "unknown retry policy",
    "The policy has no table. Only `default` needs none.",
    f'{JOB}retry = "patient"\n',
)
UNKNOWN_AGENT = Code(
    "QG416",
    "unknown agent",
    "The agent has no table, so it has no owner and no cap.",
    f'{JOB}agent = "writer"\nmax_cost = "0.20"\n',
)
UNSERVED = Code(
    "QG417",
    "queue that no worker serves",
    "Its jobs would wait for ever.",
    f'[queues.slow]\n\n[workers.main]\nqueues = ["default"]\n\n{JOB}queue = "slow"\n',
)
UNUSED = Code(
    "QG418",
    "nobody uses it",
    "An agent, queue or policy without a job is often a job that names another by"
    " mistake.",
    "[retries.patient]\n",
    severity="warning",
)
UNKNOWN_FIELD = Code(
    "QG419",
    "field that the payload does not have",
    "The key names a field of the job's payload.",
    f'{JOB}unique_by = ["ticket"]\n',
)
ENV_PATH = Code(
    "QG420",
    "override of nothing",
    "The path in `[env]` leads to no key of this spec.",
    '[env]\nSUPPORT_SLOTS = "workers.other.concurrency"\n',
)
ENV_PROTECTED = Code(
    "QG421",
    "key that may not be overridden",
    "A deployment may change how much runs and when; what protects (tries, timeouts,"
    " stall, caps) is decided in the spec, where it is reviewed.",
    '[stall]\nafter = "60s"\n\n[env]\nSUPPORT_STALL = "stall.after"\n',
)
NO_MAX_COST = Code(
    "QG422",
    "paid job without max_cost",
    "What one attempt may cost is reserved before it starts, so it must be known.",
    f'[agents.writer]\nowner = "ann"\ncap = {{ day = "1" }}\n\n{JOB}agent = "writer"\n',
)
NO_AGENT = Code(
    "QG423",
    "costs without an agent",
    "A job without an agent is not paid: what it may cost has no cap to count against.",
    f'{JOB}max_cost = "0.20"\n',
)
NO_CAP = Code(
    "QG424",
    "agent without a cap",
    "A missing cap never means unlimited: every paid job of the agent is denied.",
    f'[agents.writer]\nowner = "ann"\n\n{JOB}agent = "writer"\nmax_cost = "0.20"\n',
    severity="warning",
)
KEY_LIFETIME = Code(
    "QG425",
    "provider_keys without provider_key_ttl",
    "A call may be sent again with its key only while the provider still knows the key,"
    " so its lifetime is needed.",
    '[agents.writer]\nowner = "ann"\ncap = { day = "1" }\nprovider_keys = true\n\n'
    f'{JOB}agent = "writer"\nmax_cost = "0.20"\n',
)
NO_TIMEOUT = Code(
    "QG426",
    "job without a timeout",
    "A handler that hangs is never stopped and keeps its slot until its process ends.",
    f'{JOB}timeout = "none"\n',
    severity="warning",
)
NOT_VERIFIED = Code(
    "QG427",
    "certificate not checked",
    "Without the check anybody on the way can read and change what Redis is told.",
    "[redis]\nverify = false\n",
    severity="warning",
)
NO_PROOF = Code(
    "QG442",
    "not_billed with an error that proves nothing",
    "A call that ends with an error of `not_billed` is taken as free: its reservation goes"
    " back, and the job may call again. Subclasses count. A timeout, a reset, or every"
    " `Exception` says nothing of the bill, so caps would be passed and calls paid twice.",
    '[agents.writer]\nowner = "ann"\ncap = { day = "1" }\n'
    'not_billed = ["TimeoutError"]\n\n'
    f'{JOB}agent = "writer"\nmax_cost = "0.20"\nlongest = "20s"\n',
)
MAX_WAIT = Code(
    "QG428",
    "wait above max_wait",
    "The first wait would already be cut.",
    '[retries.default]\nwait = "1h"\n',
)
BY_WITHOUT_LIMIT = Code(
    "QG429",
    "max_running_by without max_running",
    "The field says of what the limit is counted; the limit itself is missing.",
    f'{JOB}max_running_by = "ticket_id"\n',
)
MAX_MISSED = Code(
    "QG430",
    'max_missed without missed = "all"',
    "Only `all` catches up more than one run, so only it has a bound.",
    '[schedules.nightly]\njob = "digest"\nevery = "1d"\nmax_missed = 5\n\n'
    "[jobs.digest]\n",
)
EVERY_TOO_SHORT = Code(
    "QG431",
    "every below one second",
    "A schedule starts at most once a second.",
    '[schedules.nightly]\njob = "digest"\nevery = "100ms"\n\n[jobs.digest]\n',
)
ZONE_OF_EVERY = Code(
    "QG440",
    "timezone with every",
    "A distance is one of real time, alike in every zone; only a cron line reads a clock"
    " on the wall.",
    '[schedules.nightly]\njob = "digest"\nevery = "1d"\n'
    'timezone = "Europe/Paris"\n\n[jobs.digest]\n',
)
CA_WITHOUT_TLS = Code(
    "QG432",
    "certificate settings without TLS",
    "With `tls = false` there is no certificate to check.",
    '[redis]\ntls = false\nca_file_env = "REDIS_CA"\n',
)
ADOPTION_ONLY = Code(
    "QG433",
    "key of an adopted table",
    "`columns`, `states` and `id_type` describe a table that is already there, so they"
    ' go with `existing = true`; `versions` goes with migrations = "alembic".',
    '[record]\nid_type = "bigint"\n',
)
STATES_MEET = Code(
    "QG434",
    "two states or columns of one name",
    "A word read back must mean one state, and a column hold one thing.",
    '[record]\nexisting = true\n\n[record.states]\nactive = "busy"\nheld = "busy"\n',
)
UNIQUE_UNFIT = Code(
    "QG435",
    "field that cannot tell jobs apart",
    "`unique_by`, `max_running_by`, `tenant_by` and `cap_each.by` compare single values;"
    " a list, a dict or json has none.",
    '[jobs.draft_reply]\nunique_by = ["tags"]\npayload.tags = "list[str]"\n',
)
WINDOW_CAP = Code(
    "QG437",
    "cap of a window below max_cost",
    "A reservation of `max_cost` never fits under such a cap, however long the job"
    " waits, so each attempt would be denied.",
    '[agents.writer]\nowner = "ann"\ncap = { day = "0.10" }\n\n'
    f'{JOB}agent = "writer"\nmax_cost = "0.20"\n',
)
ZERO_CAP = Code(
    "QG438",
    "cap of zero",
    "Zero is no word for unlimited: it lets nothing be spent, so every paid job of the"
    " agent is denied. That is a way to stop an agent.",
    '[agents.writer]\nowner = "ann"\ncap = { day = "0" }\n\n'
    f'{JOB}agent = "writer"\nmax_cost = "0.20"\n',
    severity="warning",
)
ZERO_COST = Code(
    "QG439",
    "max_cost of zero",
    "What is reserved is what caps can hold back: a paid job that reserves nothing would"
    " run beside any cap.",
    '[agents.writer]\nowner = "ann"\ncap = { day = "1" }\n\n'
    f'{JOB}agent = "writer"\nmax_cost = "0"\n',
)
FIXED_TRIES = Code(
    "QG436",
    "limit that can never act",
    "With one attempt in all there is no retry, so the policy's `ladder` or"
    " `max_elapsed` has nothing to do.",
    '[retries.default]\ntries = 1\nladder = ["10s"]\n',
    severity="warning",
)
IDLE = Code(
    "QG443",
    "key without effect",
    "The key is right by itself, and what else the spec says leaves it nothing to do."
    " Often a key beside it is missing, or is another one than was meant.",
    '[agents.writer]\nowner = "ann"\ncap = { day = "1" }\nprovider_key_ttl = "24h"\n\n'
    f'{JOB}agent = "writer"\nmax_cost = "0.20"\n',
    severity="warning",
)
