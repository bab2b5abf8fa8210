"""QG9xx: what is approved, and what is more than that."""

from qgen.diagnostics.catalogue.code import Code

UNREADABLE = Code(
    "QG913",
    "an approval that cannot be read",
    "queue.approvals.toml says what each agent may spend. An entry that is not"
    " understood is never skipped, since its agent would then count as new: mend it, or"
    " take the file back from what was committed.",
)
UNAPPROVED = Code(
    "QG914",
    "more spending than is approved",
    "A cap above the one in queue.approvals.toml, a cap left out, another unit, another"
    ' field of cap_each, or on_unknown going to "retry" lets an agent spend more. That'
    " is its owner's decision: qgen approve AGENT --by OWNER enters it. Less needs no"
    " approval.",
)
