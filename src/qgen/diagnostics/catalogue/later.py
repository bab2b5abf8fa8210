"""QG8xx: parts of the language that this version checks but does not build."""

from qgen.diagnostics.catalogue.code import Code

WHY = (
    " The keys are part of the language and are checked in full; building them without"
    " effect would promise what nothing keeps, so they are refused until they are built."
)

ADOPTION = Code(
    "QG807",
    "adopting a table: not built yet",
    "Working on a table that is already there." + WHY,
    "[record]\nexisting = true\n",
)
ALEMBIC = Code(
    "QG808",
    "alembic: not built yet",
    "Migrations as alembic revisions. Numbered SQL files and the package's own"
    " `migrate` work without alembic." + WHY,
    '[record]\nmigrations = "alembic"\n',
)
KNOBS = Code(
    "QG810",
    "knob of a target: not built yet",
    "`poll_delay` of arq; the other knobs of `[targets]` are built." + WHY,
    '[targets.arq]\npoll_delay = "50ms"\n',
)
