"""Small rubrics of every kind that doubts are asked of, by name; the shipped ones beside them."""

# ruff: noqa: E501 - a reply is read whole, a line each

import pytest

from rubrics.loading import SHIPPED, find_rubrics, load_rubric
from rubrics.model import Rubric

YES_NO = "answers = { yes = 1, no = 0 }"
TEN = 'scale = { min = 1, max = 10 }\n[[dimensions]]\nkey = "overall_score"\nlabels = ["Rating"]'
# name -> (reply form, what it needs, the rest of the declaration)
KINDS = {
    "rate10": ("label", ["prompt", "image"], TEN),
    "bewertung": ("label", ["prompt", "image"], TEN.replace("10", "5").replace("Rating", "Bewertung")),
    "json10": ("json", ["prompt", "image"], TEN.replace("Rating", "score")),
    "yesno": ("answer", ["prompt", "image"], f'{YES_NO}\n[[dimensions]]\nkey = "overall_score"\nlabels = ["Answer"]'),
    "verdict": (
        "answer",
        ["prompt", "image"],
        'answers = { good = 1, bad = 0, unsure = 0.5 }\n[[dimensions]]\nkey = "overall_score"\nlabels = ["Verdict"]',
    ),
    "duel": (
        "answer",
        ["prompt"],
        'pairs = true\npictures = ["first", "second"]\nanswers = { A = 1, B = 0, tie = 0.5 }\n[[dimensions]]\nkey = "overall_score"\nlabels = ["Winner"]',
    ),
    "checklist": (
        "label",
        ["prompt", "image"],
        YES_NO + "".join(f'\n[[dimensions]]\nkey = "{key}"\nlabels = ["Q{n}"]' for n, key in enumerate(("cat", "mat", "sky"), 1)),
    ),
    "three": (
        "label",
        ["prompt", "image"],
        "scale = { min = 1, max = 5 }"
        + "".join(f'\n[[dimensions]]\nkey = "{key.lower()}"\nlabels = ["{key}"]' for key in ("Style", "Form", "Light")),
    ),
    "aspects": (
        "json",
        ["prompt", "image"],
        "scale = { min = 1, max = 5, step = 1 }"
        + "".join(f'\n[[dimensions]]\nkey = "{key}"' for key in ("alignment", "realism"))
        + '\n[[dimensions]]\nkey = "overall_score"\nlabels = ["overall"]',
    ),
}  # fmt: skip
MESSAGES = '[[messages]]\nrole = "user"\nparts = [{ kind = "template" }%s]\n'


@pytest.fixture(scope="session")
def doubtful(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Rubric]:
    found = find_rubrics(["preference", "alignment", "caption", "interleaved", "image_aspects"], [SHIPPED])
    for name, (form, needs, more) in KINDS.items():
        folder = tmp_path_factory.mktemp("kinds") / name
        folder.mkdir()
        listed = ", ".join(f'"{need}"' for need in needs)
        roles = (
            ['{ kind = "image" }']
            if "image" in needs
            else [f'{{ kind = "image", value = "{one}" }}' for one in ("first", "second")]
        )
        head = f'id = "{name}"\nversion = "1"\ntitle = "T"\nsource = "the tests"\nprompt = "prompt.txt"\nreply = "{form}"\nneeds = [{listed}]\nunit = ["prompt"]\n'
        (folder / "rubric.toml").write_text(f"{head}{more}\n{MESSAGES % ''.join(f', {role}' for role in roles)}")
        (folder / "prompt.txt").write_text("{prompt}: judge it.")
        found[name] = load_rubric(folder)
    return found
