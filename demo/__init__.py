"""The embedded default: a painter of a small world with known truth, and a judge that looks at it. Not a model."""

from pathlib import Path
from typing import TYPE_CHECKING

from demo.painter import SEED, PaintedWorld, paint

if TYPE_CHECKING:
    from schemas.benchmark.file import Benchmark

__all__ = ["SEED", "PaintedWorld", "benchmark", "paint"]


def benchmark(folder: Path, base_url: str, lake: str | None = None) -> "Benchmark":
    """The shipped benchmark file over what was painted into `folder`; `lake` is seen from there, like every path of it."""
    from schemas.benchmark.file import load_benchmark

    shipped = load_benchmark(Path(__file__).with_name("benchmark.toml"))
    judges = [judge.model_copy(update={"base_url": base_url}) for judge in shipped.judges]
    changes: dict[str, object] = {"folder": folder.resolve(), "judges": judges}
    return shipped.model_copy(update=changes | ({} if lake is None else {"lake": lake}))
