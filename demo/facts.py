"""What a picture shows of what was asked: the shared ground of every score about a drawn scene. Numbers are given elsewhere."""

from dataclasses import dataclass

from demo.sentences import name
from demo.world import Asked, Item, Scene, Thing, stands

UNEVEN_RATIO = 1.4  # normal things differ by at most 1.16 in height as seen, a small one by at least 1.5


@dataclass(frozen=True, slots=True)
class Facts:
    """Things asked for and found, relations (colour, number, place) asked for and found, and faults of execution."""

    n_elements: int
    n_elements_found: int
    n_relations: int
    n_relations_found: int
    has_cut: bool
    has_faint: bool
    is_uneven: bool

    @property
    def share_found(self) -> float:
        """Share of everything asked for that is there."""
        return (self.n_elements_found + self.n_relations_found) / (self.n_elements + self.n_relations)

    @property
    def is_as_asked(self) -> bool:
        """Whether everything asked for is there."""
        return self.share_found == 1


def compare(asked: Asked, seen: Scene) -> Facts:
    """Hold the picture against what was asked."""
    relations = [is_kept for item in asked.items for is_kept in _relations(item, seen)]
    if asked.relation:
        relations.append(_is_placed(asked, seen))
    return Facts(
        n_elements=len(asked.items),
        n_elements_found=sum(bool(of_shape(item.shape, seen)) for item in asked.items),
        n_relations=len(relations),
        n_relations_found=sum(relations),
        has_cut=any(thing.is_cut for thing in seen.things),
        has_faint=any(thing.is_faint for thing in seen.things),
        is_uneven=is_uneven(seen.things),
    )


def of_shape(shape: str, seen: Scene) -> list[Thing]:
    """The picture's things of a shape."""
    return [thing for thing in seen.things if thing.shape == shape]


def is_uneven(things: tuple[Thing, ...]) -> bool:
    """Whether one thing is drawn far smaller than another."""
    heights = [thing.size_px for thing in things]
    return bool(heights) and max(heights) > UNEVEN_RATIO * min(heights)


def is_true(claim: Item, seen: Scene) -> bool:
    """Whether the picture holds exactly as many such things as a text says."""
    return sum(claim.color in (None, thing.color) for thing in of_shape(claim.shape, seen)) == claim.n


def in_words(seen: Scene) -> str:
    """What the picture shows, for the judge's explanations: "a red circle, two blue squares"."""
    kinds: dict[tuple[str, str], int] = {}
    for thing in seen.things:
        kinds[thing.color, thing.shape] = kinds.get((thing.color, thing.shape), 0) + 1
    return ", ".join(name(Item(shape, color, n)) for (color, shape), n in sorted(kinds.items())) or "nothing"


def _relations(item: Item, seen: Scene) -> list[bool]:
    things = of_shape(item.shape, seen)
    relations = []
    if item.color:
        relations.append(any(thing.color == item.color for thing in things))
    if item.n > 1:
        relations.append(len(things) == item.n)
    return relations


def _is_placed(asked: Asked, seen: Scene) -> bool:
    first, second = (of_shape(item.shape, seen) for item in asked.items)
    return bool(asked.relation) and any(stands(asked.relation or "", a, b) for a in first for b in second)
