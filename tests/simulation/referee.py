"""What must hold in every simulated world, looked at where it could break. The promises are those of the design, I1 to I5."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from schemas.records import JudgeReply
from tasks.judge.provider.exchange import Answer
from tests.simulation.scheduler import Node
from tests.simulation.world import EPOCH_S, World

ABSENT_S = 40.0
"""Whoever was longer away from the ledger's server may have been thought gone: what no lease can promise is not asked then."""
UNTIL_ALL_KNOW_S = 2.5
"""A pause of one process is known by then to all that can reach the ledger."""
LATE_S = 1.4
"""How much later than its moment a request may be sent: 0.2 s of the limiter's, and what a slow ledger takes to record it."""

LATE_FAULTS = {"clock", "server clock", "pause", "ledger away"}
"""After these a request may be sent later than it was granted, or be granted by another clock: the provider's to refuse."""
_OPEN = """
    SELECT count(*), count(CASE WHEN ended_at_us IS NULL THEN 1 END), count(CASE WHEN ask_index > 0 THEN 1 END)
    FROM attempts WHERE request_key = ?"""
_STORED = "SELECT ask_index FROM replies WHERE request_key = ?"
_HOLDER = "SELECT o.pid, c.owner_id FROM claims c JOIN owners o ON o.owner_id = c.owner_id WHERE c.request_key = ?"


class ViolationError(Exception):
    """A promise was broken."""


@dataclass(eq=False)
class Sent:
    """A request at the provider. `state`: flying, then answered, failed (no reply, and that was heard) or lost."""

    node: Node
    key: str
    run_id: str
    state: str = "flying"
    text: str | None = None
    batch: str | None = None


@dataclass
class Referee:
    """Hears of everything that is promised something about, and raises ViolationError."""

    world: World
    sent: dict[str, list[Sent]] = field(default_factory=lambda: defaultdict(list))
    spent_usd: Counter[str] = field(default_factory=Counter)
    n_sent: Counter[str] = field(default_factory=Counter)
    moments_s: list[float] = field(default_factory=list)
    paused: list[tuple[Node, float, float]] = field(default_factory=list)
    alone: set[Node] = field(default_factory=set)
    stored: dict[tuple[str, int], bytes] = field(default_factory=dict)
    n_excused: int = 0

    def __post_init__(self) -> None:
        self.world.on_commit = lambda _: self.committed()

    def broken(self, what: str) -> None:
        """Raise."""
        self.world.note(f"BROKEN: {what}")
        self.world.loop.broken = self.world.loop.broken or ViolationError(what)
        raise self.world.loop.broken

    def departs(self, node: Node, key: str, run_id: str, batch: str | None = None) -> Sent:
        """A request is sent: the step that costs money, and what must hold there."""
        world, rows = self.world, self.world.database.rows
        earlier = self.sent[key]
        n_attempts, n_open, n_reasks = rows(_OPEN, key)[0]
        if n_attempts <= len(earlier) or not n_open:
            self.broken(f"I5: {key[:2]} is sent, and no attempt of it is recorded")
        asks = {ask for (ask,) in rows(_STORED, key)}
        others = [other for other in earlier if other.node is not node]
        if 1 in asks or (0 in asks and not n_reasks):
            is_excused = any(self._may_be_thought_gone(other.node) for other in others)
            self._unless(is_excused, f"I1: {key[:2]} is bought again although its reply is stored")
        (holder, owner), *_ = [*rows(_HOLDER, key), (None, None)]
        if holder != node.identity.pid and owner != batch:
            self._unless(self._is_far and world.server_jumped, f"I2: {key[:2]} is sent without its claim")
        kept = {text for (asked, _), text in self.stored.items() if asked == key}
        for other in earlier:
            is_in_hand = other.state in ("flying", "answered") and (other.text is None or other.text.encode() not in kept)
            if is_in_hand and (other.batch is not None or not other.node.is_dead):
                # Of two replies one is kept: the other one's re-ask is as excused as the purchase it comes of.
                is_excused = any(self._may_be_thought_gone(each.node) for each in earlier) or self._has_stalled(
                    node, other, batch
                )
                self._unless(is_excused, f"I2: {key[:2]} is bought while another purchase of it is in hand ({other.state})")
        sent = Sent(node, key, run_id, batch=batch)
        earlier.append(sent)
        if batch is None:
            self._counts(node, sent)
        self.n_sent[run_id] += batch is None
        most = world.scenario.attempts_per_run
        if most is not None and batch is None and not run_id.startswith("last") and self.n_sent[run_id] > most:
            self.broken(f"attempts: {self.n_sent[run_id]} are sent, and {most} are allowed")
        return sent

    @property
    def _is_far(self) -> bool:
        """Whether processes cannot all see one another."""
        return self.world.scenario.is_server and len({each.host for each in self.world.nodes.values()}) > 1

    def _may_be_thought_gone(self, node: Node) -> bool:
        if node.cut_s >= ABSENT_S:  # also on one machine: it lives, and has not said so for a minute
            return True
        return self._is_far and (self.world.server_jumped or node.absent_s >= ABSENT_S)

    def _has_stalled(self, node: Node, other: Sent, batch: str | None) -> bool:
        """Two batches may be made where a process stalls for a minute between its claim of a creation and sending it."""
        return batch is not None and other.batch == batch and max(node.absent_s, other.node.absent_s) >= ABSENT_S

    def _unless(self, is_excused: bool, what: str) -> None:
        self.n_excused += is_excused
        if not is_excused:
            self.broken(what)

    def _counts(self, node: Node, sent: Sent) -> None:
        """The limits: requests a minute, pauses, places."""
        world, scenario = self.world, self.world.scenario
        now_s = world.loop.now_s
        n_in_flight = sum(s.state == "flying" for every in self.sent.values() for s in every if s.node is node)
        if n_in_flight > scenario.concurrency:
            self.broken(f"places: {n_in_flight} are in flight, and {scenario.concurrency} are allowed")
        for who, from_s, until_s in self.paused:
            is_own, knows = who is node, node.absent_s == 0 and now_s > from_s + UNTIL_ALL_KNOW_S and self._is_kept(who, until_s)
            if from_s < now_s < until_s and (is_own or (knows and not world.server_jumped and "clock" not in world.fired)):
                self.broken(f"429: {sent.key[:2]} is sent {until_s - now_s:.2f} s before the pause is over")
        given = scenario.given_per_minute
        if given is None or world.fired.keys() & LATE_FAULTS:
            return
        self.moments_s.append(now_s)
        for back, then_s in enumerate(reversed(self.moments_s)):
            if back + 1 > 1 + given / 60 * (now_s - then_s + LATE_S):
                self.broken(f"rate: {back + 1} are sent in {now_s - then_s:.2f} s, and {given} a minute are allowed")

    def _is_kept(self, who: Node, until_s: float) -> bool:
        """Whether a pause is to stand in the ledger: who is killed, or cut off, before it wrote it there has told nobody."""
        if not who.is_dead and who.cut_s == 0:
            return True
        (kept_us,) = self.world.database.rows("SELECT max(paused_until_us) FROM allowances")[0]
        offset_s = self.world.offsets_s[-1 if self.world.scenario.is_server else 0]
        return kept_us is not None and kept_us / 1e6 >= EPOCH_S + until_s + offset_s

    def pays(self, sent: Sent, usd: float, text: str) -> None:
        """The provider works on it, and bills it."""
        sent.text = text
        self.spent_usd[sent.run_id] += usd
        most = self.world.scenario.max_usd
        if (
            most is not None
            and sent.batch is None
            and not sent.run_id.startswith("last")
            and self.spent_usd[sent.run_id] > most + 1e-12
        ):
            self.broken(f"money: {self.spent_usd[sent.run_id]:.6f} USD are spent, and {most} are allowed")

    def hears_failure(self, node: Node, sent: Sent, answer: Answer) -> None:
        """No reply, and the process knows."""
        sent.state = "failed"
        if answer.retry_after_s and answer.retry_after_s <= 300:
            now_s = self.world.loop.now_s
            self.paused.append((node, now_s, now_s + answer.retry_after_s))

    def told(self, reply: JudgeReply) -> None:
        """Somebody is told of a reply."""
        kept = self.world.database.rows(
            "SELECT reply_text FROM replies WHERE request_key = ? AND ask_index = ?", reply.request_key, reply.ask_index
        )
        if not kept:
            self.broken(f"I1: somebody is told of the reply to {reply.request_key[:2]}, and it is not stored")

    def committed(self) -> None:
        """A transaction was made: no reply is gone, none is another, each was said by the provider."""
        rows = self.world.database.rows("SELECT request_key, ask_index, reply_text FROM replies")
        now = {(key, ask): text for key, ask, text in rows}
        for asked, text in self.stored.items():
            if now.get(asked) != text:
                self.broken(f"I1: the reply to {asked[0][:2]} that was stored is {'another' if asked in now else 'gone'}")
        for (key, ask), text in now.items():
            if (key, ask) not in self.stored and bytes(text or b"").decode() not in {sent.text for sent in self.sent[key]}:
                self.broken(f"I4: the reply that is stored to {key[:2]} was never said")
        self.stored = now

    def enters(self, node: Node) -> None:
        """A process is in the block that only one at a time may be in."""
        others = {other for other in self.alone if not other.is_dead}
        if others and not any(map(self._may_be_thought_gone, {node, *others})):
            self.broken("mutex: two processes are in the block")
        self.alone.add(node)

    def leaves(self, node: Node) -> None:
        """It is out again."""
        self.alone.discard(node)

    def is_done(self, key: str) -> bool:
        """Whether a request needs nothing more, by what is stored."""
        asks = {ask for asked, ask in self.stored if asked == key}
        return 1 in asks or (0 in asks and not self.world.database.rows(_OPEN, key)[0][2])
