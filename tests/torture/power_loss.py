"""The long form of the power cuts: a run is recorded, and every state that a cut after an operation may leave is checked.

python tests/torture/power_loss.py [--samples 12] [--every 1] [--folder /dev/shm] [--journaled] [--first]

Every distinct state is opened and read; from every Nth of those of different shapes (which files there are, what the ledger
holds) the run is gone on with. What may be left is power_cuts/disk.py. Ends with 1 where anything was wrong.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from harness import Recorder, process_pool
from power_cuts.replaying import Replay, record


def main() -> int:
    """Record, check, go on; print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=12)
    parser.add_argument("--every", type=int, default=1, help="go on from every Nth shape of a state; 0: from none")
    parser.add_argument("--folder", type=Path, help="where the lakes stand (default: the system's temporary folder)")
    parser.add_argument("--journaled", action="store_true", help="a sync of anything commits all names before it, as ext4 does")
    parser.add_argument("--first", action="store_true", help="the first run of a lake, not one over a published lake")
    asked = parser.parse_args()
    recorder = Recorder()
    with tempfile.TemporaryDirectory(dir=asked.folder) as scratch, process_pool(Path(scratch) / "pool") as pool:
        made = record(Path(scratch), pool, recorder, asked.samples, is_grown=not asked.first)
        print(f"{len(made.done):,} operations recorded; all of them applied give the lake, byte for byte", flush=True)
        replay = Replay(made, pool, recorder)
        shapes: set[str] = set()
        started_s = time.monotonic()
        for state in replay.states(is_journaled=asked.journaled):
            shape = replay.check(state)
            if shape not in shapes and asked.every and len(shapes) % asked.every == 0:
                replay.resume(state)
            shapes.add(shape)
            if time.monotonic() - started_s > 60:
                started_s = time.monotonic()
                print(f"  {dict(replay.found)}, {len(shapes):,} shapes", flush=True)
        told = (
            f"{replay.counts.n_moments:,} moments, {replay.counts.n_states:,} states, {replay.found['states checked']:,} distinct"
        )
        print(f"{told}, {len(shapes):,} shapes; {replay.found['things wrong']} things wrong", flush=True)
    recorder.close()
    print(f"{dict(replay.found)}", *replay.wrong[:60], sep="\n")
    return 1 if replay.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
