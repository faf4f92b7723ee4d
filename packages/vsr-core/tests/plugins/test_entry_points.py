from __future__ import annotations

import sys

from importlib_metadata import EntryPoint
from vsr_core.plugins.entry_points import find_installed, sort_out


def found(plugins):
    return [(each.source.name, each.source.distribution, each.source.version) for each in plugins.plugins]


def test_plugins_are_sorted_by_name_then_distribution(site):
    site.install("zzz", plugins={"beta": "planted_b", "alpha": "planted_a"})
    site.install("aaa", plugins={"beta": "planted_c"})
    assert found(find_installed()) == [("alpha", "zzz", "1.0"), ("beta", "aaa", "1.0"), ("beta", "zzz", "1.0")]


def test_the_entry_point_is_kept_and_nothing_is_imported(site):
    site.install("one", plugins={"one": "planted_missing:thing"})
    (only,) = find_installed().plugins
    assert only.source.entry_point == "planted_missing:thing"
    assert "planted_missing" not in sys.modules


def test_an_entry_point_written_twice_is_one(site):
    metadata = site.install("one", plugins={"one": "planted_one"})
    with (metadata / "entry_points.txt").open("a") as file:
        file.write("one = planted_one\n")
    assert found(find_installed()) == [("one", "one", "1.0")]


def test_the_same_folder_twice_on_the_path_changes_nothing(site, monkeypatch):
    site.install("one", plugins={"one": "planted_one"})
    monkeypatch.setattr(sys, "path", [str(site.folder), *sys.path])
    plugins = find_installed()
    assert found(plugins) == [("one", "one", "1.0")]
    assert plugins.warnings == ()


def test_a_stale_egg_info_is_shadowed_and_warned_of(site):
    site.install("one", "0.9", plugins={"one": "planted_old", "gone": "planted_gone"}, form="egg-info")
    site.install("one", "1.0", plugins={"one": "planted_one"})
    plugins = find_installed()
    assert found(plugins) == [("one", "one", "1.0")]
    assert plugins.warnings == (
        "distribution 'one' is installed more than once; 1.0 is used, the entry points of 0.9 are not",
    )


def test_the_first_folder_on_the_path_is_the_one_that_counts(site, tmp_path, monkeypatch):
    first = tmp_path / "first"
    monkeypatch.setattr(sys, "path", [str(first), *sys.path])
    site.install("One_Dist", "2.0", plugins={"one": "planted_one"})
    site.install("one-dist", "1.0", plugins={"one": "planted_one"}, folder=first)
    plugins = find_installed()
    assert found(plugins) == [("one", "one-dist", "1.0")]
    assert len(plugins.warnings) == 1


def test_damaged_metadata_hides_no_other_distribution(site):
    site.install("good", plugins={"good": "planted_good"})
    damaged = site.install("bad", plugins={"bad": "planted_bad"})
    (damaged / "METADATA").unlink()
    plugins = find_installed()
    assert found(plugins) == [("good", "good", "1.0")]
    assert len(plugins.warnings) == 1
    assert "cannot be read" in plugins.warnings[0]


def test_entry_points_that_are_given_are_sorted_and_each_taken_once():
    given = [("b", "m"), ("a", "m"), ("b", "m"), ("b", "n")]
    points = [EntryPoint(name, value, "vsr_core.plugins") for name, value in given]
    assert [(each.source.name, each.source.entry_point) for each in sort_out(points).plugins] == [
        ("a", "m"),
        ("b", "m"),
        ("b", "n"),
    ]
