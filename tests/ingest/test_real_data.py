"""Ingest on real files: pictures of four models, the records seed 002 was written for, recorded judgements."""

import polars as pl


def test_sixteen_real_pictures(needs_salon_data, ingest_rows):
    result, rows = ingest_rows({"reader": "manifest", "path": "generated_images/manifest.jsonl"}, folder=needs_salon_data)
    assert result.n_by_status == {"ok": 16}
    assert set(rows["image_treatment"]) == {"none"}
    assert rows["prompt"].n_unique() == 4
    assert sorted(rows["model"].unique()) == ["DF-IF", "OJ", "SD14", "SD21"]


CAPTION_REFERENCES = {
    "reader": "manifest",
    "path": "anycap/anycapeval_image_ref_style.jsonl",
    "model": "any",
    "columns": {"reference": "conversations[1].value", "caption_type": "restriction[0]", "item_id": "id"},
}


def test_223_references_without_pictures(needs_salon_data, ingest_rows):
    source = CAPTION_REFERENCES | {"columns": CAPTION_REFERENCES["columns"] | {"image": ""}}
    result, rows = ingest_rows(source, folder=needs_salon_data)
    assert result.n_by_status == {"ok": 223}
    assert sorted(rows["caption_type"].unique()) == ["brief", "detail", "narrative", "poem", "theme"]
    assert rows["reference"].null_count() == 0
    assert rows["output"].null_count() == 223


def test_pictures_that_are_not_there_leave_the_texts(needs_salon_data, ingest_rows):
    result, rows = ingest_rows(CAPTION_REFERENCES, folder=needs_salon_data)
    assert result.n_by_status == {"missing_file": 223}
    assert rows["reference"].null_count() == 0


def test_2000_caption_pairs(needs_salon_data, ingest_rows):
    source = {"reader": "manifest", "path": "anycap/caption_pairs.jsonl", "columns": {"image": "", "model": "source"}}
    result, rows = ingest_rows(source, folder=needs_salon_data)
    assert result.n_by_status == {"ok": 2000}
    assert rows["model"].n_unique() == 6
    assert rows.select(pl.col("caption_type", "output", "reference").null_count()).row(0) == (0, 0, 0)


def test_982_judgements_of_one_aspect(needs_salon_data, ingest_rows):
    columns = {"image": "", "model": "generator", "item_id": "uid"}
    source = {"reader": "manifest", "path": "viescore_t2i/gpt4o_judgements.jsonl", "columns": columns, "where": {"aspect": "SC"}}
    result, _ = ingest_rows(source, folder=needs_salon_data)
    assert result.n_by_status == {"ok": 982}


def test_geneval_prompts_keep_their_tags(needs_salon_data, ingest_rows):
    source = {
        "reader": "manifest",
        "path": "geneval/evaluation_metadata.jsonl",
        "model": "m",
        "columns": {"image": "", "category": "tag"},
    }
    result, rows = ingest_rows(source, folder=needs_salon_data)
    assert result.n_ok == 553
    assert rows["category"].n_unique() == 6
