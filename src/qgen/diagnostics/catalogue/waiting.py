"""QG9xx: payloads that rows which wait do not fit."""

from qgen.diagnostics.catalogue.code import Code

DEMANDED = Code(
    "QG916",
    "a field that waiting rows lack",
    "Rows that wait were accepted under the payload of the last build, which qgen.lock"
    " keeps. A field that must be given now would make dead letters of them. With a"
    " default they still fit; with a higher version the workers that know the old one"
    " finish them first. Where nothing waits, as before a first deploy, qgen build"
    " --force goes on.",
)
