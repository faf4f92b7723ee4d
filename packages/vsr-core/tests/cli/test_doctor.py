def marks(ran):
    return {(finding["area"], finding["mark"]) for finding in ran.body["findings"]}


def test_a_sound_machine_is_ok_everywhere_it_matters(vsr, mini):
    ran = vsr("doctor", "--json")
    assert ran.code == 0
    assert ran.body["ok"] is True
    assert {("python", "ok"), ("plugins", "ok"), ("backends", "ok"), ("configuration", "ok"), ("cache", "ok")} <= marks(
        ran
    )


def test_the_probe_of_a_backend_is_shown(vsr, mini):
    out = vsr("doctor").out
    assert "toy: usable" in out
    assert "devices: cpu" in out
    assert "native dtypes: float32" in out


def test_no_backend_at_all_is_a_failure_with_a_command_to_install_one(vsr, monkeypatch):
    monkeypatch.setenv("VSR_PLUGINS", "")
    ran = vsr("doctor")
    assert ran.code == 1
    assert "no backend is usable here" in ran.out
    assert "pip install" in ran.out


def test_a_broken_plugin_is_a_failure_with_a_way_out(vsr, toy, plant, monkeypatch):
    plant("bad", "raise RuntimeError('no licence')\n")
    monkeypatch.setenv("VSR_PLUGINS", "toy,bad")
    ran = vsr("doctor", "--json")
    assert ran.code == 1
    (finding,) = [one for one in ran.body["findings"] if one["area"] == "plugins" and one["mark"] == "fail"]
    assert "no licence" in finding["title"]
    assert "dist-bad" in finding["way_out"]


def test_a_configuration_that_cannot_be_read_is_a_failure_and_hides_nothing_else(vsr, toy, write):
    write("catalogue: {}\n")
    ran = vsr("doctor", "--json")
    assert ran.code == 1
    assert {("configuration", "fail"), ("backends", "ok")} <= marks(ran)


def test_a_configuration_that_is_not_there_is_a_failure(vsr, toy):
    ran = vsr("doctor", "--config", "gone.yaml", "--json")
    assert ran.code == 1
    assert ("configuration", "fail") in marks(ran)


def test_an_impossible_configuration_is_a_failure(vsr, mini, write):
    write("roles:\n  embedding: {default: ['nobody:mini']}\n")
    ran = vsr("doctor")
    assert ran.code == 1
    assert "`vsr check`" in ran.out


def test_a_backend_that_a_role_needs_must_be_usable(vsr, mini, write):
    write("catalog:\n  mini: {source: mini}\nbackends:\n  toy: {wheels: 4}\n  spare: {adapter: toy}\n")
    assert ("backends", "warn") in marks(vsr("doctor", "--json"))
    write(
        "catalog:\n  mini: {source: mini}\nbackends:\n  toy: {wheels: 4}\n  spare: {adapter: toy}\n"
        "roles:\n  embedding: {default: ['toy:mini']}\n"
    )
    assert ("backends", "fail") in marks(vsr("doctor", "--json"))


def test_a_strict_configuration_with_a_broken_plugin_is_a_finding(vsr, plant, monkeypatch):
    plant("bad", "raise RuntimeError('no licence')\n")
    monkeypatch.setenv("VSR_PLUGINS", "bad")
    monkeypatch.setenv("VSR_STRICT_PLUGINS", "1")
    ran = vsr("doctor", "--json")
    assert ran.code == 1
    assert ("plugins", "fail") in marks(ran)


def test_the_engines_are_timed_where_that_is_asked_for(vsr, mini):
    ran = vsr("doctor", "--measure", "--json")
    assert ran.code == 0
    (finding,) = [one for one in ran.body["findings"] if one["area"] == "engines"]
    assert "toy is the only engine that could be timed" in finding["title"]


def test_without_being_asked_nothing_is_timed(vsr, mini):
    assert "toy is the only engine here" in vsr("doctor").out
