"""The benchmark file: what is accepted, and that every complaint names the key and the line."""

from pathlib import Path

import pytest

from schemas.benchmark.file import load_benchmark
from schemas.benchmark.judges import Judge
from schemas.errors import BenchmarkFileError

GOOD = """\
name = "nightly"
lake = "lake/"
[[sources]]
reader = "geneval"
path = "outputs/{model}/{checkpoint}"
columns = { prompt = "caption" }
[[rubrics]]
id = "composition"
[[judges]]
model = "gpt-4.1-2025-04-14"
api_key_env = "OPENAI_API_KEY"
parameters = { temperature = 0, max_tokens = 600 }
repeats = 1
[limits]
requests_per_minute = 500
tokens_per_minute = 200_000
max_usd = 25.0
[gate]
min_coverage = 0.99
[nightly]
schedule = "0 2 * * *"
timezone = "UTC"
baseline = "sdxl/base"
"""


def _write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "b.toml"
    path.write_text(text)
    return path


def test_the_example_of_the_manual_loads(tmp_path: Path) -> None:
    benchmark = load_benchmark(_write(tmp_path, GOOD))
    assert benchmark.judges[0].parameters == {"temperature": 0, "max_tokens": 600}
    assert benchmark.path(benchmark.lake) == tmp_path / "lake"
    assert benchmark.gate.min_coverage == 0.99


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        pytest.param(
            "repeats = 1", "repeat = 1", r"line 13: judges\[0\]\.repeat is not a key here; allowed: .*repeats", id="unknown key"
        ),
        pytest.param('reader = "geneval"', 'reader = ""', r"line 4: sources\[0\]\.reader: ", id="no reader"),
        pytest.param(
            "min_coverage = 0.99",
            "min_coverage = 99",
            r"line 19: gate\.min_coverage: .*less than or equal to 1",
            id="percent for share",
        ),
        pytest.param('name = "nightly"', 'name = "../up"', r"line 1: name: ", id="a name that is a path"),
        pytest.param('name = "nightly"\n', "", r"name is missing; add it", id="no name"),
        pytest.param('id = "composition"', 'id = "a"\n[[rubrics]]\nid = "a"', r"rubrics: 'a' occurs 2 times", id="rubric twice"),
        pytest.param(
            'id = "composition"',
            'id = "a"\nsources = ["x"]',
            r"for the unknown source 'x'; available: source-0",
            id="unknown source",
        ),
        pytest.param("[gate]", "[gates]", r"line 18: gates is not a key here; allowed: .*gate", id="unknown section"),
        pytest.param('lake = "lake/"', "lake = ", r"not valid TOML.*line 2", id="broken TOML"),
        pytest.param(
            'lake = "lake/"', f'lake = "a/{"b" * 256}"', r"line 2: lake: a name in a path has at most 255", id="long name"
        ),
        pytest.param('lake = "lake/"', 'lake = "a\\u0000b"', r"line 2: lake: a path cannot contain a NUL", id="NUL in a path"),
        pytest.param('lake = "lake/"', 'folder = "x"', r"line 2: folder is not a key", id="an internal field"),
        pytest.param("repeats = 1", 'detail = "medium"', r"line 13: judges\[0\]\.detail: .*'low', 'high' or 'auto'", id="detail"),
        pytest.param("repeats = 1", "max_side_px = 8", r"line 13: judges\[0\]\.max_side_px: .*equal to 64", id="a tiny picture"),
        pytest.param("repeats = 1", "share = 20", r"line 13: judges\[0\]\.share: .*less than 1", id="percent"),
        pytest.param("repeats = 1", "share = 0", r"line 13: judges\[0\]\.share: .*greater than 0", id="a share of nothing"),
        pytest.param(
            "repeats = 1", 'detail = "low"\nmax_side_px = 1024', r"max_side_px = 1024 beside detail = .*512 or less", id="both"
        ),
        pytest.param(
            "repeats = 1", "recorded = true\nshare = 0.1", r"means nothing is sent, but share is about what is sent", id="unsent"
        ),
        pytest.param(
            "[limits]",
            '[[judges]]\nmodel = "gpt-4.1-2025-04-14"\n[limits]',
            r"judges: 'gpt-4.1-2025-04-14' occurs 2 times; .* a name",
            id="a judge twice",
        ),
        pytest.param(
            "[limits]",
            '[[judges]]\nmodel = "gpt-4.1-2025-04-14"\nname = "again"\nparameters = { max_tokens = 600, temperature = 0 }\n'
            "share = 0.1\n[limits]",
            r"'gpt-4.1-2025-04-14' and 'again' send gpt-4.1-2025-04-14 the same requests; let them differ in .*max_side_px",
            id="a judge twice under two names",
        ),
        pytest.param('lake = "lake/"', 'runner = "spark"', r"line 2: runner: .*'local', 'processes' or 'dask'", id="a runner"),
        pytest.param("[gate]", "[workers]\nn = 0\n[gate]", r"line 19: workers\.n: .*greater than or equal to 1", id="no worker"),
        pytest.param(
            "[gate]",
            '[workers]\naddress = "10.0.0.7"\n[gate]',
            r"line 19: workers\.address: .*tcp",
            id="an address without a port",
        ),
        pytest.param(
            "[gate]",
            "[workers]\ncount = 4\n[gate]",
            r"line 19: workers\.count is not a key here; allowed: address, n",
            id="count",
        ),
        pytest.param('"0 2 * * *"', '"0 25 * * *"', r"line 21: nightly\.schedule: '0 25 \* \* \*' is not a cron line", id="cron"),
        *(
            pytest.param('"0 2 * * *"', f'"{line}"', rf"line 21: nightly\.schedule: .*{told}", id=line)
            for line, told in (
                ("0 0 2 * * *", "not a cron line of five fields"),
                ("@daily", "not a cron line of five fields"),
                ("0 2 */2 * 1", r"begins on days of the month \*/2 and on .*; write \* alone"),
                ("0 2 15 * */2", "write .* alone"),
                ("0 2 30 2 1", "none of its months has a day 30"),
                ("0 2 LW * *", "does not read LW as day of the month"),
                ("0 2 * * 5L", "does not read 5L as day of the week"),
                ("0 2 L/2 * *", "does not read L/2 as"),
                ("0 2 * * 6/2", "does not read 6/2 as"),
                ("0 2 * * MON-MON", "takes MON-MON as day of the week for a whole round; write MON"),
                ("0 2 * * sun-0", "write SUN"),
                ("59/40 2 * * *", "takes 59/40 as minute for a whole round; write 59"),
                ("0 2 * 12/3 *", "write 12"),
                ("0 2 1 * 1#2", r"with # alone"),
                ("0 2 * * 0#5,1", r"with # alone"),
                ("0 2 1,15,30 * *", "about the first of March .* write days up to 28"),
                ("0 2 */3 * *", "days up to 28"),
                ("0 2 30,L * *", "days up to 28"),
            )
        ),
        pytest.param(
            "[limits]",
            '[judges.price]\ngpu_hour = 1\njudgements_per_hour = 1\n[[judges]]\nmodel = "n"\nrepeats = 0\n[limits]',
            r"line 19: judges\[1\]\.repeats",
            id="behind a table of its own",
        ),
        pytest.param(
            "[gate]", "[ratings]\nscale = { min = -inf, max = inf }\n[gate]", r"ratings\.scale\.min: .*finite", id="inf"
        ),
        pytest.param(
            "[gate]", "[statistics.stopping]\nlooks = [0.5, nan, 1.0]\n[gate]", r"line 19: .*looks\[1\]: .*finite", id="nan"
        ),
        *(
            pytest.param(
                "repeats = 1",
                f'base_url = "http://127.0.0.1:8000/v1"\nserver = {{ command = ["x"], {key} }}',
                rf"line 14: {told}",
                id=key[:20],
            )
            for key, told in (
                (f'weights = "{"a" * 300}"', r".*weights: a name in a path has at most 255"),
                ('weights = "a\\u0000"', r".*weights: a path cannot contain a NUL"),
                ('weights = ""', r".*weights: '' is empty"),
                ('version = ["a\\u0000"]', r".*version\[0\]: .*holds a NUL"),
            )
        ),
        pytest.param('"UTC"', '"Mars/Base"', r"line 22: nightly\.timezone: 'Mars/Base' is not a time zone", id="time zone"),
        pytest.param(
            "repeats = 1",
            'base_url = "judge.local/v1"',
            r"line 13: judges\[0\]\.base_url: .*write https://[^\n]*\Z",  # and nothing of the key's variable, which hangs on it
            id="no scheme",
        ),
        pytest.param(
            "repeats = 1",
            'base_url = "http://u:p@h/v1"',
            r"line 13: judges\[0\]\.base_url: it holds a user name or a",
            id="login",
        ),
        pytest.param(
            "repeats = 1",
            'base_url = "http://localhost/v1\\r\\nX: y"',
            r"line 13: judges\[0\]\.base_url: it holds the character '\\r', which is part of no address; remove it",
            id="a line break in an address",
        ),
        pytest.param(
            "repeats = 1",
            'base_url = " http://localhost/v1"',
            r"base_url: it holds the character ' ', which",
            id="a blank in one",
        ),
        pytest.param("repeats = 1", 'base_url = "http://localhost/v1#x"', r"base_url: what follows # is never", id="a fragment"),
        pytest.param(
            "gpt-4.1-2025-04-14", " ", r"line 10: judges\[0\]\.model: ' ' is not a model's name: it is blank; write", id="blank"
        ),
        pytest.param(
            "gpt-4.1-2025-04-14",
            "__pooled__",
            r"line 10: judges\[0\]\.model: '__pooled__' is not a model's name: names that begin and end with __ are Salon's own",
            id="pooled",
        ),
        pytest.param(
            "gpt-4.1-2025-04-14",
            "gpt\\u0000\\n4",
            r"line 10: judges\[0\]\.model: 'gpt\\x00\\n4' is not a model's name: it holds '\\x00'; write the provider's",
            id="a NUL in a name",
        ),
        pytest.param(
            "[gate]",
            '[pairs]\nmeet = "each_other"\n[gate]',
            r"line 19: pairs\.meet: \"each_other\" is not a list; write \[\"each_other\"\]",
            id="no list",
        ),
        pytest.param("[[judges]]", "[judges]", r"line 9: judges: there may be several; write \[\[judges\]\]", id="one bracket"),
        pytest.param(
            'name = "', 'name = "my ', r"line 1: name: 'my [^']*' is not a name; allowed: letters, digits", id="a blank in a name"
        ),
        pytest.param(
            "temperature = 0",
            'temperature = 0, api_key = "sk-1234567890"',
            r"line 12: judges\[0\]\.parameters: api_key is not allowed as a parameter: .*api_key_env$",
            id="a key for a parameter",
        ),
        pytest.param(
            "temperature = 0",
            'extra_headers = { Authorization = "Bearer x" }',
            r"line 12: .*Authorization is not allowed as a parameter",
            id="a key in a header",
        ),
        pytest.param(
            "temperature = 0",
            'extra_body = { chat_template_kwargs = { a = [{ "api-key" = 1 }] } }',
            r"line 12: .*parameters: chat_template_kwargs\.a\[0\]\.api-key is not allowed as a parameter",
            id="a key deep inside",
        ),
        pytest.param("temperature = 0", "top_p = nan", r"line 12: .*top_p = nan cannot be written as JSON", id="no number"),
        pytest.param(
            "temperature = 0", "x = [{ y = 2026-01-01 }]", r"x\[0\]\.y = 2026-01-01 cannot be written as JSON", id="a date"
        ),
        pytest.param("temperature = 0", "seed = 9223372036854775808", r"seed = 9223372036854775808 cannot", id="a long number"),
        pytest.param(
            "temperature = 0", "extra_body = 3", r"line 12: .*extra_body must be a table", id="an extra body that is none"
        ),
        pytest.param(
            "temperature = 0",
            "temperature = 0, extra_body = { temperature = 1 }",
            r"line 12: .*temperature is both in extra_body and outside it",
            id="a parameter twice",
        ),
        pytest.param(
            "repeats = 1",
            "price = { input = 1.0 }",
            r"line 13: judges\[0\]\.price\.input is not a key here; allowed: .*input_usd_per_million",
            id="price",
        ),
        pytest.param("repeats = 1", 'repeats = 1\n[[judges]]\nmodel = "gpt-4.1-2025-04-14"', r"occurs 2 times", id="judge twice"),
        pytest.param("repeats = 1", "share = 40", r"share: 40: input should be less than 1; 40 % is 0.4$", id="40 per cent"),
        pytest.param(
            '"0 2 * * *"',
            '"0 2 * * *"\nfinish_by = "8"',
            r"line 22: nightly\.finish_by: '8' is not a time of day such as \"08",
            id="8",
        ),
        pytest.param("repeats = 1", "repeats = 1\nrepeats = 2", r"TOML: line 14: the key repeats occurs twice", id="key twice"),
        pytest.param(
            "max_usd = 25.0",
            'max_usd = "1"',
            r"line 17: limits\.max_usd: '1' is in quotes, .*write it without quotes",
            id="quoted",
        ),
        pytest.param("repeats = 1", 'recorded = "true"', r"judges\[0\]\.recorded: 'true' is in quotes", id="a truth quoted"),
        pytest.param(
            "max_tokens = 600",
            'max_tokens = "300"',
            r"line 12: .*parameters: max_tokens = '300' is a text and does not limit anything",
            id="bound",
        ),
        pytest.param("OPENAI_API_KEY", "my key", r"line 11: .*api_key_env: this is not the name of an envi", id="no name"),
    ],
)
def test_a_complaint_names_the_key_and_the_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in GOOD
    with pytest.raises(BenchmarkFileError, match=said):
        load_benchmark(_write(tmp_path, GOOD.replace(old, new, 1)))


KEYS = ["sk-proj-1234567890abcdef", "AIzaSyA1234567890abcdefghijkl", "hf_abcdefghijklmnopqrstuv", "aB3" * 12]


@pytest.mark.parametrize("key", KEYS)
def test_a_key_in_place_of_its_variables_name_is_not_shown(tmp_path: Path, key: str) -> None:
    with pytest.raises(BenchmarkFileError, match=r"api_key_env: this looks like a key, but must be the NAME of the") as raised:
        load_benchmark(_write(tmp_path, GOOD.replace("OPENAI_API_KEY", key, 1)))
    assert key not in str(raised.value)


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "hf_token_of_our_team", "key2", "OpenAI_Key_For_Team_2_In_Berlin"])
def test_any_variable_may_hold_the_key(tmp_path: Path, name: str) -> None:
    (judge,) = load_benchmark(_write(tmp_path, GOOD.replace("OPENAI_API_KEY", name, 1))).judges
    assert judge.api_key_env == name


def test_a_key_twice_in_the_files_last_line_is_named(tmp_path: Path) -> None:
    with pytest.raises(BenchmarkFileError, match=r"not valid TOML: line \d+: the key lake occurs twice in its section; remove"):
        load_benchmark(_write(tmp_path, 'lake = "a"\nname = "b"\nlake = "c"'))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BenchmarkFileError, match=r"the benchmark file .* does not exist; salon new .* begins one"):
        load_benchmark(tmp_path / "none.toml")
    with pytest.raises(BenchmarkFileError, match="cannot be read as a benchmark file"):
        load_benchmark(tmp_path)


def test_parameters_are_any_json_and_those_of_extra_body_stand_beside_the_others() -> None:
    given = {
        "temperature": 0, "logit_bias": {"50256": -100}, "chat_template_kwargs": {"enable_thinking": False}, "stop": None,
        "extra_body": {"mm_processor_kwargs": {"max_pixels": 1280 * 28 * 28}, "provider": {"order": ["a", "b"], "x": [[1.5]]}},
    }  # fmt: skip
    judge = Judge(model="m", parameters=given)
    extra = given.pop("extra_body")
    assert judge.parameters == given | extra
    assert Judge(model="m", parameters=given | extra) == judge


@pytest.mark.parametrize(
    ("said", "expected"),
    [({}, "OPENAI_API_KEY"), ({"provider": "anthropic"}, "ANTHROPIC_API_KEY"), ({"provider": "gemini"}, "GEMINI_API_KEY"),
     ({"provider": "gemini", "api_key_env": "MINE"}, "MINE")],
)  # fmt: skip
def test_the_key_of_one_provider_is_no_others_by_default(said: dict[str, str], expected: str) -> None:
    assert Judge(model="m", **said).api_key_env == expected


def test_one_model_behind_two_providers_is_two_judges(tmp_path: Path) -> None:
    judges = '[[judges]]\nmodel = "m"\nname = "a"\n[[judges]]\nmodel = "m"\nname = "b"\nprovider = "gemini"\n'
    loaded = load_benchmark(_write(tmp_path, GOOD.partition("[[judges]]")[0] + judges))
    assert [judge.provider for judge in loaded.judges] == ["openai", "gemini"]
