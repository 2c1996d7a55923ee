"""Rules that hold for a spout at any time, and for everything when a simulated run has finished."""

from __future__ import annotations

from stormlet.runtime.bolt.task import BoltTask
from stormlet.runtime.spout.messages import GivenUp
from stormlet.runtime.spout.task import SpoutTask
from stormlet.runtime.tasks import Tasks
from stormlet.testing.chaos.witness import Witness


def check_pending(witness: Witness, spout: SpoutTask) -> None:
    """Pending messages are open, or wait for a report, replay or burial, and are not too many (law S3). A spout that
    has died has sent what it had (law F1)."""
    tracker = spout.tracker
    if spout.outbox.inits and not spout.working:
        witness.violation("{} is dead, and {} messages were not sent", spout.name, len(spout.outbox.inits))
    untold = sum(type(tree) is not GivenUp for tree in tracker.outcomes)
    buried = len(tracker.outcomes) - untold
    sent = witness.open_of[spout.plan] + len(spout.outbox.inits)
    known = sent + untold + buried + len(tracker.replays) + len(tracker.hand_overs)
    if tracker.pending != known:
        witness.violation(
            "{} counts {} pending messages, and there are {}", spout.name, tracker.pending, known
        )
    most = spout.context.config.max_spout_pending
    if most is not None and tracker.pending > most and not spout.feed.dies:
        witness.violation("{} has {} messages pending, of at most {}", spout.name, tracker.pending, most)


def check_settled(witness: Witness, tasks: Tasks) -> None:
    """The run has finished: nothing is open, queued, held or waiting, and every account is balanced (law S5)."""
    for acker in tasks.ackers:
        if len(acker.ledger) or acker.load.trees:
            witness.violation(
                "{} has {} open trees, and counts {}", acker.name, len(acker.ledger), acker.load.trees
            )
    for bolt in tasks.all_bolts:
        _check_bolt(witness, bolt)
    for spout in tasks.all_spouts:
        check_pending(witness, spout)
        _check_accounts(witness, spout)
        if spout.tracker.buries:
            witness.burials.check_all_buried(spout.plan)
    witness.tellings.check_all_heard()
    for attempt in witness.open.values():
        witness.violation("{} never had an outcome", witness.journal.tree(attempt.root))


def check_counted(witness: Witness, tasks: Tasks) -> None:
    """The run has crashed: each message is acked, given back, a dead letter, or left over (law N1)."""
    for spout in tasks.all_spouts:
        counts = spout.tracker.counts
        ended = counts.acked + counts.given_back + counts.dead_letters + counts.left_over
        if counts.messages != ended or spout.tracker.pending:
            witness.violation(
                "{} had {} messages, of which {} are counted", spout.name, counts.messages, ended
            )
        if not spout.tracker.outcomes and not len(spout.tracker.replays):
            continue
        witness.violation("{} has outcomes or replays after the end", spout.name)


def _check_bolt(witness: Witness, bolt: BoltTask) -> None:
    left = sum(1 for _ in bolt.tuples())
    if left:
        witness.violation("{} has {} tuples left", bolt.name, left)
    unfinished = bolt.worker.method("finish") is not None and bolt.finished_after < bolt.executed
    if unfinished and not witness.has_just_finished_and_died(bolt.plan):
        witness.violation("{} has executed inputs after its finish", bolt.name)


def _check_accounts(witness: Witness, spout: SpoutTask) -> None:
    account, counts, name = witness.accounts[spout.plan], spout.tracker.counts, spout.name
    got, counted = (account.acked, account.failed), (counts.acked, counts.failed)
    if got != counted:
        witness.violation("{} got {} acks and fails, and counts {}", name, got, counted)
    ended = account.kept_acked + counts.dead_letters + counts.left_over
    if account.messages != ended and not spout.feed.dies:
        witness.violation("{} had {} messages, of which {} had an end", name, account.messages, ended)
