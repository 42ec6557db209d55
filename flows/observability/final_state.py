"""The end of a deployed flow run that its server did not take: told again, by the process itself, before it ends.

Prefect's engine gives up at a server's 500, and tries FAILED where COMPLETED was not taken: a published run then stands there as
failed, or goes on for ever, and its process ends with 1. Here the server is asked what it believes, and told until it does.
"""

import atexit
import os
import sys
import time
from uuid import UUID

from prefect import get_client
from prefect.client.schemas.objects import State
from prefect.states import Completed, Crashed, Failed

from flows.observability.log_lines import complain
from flows.observability.redaction import redacted
from flows.observability.terminal import hanging, is_prefect_away
from schemas.errors import StoppedError

PATIENCE_S = 300.0
POLL_S = 2.0


def tell_at_the_end(flow_run_id: UUID | str, error: Exception | None, end: State | None = None) -> None:
    """Before this process ends, see that the server believes how its flow ended: with `error`, told to stop, or as `end`."""
    failed = Crashed if isinstance(error, StoppedError) else Failed
    failure: State | None = None if error is None else failed(message=hanging(redacted(str(error)))[:1000])
    well: State = Completed() if end is None else Completed(name=end.name, message=end.message)
    atexit.register(_tell, UUID(str(flow_run_id)), failure, well)


def _tell(flow_run_id: UUID, failure: State | None, well: State) -> None:
    until_s, said = time.monotonic() + PATIENCE_S, ""
    while True:
        try:
            is_news = _told(flow_run_id, failure, well)
        except Exception as error:  # noqa: BLE001 - at the very end there is nobody to raise it to
            if not is_prefect_away(error):
                complain(f"the Prefect server was not told how the run ended ({type(error).__name__}: {error})")
                return
            if not said:
                complain(
                    f"the Prefect server does not accept this run's final state ({error}); trying again for {PATIENCE_S:g} s"
                )
            said = str(error)
        else:
            if is_news or said:
                _end(failure)
            return
        if time.monotonic() > until_s:
            complain(f"the Prefect server was not told how the run ended ({said}): it still shows it as running")
            _end(failure)
        time.sleep(POLL_S)


def _told(flow_run_id: UUID, failure: State | None, well: State) -> bool:
    """Whether the server had to be told: it believed that the run goes on, or that it failed where it did not."""
    with get_client(sync_client=True) as client:
        state = client.read_flow_run(flow_run_id).state
        if state is not None and state.is_final() and (failure is not None or state.is_completed() or state.is_cancelled()):
            return False
        if state is not None and state.is_cancelling() and failure is not None:
            return False  # the worker that was told so by a person says the rest
        client.set_flow_run_state(flow_run_id, failure or well, force=True)
    return True


def _end(failure: State | None) -> None:
    """With the run's own exit code: what the engine ended with is the server's."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0 if failure is None else 1)
