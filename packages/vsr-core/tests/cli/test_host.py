from vsr_core.cli.host import cpu_quota, examine_folder


def test_a_folder_that_is_not_there_yet_is_examined_where_it_will_be_made(tmp_path):
    found = examine_folder("cache", tmp_path / "a" / "b", way_out="-")
    assert found.mark == "ok"
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_to_is_a_failure_with_a_way_out(tmp_path):
    (tmp_path / "file").touch()
    found = examine_folder("cache", tmp_path / "file", way_out="set VSR_CACHE_DIR")
    assert (found.mark, found.way_out) == ("fail", "set VSR_CACHE_DIR")


def test_the_quota_of_a_container_is_read_in_processors(tmp_path):
    assert cpu_quota(tmp_path) is None
    (tmp_path / "cpu.max").write_text("max 100000\n")
    assert cpu_quota(tmp_path) is None
    (tmp_path / "cpu.max").write_text("150000 100000\n")
    assert cpu_quota(tmp_path) == 1.5
