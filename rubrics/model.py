"""What a rubric is: Rubric, Variant, Dimension, Rule. Messages are messages.py, reading is loading.py, using rendering.py."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from rubrics.messages import Example, Message
from schemas.records import IMAGE

FIRST, SECOND = "first", "second"
"""The roles that the pictures of the two samples of a pair have in the order in which they are shown."""


REQUEST = "request:"
"""The variants of a rubric's several requests are called by this and the request's name: no category is."""


class ReplyFormat(StrEnum):
    """The form a rubric's prompt asks the judge to answer in."""

    JSON = "json"  # one JSON object
    BRACKET = "bracket"  # one line: [Label: n; Label: n]
    LABEL = "label"  # a line for each dimension: Label: n
    ANSWER = "answer"  # one of the declared answers, and nothing or a reason behind it
    LINES = "lines"  # a line for each item, in their order, which its answer leads
    LIST = "list"  # a list of answers, one for each item in their order, in a tag or under a key; or by the items' ids
    NUMBERS = "numbers"  # of a program: one JSON object of numbers by the dimensions' keys


@dataclass(frozen=True, slots=True)
class Figure:
    """What a derived figure is made of, and how; computed in figures.py. `of`: dimension keys, none: the items."""

    form: str  # mean, weighted_mean, geometric_mean, minimum, product, sqrt_product, all, share, turned
    of: tuple[str, ...] = ()
    weights: tuple[float, ...] = ()
    at_least: float | None = None  # share, all: from where a score counts
    sum_of_ends: float = 0.0  # turned: the two ends of the scale together, of which the number is taken away
    when_parent_fails: str | None = None  # "zero", "left_out": what becomes of an item whose parent has the lowest score
    needs_all: bool = False  # its scale is that of all operands together: it does not apply where one of them does not


@dataclass(frozen=True, slots=True)
class Probability:
    """That a score is an expectation over the answers' token probabilities; `min_mass`: what they must have of it together."""

    is_normalised: bool
    min_mass: float


@dataclass(frozen=True, slots=True)
class Dimension:
    """One thing the judge scores. The scale is inclusive; `step` 1 means whole numbers, None any decimal number.

    With `answers`, each a word and its number, these words alone are said, and the scale is that of their numbers.
    """

    key: str
    labels: tuple[str, ...]  # the prompt's own names for it, the first one being the prompt's output form
    minimum: float
    maximum: float
    step: float | None = None
    at: str | None = None  # JSON only: where the number stands, such as "score[0]"; default: under its label
    or_at: tuple[str, ...] = ()  # the other places it may stand at
    answers: tuple[tuple[str, float], ...] = ()
    not_applicable: tuple[str, ...] = ()  # the words that say the question does not apply here
    figure: Figure | None = None  # derived from others, and said by no reply
    probability: Probability | None = None  # read from the tokens' probabilities, not from the text
    is_lower_better: bool = False  # then no table has it, but a figure that turns it: tables rank what is higher first

    def __hash__(self) -> int:
        """Patterns are looked up by a variant's dimensions several times a reply; equality compares every attribute."""
        return hash(self.key)


@dataclass(frozen=True, slots=True)
class ItemText:
    """A text made of a request's items, under a name that messages hold as they hold a column: `each` for each, joined."""

    each: str
    join: str = ""
    before: str = ""
    after: str = ""
    is_stripped: bool = False


@dataclass(frozen=True, slots=True)
class Items:
    """The column whose JSON list holds a sample's items, asked one a request or together. Names of their fields: items.py."""

    column: str
    is_together: bool
    texts: Mapping[str, ItemText]
    fields: Mapping[str, str]  # what Salon calls a field -> what the source calls it
    kinds: Mapping[str, str] = field(default_factory=dict)  # the source's word -> the dimension its items are counted in


@dataclass(frozen=True, slots=True)
class Condition:
    """True where `column` is null (or not null), or where its value is one of `one_of`."""

    column: str
    is_null: bool | None = None
    one_of: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class WordsOutside:
    """True where the words of `of` differ from those of `reference` by more than `percent` of the reference's."""

    of: str
    reference: str
    percent: int


@dataclass(frozen=True, slots=True)
class Rule:
    """Where all of `when` hold, the scores of `dimensions` must lie in [low, high]; None leaves that end to the scale."""

    name: str
    when: tuple[Condition | WordsOutside, ...]
    dimensions: tuple[str, ...]
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Variant:
    """What is asked in one category (or, with category None, always): its prompt text and its dimensions."""

    category: str | None
    prompt: str | None
    prompt_file: str | None
    dimensions: tuple[Dimension, ...]  # what a reply says; of a rubric with items, of each item
    derived: tuple[Dimension, ...] = ()  # the kinds of items, and the figures
    is_of_items: bool = False  # or of one of several requests: tables have what is derived alone

    @property
    def read_keys(self) -> tuple[str, ...]:
        """Keys of the dimensions a reply says, in the prompt's order."""
        return tuple(dimension.key for dimension in self.dimensions)

    @property
    def published(self) -> tuple[Dimension, ...]:
        """What tables have: the dimensions a judgement says and those derived; of a rubric with items the derived alone."""
        said = () if self.is_of_items else (one for one in self.dimensions if not one.is_lower_better)
        return (*said, *self.derived)

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys of what tables have."""
        return tuple(dimension.key for dimension in self.published)


@dataclass(frozen=True, slots=True)
class Rubric:
    """A rubric, loaded from its folder. `digest` changes with every byte of rubric.toml and of the prompts it names."""

    id: str
    version: str
    title: str
    source: str
    folder: Path
    digest: str
    reply_format: ReplyFormat
    needs: tuple[str, ...]  # sample columns, "image" among them
    may_be_null: frozenset[str]  # those of `needs` a sample may lack
    unit: tuple[str, ...]  # columns whose values name the independent unit of the statistics ("prompt", "image", ...)
    report_by: str  # the column whose values are the reported categories; no value: a category without a name
    dispatch: str | None  # the column that chooses the variant
    value_maps: Mapping[str, Mapping[str, str]]  # column -> source's word -> the prompt's word
    messages: tuple[Message, ...]  # empty: for recorded replies only
    variants: Mapping[str | None, Variant]
    rules: tuple[Rule, ...]
    n_output_tokens_expected: int
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # column -> the only words it may hold, the prompt's
    pictures: tuple[str, ...] = ()  # roles of pictures, where others are needed than `image` alone
    slots: Mapping[str, str] = field(default_factory=dict)  # of a template, beside {column}: how it is written -> column
    examples: Mapping[str, Example] = field(default_factory=dict)  # by file name
    items: Items | None = None
    is_of_pairs: bool = False  # two samples at a time, their pictures in the roles FIRST and SECOND
    requests: Mapping[str, "Rubric"] = field(default_factory=dict)  # each sample is asked each; tables have figures over all
    program: str | None = None  # whose numbers it takes, "name-version", and so the name of its judge: no model is asked

    def variant(self, category: str | None) -> Variant | None:
        """The variant for a category; None where the rubric has no prompt for it."""
        return self.variants.get(category if self.dispatch or (self.requests and category in self.variants) else None)

    @property
    def of_requests(self) -> Mapping[str, "Rubric"]:
        """The rubrics of its several requests, by the variants of these."""
        return {REQUEST + name: rubric for name, rubric in self.requests.items()}

    @property
    def is_of_lists(self) -> bool:
        """Whether a judgement names a list of requests, and what tables have is made of their answers."""
        return self.items is not None or bool(self.requests)

    @property
    def kinds(self) -> frozenset[str]:
        """The dimensions that count a sample's items of a kind, each item by itself."""
        return frozenset(self.items.kinds.values()) if self.items else frozenset()

    @property
    def columns(self) -> tuple[str, ...]:
        """Every text column of a sample that it looks at, in no order that matters."""
        of_rules = [
            name
            for rule in self.rules
            for when in rule.when
            for name in ((when.of, when.reference) if isinstance(when, WordsOutside) else (when.column,))
        ]
        named = (
            *([self.items.column] if self.items else []),
            *self.needs,
            *self.unit,
            self.report_by,
            *([self.dispatch] if self.dispatch else ()),
            *self.words,
            *of_rules,
        )
        return tuple(sorted({*named} - {IMAGE, *self.pictures}))

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles of the pictures it needs; what a sample may lack of them stands in may_be_null."""
        return self.pictures or ((IMAGE,) if IMAGE in self.needs else ())

    @property
    def shared_roles(self) -> tuple[str, ...]:
        """Of a rubric for pairs, the roles of the pictures that both samples have alike: what they were made from."""
        return tuple(role for role in self.roles if role not in {FIRST, SECOND})

    @property
    def dimensions(self) -> tuple[Dimension, ...]:
        """Every dimension that tables have, of every variant, once each, in order of appearance."""
        return tuple({d.key: d for v in self.variants.values() for d in v.published}.values())

    @property
    def said(self) -> tuple[Dimension, ...]:
        """Every dimension that a reply says, of every variant, once each."""
        return tuple({d.key: d for v in self.variants.values() for d in v.dimensions}.values())

    @property
    def keys_in_every_variant(self) -> frozenset[str]:
        """The dimensions for which a total over categories exists (DESIGN: asked in every category)."""
        asked = [self.variants[None]] if self.requests else self.variants.values()
        return frozenset.intersection(*(frozenset(v.keys) for v in asked))
