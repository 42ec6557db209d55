"""Ways to break the protocol, as data: one passage of one file in other words. Made at import, in a process of its own."""

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.machinery import PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any

_NOT_AWAITED = '__import__("asyncio").ensure_future('


@dataclass(frozen=True, slots=True)
class Mutation:
    """`old` stands once in the module's source, and `new` in its place."""

    module: str
    old: str
    new: str


MUTATIONS: Mapping[str, Mutation] = {
    "no expiry": Mutation(
        "tasks.ledger.process_identity", "(expires_at_us < moment_us and not is_alive):\n            return True",
        "(expires_at_us < moment_us and not is_alive):\n            return False",
    ),
    "expiry believed of a living process": Mutation(
        "tasks.ledger.process_identity", "(expires_at_us < moment_us and not is_alive)", "expires_at_us < moment_us"
    ),
    "double claim": Mutation(
        "tasks.ledger.claims",
        "CLAIMS.c.request_key.in_(_KEYS), CLAIMS.c.owner_id == _OWNER\n", "CLAIMS.c.request_key.in_(_KEYS)\n",
    ),
    "what is answered is asked": Mutation("tasks.ledger.claims", "ours = held - done", "ours = held"),
    "renewing never notices a loss": Mutation(
        "tasks.ledger.claims", "self.is_lost, self._is_known, self.n_lost = True, False, self.n_lost + 1",
        "self._said_s = said_s",
    ),
    "sent without looking at the claim": Mutation(
        "tasks.judge.engine", "if not self.queue.claims.is_sure(request.n_lost):", "if False:"
    ),
    "a claim of before a loss is relied on": Mutation(
        "tasks.ledger.claims", "return n_lost == self.n_lost and self", "return self"
    ),
    "claim given back before the reply is stored": Mutation(
        "tasks.judge.engine", "            reply = answer.as_reply(",
        "            await self.queue.claims.give_back(request.request_key)\n            reply = answer.as_reply(",
    ),
    "told before it is stored": Mutation(
        "tasks.judge.shard_requests", "            opened = await self.ledger.finish(",
        "            self.on_reply(reply)\n            opened = await self.ledger.finish(",
    ),
    "attempt recorded after it is sent": Mutation(
        "tasks.ledger.ledger", "await writer.commit(Write(self._begin, [row], opens=True))",
        _NOT_AWAITED + "writer.commit(Write(self._begin, [row], opens=True)))",
    ),
    "commit not awaited": Mutation(
        "tasks.ledger.ledger", "await writer.commit(*writes)", _NOT_AWAITED + "writer.commit(*writes))"
    ),
    "re-ask not recorded": Mutation(
        "tasks.ledger.ledger", "            writes.append(Write(self._begin, [reask]))", "            pass"
    ),
    "re-ask's second try not recorded": Mutation(
        "tasks.judge.engine", "                opened = None\n", "                pass\n"
    ),
    "a later reply takes the first one's place": Mutation(
        "tasks.ledger.ledger", "self._insert = insert_where_absent(self._engine, REPLIES)",
        "from tasks.ledger.statements import upsert\n                self._insert = upsert(self._engine, REPLIES)",
    ),
    "a commit in doubt is made again": Mutation(
        "tasks.ledger.transactions", 'connection.execute(_WORD, {"id": self._id}).scalar() == commit_id', "False"
    ),
    "lease not counted": Mutation(
        "tasks.ledger.shared_counter", '    later(connection, _MORE, {"id": counter_id, "n": granted})\n', ""
    ),
    "what is left of a lease is not given back": Mutation(
        "tasks.ledger.shared_counter", "        if n_held:", "        if False:"
    ),
    "reservation not released": Mutation(
        "tasks.judge.budget.budget", "self._counter.put_back(in_nusd(reserved_usd), in_nusd(actual_usd))", "pass"
    ),
    "time-outs not charged": Mutation("tasks.judge.budget.cost", "answer.status in MAY_BE_BILLED and answer.is_sent", "False"),
    "429 tried again without a pause": Mutation(
        "tasks.judge.admission", "await self.session.rate_limiter.pause(min(pause_s, MAX_RETRY_AFTER_S))", "pass"
    ),
    "pause not shared": Mutation(
        "tasks.judge.rate_limit.limiter",
        "await self._ledger.alone(lambda connection: store.pause(connection, self.id, seconds, self._clock))", "pass",
    ),
    "each process has the whole rate": Mutation(
        "tasks.judge.rate_limit.store", "    if changed:\n", "    if False:\n"
    ),
    "batch created again at once": Mutation(
        "tasks.judge.batch.state_machine", "asyncio.get_running_loop().time() - sought_s > self.rules.settle_s:", "True:"
    ),
    "a batch's claims stay with its process": Mutation(
        "tasks.judge.batch.state",
        '"batch": batch.token})', '"batch": batch.holder_id})',
    ),
    "mutex for two": Mutation("tasks.ledger.mutex", "        if other is not None:\n            return other\n", ""),
    "mutex not renewed": Mutation("tasks.ledger.mutex", "while not ledger.machine.wait(done, RENEW_EVERY_S):", "while False:"),
}  # fmt: skip


class _Rewriting(SourceFileLoader):
    mutation: Mutation

    def get_data(self, path: str) -> bytes:
        data = super().get_data(path)
        if not path.endswith(".py"):
            raise OSError("no compiled file: it is of the source as it was")
        source = data.decode()
        if source.count(self.mutation.old) != 1:
            raise ValueError(
                f"{path}: what the mutation changes stands there {source.count(self.mutation.old)} times: {self.mutation.old!r}"
            )
        return source.replace(self.mutation.old, self.mutation.new).encode()

    def set_data(self, path: str, data: bytes, *, _mode: int = 0o666) -> None:
        """Nothing of it is kept."""


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, mutation: Mutation) -> None:
        self._mutation = mutation

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> Any:
        """The mutated module's source, changed."""
        if name != self._mutation.module:
            return None
        found = PathFinder.find_spec(name, path, target)
        if isinstance(found, importlib.machinery.ModuleSpec) and found.origin is not None:
            found.loader = _Rewriting(name, found.origin)
            found.loader.mutation = self._mutation
        return found


def break_protocol(name: str) -> None:
    """Have this process import Salon with one mutation. Before anything of it is imported."""
    mutation = MUTATIONS[name]
    if mutation.module in sys.modules:
        raise RuntimeError(f"{mutation.module} is imported already")
    sys.meta_path.insert(0, _Finder(mutation))
