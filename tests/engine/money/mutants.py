"""Mutants of the money code: one line each, and the test of the books that kills it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final, NamedTuple

from engine import faults

VARIABLE: Final = "QGEN_TEST_MUTANT"


class Mutant(NamedTuple):
    """A text of a module, what it becomes, and who must notice."""

    module: str
    old: str
    new: str
    killer: str


MUTANTS: Final = (
    Mutant(
        "admission", "sums[key].reserved += need", "pass", "test_a_batch_shares_no_room"
    ),
    Mutant(
        "admission",
        "window.gone + window.reserved + need <= limit.cap",
        "window.gone + window.reserved <= limit.cap",
        "test_a_batch_shares_no_room",
    ),
    Mutant(
        "admission",
        'row["spent"] + row["unknown"], row["reserved"]',
        'row["spent"], row["reserved"]',
        "test_unknown_money_counts_against_the_cap",
    ),
    Mutant(
        "admission",
        "job.max_cost or total > agent.job_cap",
        "job.max_cost",
        "test_a_job_stays_under_its_own_cap",
    ),
    Mutant(
        "admission",
        "if agent is None or (not agent.caps and agent.job_cap is None):",
        "if agent is None:",
        "test_no_cap_is_no_money",
    ),
    Mutant(
        "admission",
        "elif gate_key(agent.name) in closed:",
        "elif False:",
        "test_a_429_closes_the_gate_for_all",
    ),
    Mutant(
        "admission",
        "return max(0, job.max_cost - bought)",
        "return job.max_cost",
        "test_a_settled_step_is_not_bought_again",
    ),
    Mutant(
        "admission",
        'elif agent.when_capped == "deny":',
        "elif False:",
        "test_a_cap_that_is_full_denies_where_the_spec_says_so",
    ),
    Mutant(
        "opening",
        ' or row["fence"] != asked.fence:',
        ":",
        "test_who_may_not_open_a_call[sqlite-fence]",
    ),
    Mutant(
        "opening",
        'if not row["boot_alive"]:',
        "if False:",
        "test_who_may_not_open_a_call[sqlite-dead]",
    ),
    Mutant(
        "opening",
        'if row["late"]:',
        "if False:",
        "test_who_may_not_open_a_call[sqlite-late]",
    ),
    Mutant(
        "opening",
        'if row["cancel_requested"]:',
        "if False:",
        "test_who_may_not_open_a_call[sqlite-cancelled]",
    ),
    Mutant(
        "opening",
        "if cost > left or (cost == 0",
        "if (cost == 0",
        "test_an_attempt_opens_no_more_than_it_reserved",
    ),
    Mutant(
        "opening",
        'if call["state"] == "open" and call["fence"] == row["fence"]:',
        "if False:",
        "test_a_lost_reply_does_not_open_twice",
    ),
    Mutant(
        "opening",
        "return before is not None and before != asked.request_hash",
        "return False",
        "test_another_request_fails_the_step",
    ),
    Mutant(
        "opening",
        "books.add_to_row(row, reserved=-cost)",
        "pass",
        "test_a_call_takes_its_money_from_the_attempt",
    ),
    Mutant(
        "opening",
        "return newest + 1 if paid_again else newest",
        "return newest",
        "test_paying_again_books_both",
    ),
    Mutant(
        "settling",
        "books.add_to_row(row, reserved=amount)",
        "pass",
        "test_a_released_call_gives_the_attempt_its_money_back",
    ),
    Mutant(
        "settling",
        'and cost > int(newest["cost"]):',
        "and False:",
        "test_keys_send_the_call_again_in_the_same_money",
    ),
    Mutant(
        "settling",
        "elif _older_is_unknown(books, call):",
        "elif False:",
        "test_a_second_sending_that_failed_proves_nothing_of_the_first",
    ),
    Mutant(
        "settling",
        ' or books.pending(row["id"]):',
        ":",
        "test_late_truth_moves_a_held_job_when_nothing_is_unknown",
    ),
    Mutant(
        "settling",
        'if c["decided_by"] and c["decided_by"][0] != "("',
        "if False",
        "test_after_a_person_truth_is_a_correction",
    ),
    Mutant(
        "settling",
        'books.move(call["windows"], spent=difference)',
        "pass",
        "test_after_a_person_truth_is_a_correction",
    ),
    Mutant(
        "holding",
        'if not pending or ending.state == "cancelled":',
        "if True:",
        "test_an_open_call_holds_its_job[sqlite-completed]",
    ),
    Mutant(
        "holding",
        'may_go_on = ending.state != "failed" and used(row) < row["tries"]',
        "may_go_on = True",
        "test_the_last_attempt_is_held_in_any_case",
    ),
    Mutant(
        "holding",
        'if row["cancel_requested"]:',
        "if False:",
        "test_a_cancel_books_what_was_open",
    ),
    Mutant(
        "holding",
        "        give_back(books, row)",
        "        pass",
        "test_a_claim_reserves_and_an_end_gives_back",
    ),
    Mutant(
        "books",
        "return oldest < agent.provider_key_ttl * 1000",
        "return True",
        "test_a_key_that_the_provider_has_forgotten_holds_the_job",
    ),
)


def apply(package: faults.Package) -> None:
    """Breaks a package that was not imported yet, if the environment asks for it."""
    number = os.environ.get(VARIABLE)
    if number is None:
        return
    mutant = MUTANTS[int(number)]
    file = Path(package.tree.folder) / package.tree.name / f"{mutant.module}.py"
    text = file.read_text("utf-8")
    assert text.count(mutant.old) == 1, (mutant, text.count(mutant.old))
    assert not [name for name in sys.modules if name.startswith(package.tree.name)]
    file.write_text(text.replace(mutant.old, mutant.new), "utf-8")
