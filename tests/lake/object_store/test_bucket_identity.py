"""A lake's id in a bucket: one for all machines, made once, and not believed to be there because it was."""

from concurrent.futures import ThreadPoolExecutor

from tasks.lake.identity import NAME, find_lake_id, lake_id


def test_machines_that_make_it_at_once_have_the_same(machine, objects):
    roots = [machine(f"m{number}").root for number in range(6)]
    assert {find_lake_id(root) for root in roots} == {None}
    with ThreadPoolExecutor(6) as pool:
        (made,) = set(pool.map(lake_id, roots))
    assert made in objects[NAME].decode()


def test_a_bucket_that_was_emptied_is_another_lake_to_a_folder_that_knew_it(machine, objects):
    root = machine("one").root
    before = lake_id(root)
    del objects[NAME]
    assert find_lake_id(root) is None
    assert lake_id(root) != before
