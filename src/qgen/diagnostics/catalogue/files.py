"""QG9xx: generated files on disk that are not what the spec makes."""

from qgen.diagnostics.catalogue.code import Code

EDITED = Code(
    "QG901",
    "a generated file was edited",
    "A build would overwrite what a person wrote, so it stops. Move the change into the"
    " spec or into a handler and build with --force (a copy is kept under"
    " .qgen/backup/), or take the file over with qgen eject.",
)
FOREIGN = Code(
    "QG902",
    "a file that qgen did not write is in the way",
    "The spec makes a file of this name, but the one on disk has no header of qgen's and"
    " is not in the lock. Rename it, or build with --force (a copy is kept).",
)
FROZEN = Code(
    "QG903",
    "a migration would change",
    "A migration that may have run somewhere is never changed. The table's name or the"
    " dialect of a project that runs is not a thing to edit in place.",
)
REFUSED = Code(
    "QG904",
    "a path that qgen does not write to",
    "Nothing is written through a link that leaves the spec's folder, over a link, or"
    " over a folder, with --force either.",
)
MISSING = Code(
    "QG905",
    "a generated file is missing",
    "The spec makes this file and it is not on disk: run qgen build.",
)
CHANGED = Code(
    "QG906",
    "a generated file is out of date",
    "The spec, or qgen itself, has changed since the last build: run qgen build.",
)
REFORMATTED = Code(
    "QG907",
    "a generated file was reformatted",
    "A formatter with other settings, or one that changes line ends, went over the"
    " generated files. Exclude their folder from it, or every build will undo its work.",
)
CONFLICTED = Code(
    "QG908",
    "a generated file has conflict markers",
    "A merge met in a generated file. There is nothing to join by hand: join the spec,"
    " then run qgen build.",
)
ORPHANED = Code(
    "QG909",
    "a generated file is no longer made",
    "The lock lists a file that the spec does not make any more: run qgen build, which"
    " removes it if it is unmodified.",
)
KEPT = Code(
    "QG910",
    "a file that is no longer made was kept",
    "It was edited, or stands behind a link, so qgen does not remove it. Remove it by"
    " hand if it is not needed.",
    severity="warning",
)
LOCK = Code(
    "QG911",
    "the lock does not list what the spec makes",
    "qgen.lock is written last by every build and is committed with the files: run qgen"
    " build.",
)
STUB = Code(
    "QG912",
    "a job has no handler yet",
    "The handlers module was read, not imported, and does not define the function that"
    " the job names.",
    severity="warning",
)
STOP_PERIOD = Code(
    "QG915",
    "a stop period is too short",
    "`deploy/compose.yaml` is yours, so qgen does not change it. A supervisor that kills"
    " a worker before the grace and its final writes are over turns every stop into a"
    " crash.",
    severity="warning",
)
