"""The specs of docs/spec.md: the smallest, what money adds, and every key there is.

A test reads them and holds what this version makes of each line.
"""

from __future__ import annotations

from typing import Final

SMALLEST: Final = """\
schema_version = 1

[project]
name = "support"

[jobs.draft_reply.payload]
ticket_id = "uuid"
text = "str"
"""

PAID: Final = """\
[agents.writer]
owner = "content-lead"
cap = { day = "25.00" }

[jobs.draft_reply]
agent = "writer"
max_cost = "0.20"
"""

WHOLE: Final = """\
#:schema https://raw.githubusercontent.com/qgen/qgen/main/schema/v1/queue.schema.json
schema_version = 1

[project]
name = "support"                      # prefix of Redis keys and, by default, of package and table
package = "support_queue"             # the import name of the generated package
output = "src"                        # the package goes to <output>/<package>
tests = "tests/support_queue"         # the generated pytest suite
handlers = "support.handlers"         # module with one function per job, unless a job names its own
target = "arq"                        # used when `qgen build` is given no --target

[record]                              # the database row is the record
dialect = "postgresql"                # or "sqlite", the embedded default
url_env = "DATABASE_URL"
table = "support_jobs"

[redis]                               # Redis only runs the work
url_env = "REDIS_URL"
tls = true

[stall]
heartbeat = "15s"                     # how often a worker process says that it lives
after = "60s"                         # silent this long = dead: its jobs are recovered
sweep = "10s"                         # how often recovery looks

[shutdown]
grace = "30s"                         # running jobs may finish this long after SIGTERM

[retention]
completed = "30d"
failed = "180d"

[spend]
unit = "USD"                          # any unit counted in decimals: "USD", "tokens"
timezone = "UTC"                      # where a day of spending begins

[agents.writer]
owner = "content-lead"                # who may raise its caps
cap = { day = "25.00", month = "300", job = "0.80" }
cap_each = { by = "tenant_id", day = "2.00" }   # of every value of a payload field
when_capped = "wait"                  # or "deny"
on_unknown = "hold"                   # or "retry": pay again, and book both
provider_keys = false                 # true: its provider bills one call per key …
provider_key_ttl = "24h"              # … for this long
not_billed = ["httpx:ConnectError"]   # errors that prove a call cost nothing
rate = "60/1m"

[retries.patient]
tries = 4                             # attempts in all
wait = "10s"                          # or ladder = ["10s", "1m", "10m"], the last step repeats
factor = 3                            # 1 = fixed
max_wait = "10m"
jitter = 0.2
max_elapsed = "6h"
never = ["ValueError", "support.errors:BadInput"]   # end a job at once
# only = ["httpx:TransportError"]     # the other way round: nothing else is retried

[defaults]                            # any key of a job that is not its payload
queue = "replies"

[queues.replies]
max_running = 20                      # over all workers
rate = "60/1m"

[queues.background]
aliases = ["slow"]                    # former names

[workers.main]                        # one worker process
queues = ["replies", "background"]    # in order of preference
concurrency = 4
recycle_after_jobs = 500
on_start = "support.clients:open"
on_stop = "support.clients:close"

[jobs.draft_reply]
description = "Draft an answer to a ticket."
agent = "writer"
max_cost = "0.20"                     # the most one attempt may cost
billing = "calls"                     # or "attempt": the whole attempt is one paid call
timeout = "10m"                       # the handler is stopped; soft_timeout warns it first
soft_timeout = "9m"
longest = "7m"                        # the longest run seen, a workload figure
retry = "patient"
priority = "high"                     # "high" | "normal" | "low"
unique_by = ["ticket_id"]             # at most one unfinished job per ticket
max_running = 1
max_running_by = "tenant_id"          # … for each value of this field
tenant_by = "tenant_id"               # fair turns between tenants
start_within = "1h"                   # not started by then: failed, reason expired
reply = "support.handlers:deliver"    # after success, retried by itself, never re-runs the job
on_failed = "support.handlers:alarm"  # likewise, once, when the job becomes a dead letter
version = 2                           # of the payload
aliases = ["draft_answer"]            # former names: rows waiting under them still run

[jobs.draft_reply.payload]
ticket_id = "uuid"
tenant_id = "str"
text = { type = "str", max_length = 20000, sensitive = true }
tone = { type = "enum", values = ["plain", "warm"], default = "plain" }
tags = "list[str]"
due = "datetime?"

[jobs.digest]
queue = "background"
[jobs.digest.payload]
kind = { type = "enum", values = ["daily", "weekly"] }

[schedules.morning_digest]
job = "digest"
cron = "30 7 * * 1-5"                 # 5 fields, or 6 with seconds first; or every = "15m"
timezone = "Australia/Sydney"
missed = "one"                        # "skip" | "one" | "all" (with max_missed)
overlap = "skip"                      # or "allow"
payload = { kind = "daily" }

[env]                                 # what a deployment may override, and where
SUPPORT_CONCURRENCY = "workers.main.concurrency"
DIGEST_CRON = "schedules.morning_digest.cron"
"""
