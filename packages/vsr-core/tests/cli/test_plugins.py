BROKEN = "raise RuntimeError('no licence')\n"


def test_a_plugin_is_listed_with_what_it_contributes(vsr, toy):
    ran = vsr("plugins")
    assert ran.code == 0
    line = next(line for line in ran.out.splitlines() if line.startswith("toy"))
    assert line.split() == ["toy", "dist-toy", "1.0", "active", "backend", "toy"]


def test_the_report_is_printed_as_json(vsr, toy):
    found = {plugin["name"]: plugin for plugin in vsr("plugins", "--json").body["plugins"]}
    assert found["toy"]["status"] == "active"
    assert found["toy"]["backends"] == ["toy"]


def test_a_broken_plugin_is_listed_with_stage_and_reason_and_is_no_failure_of_the_command(vsr, toy, plant, monkeypatch):
    plant("bad", BROKEN)
    monkeypatch.setenv("VSR_PLUGINS", "toy,bad")
    ran = vsr("plugins")
    assert ran.code == 0
    assert "bad: broken at import: " in ran.out
    assert "no licence" in ran.out


def test_a_disabled_plugin_is_listed_with_who_disabled_it(vsr, toy, monkeypatch):
    monkeypatch.setenv("VSR_DISABLED_PLUGINS", "toy")
    ran = vsr("plugins")
    assert "disabled" in ran.out
    assert "VSR_DISABLED_PLUGINS" in ran.out


def test_the_settings_of_the_configuration_are_used(vsr, toy, write):
    write("plugins: {disabled: [toy]}\n")
    found = {plugin["name"]: plugin for plugin in vsr("plugins", "--json").body["plugins"]}
    assert found["toy"]["status"] == "disabled"


def test_an_explicit_configuration_is_used(vsr, toy, write):
    write("plugins: {disabled: [toy]}\n", name="other.yaml")
    found = {plugin["name"]: plugin for plugin in vsr("plugins", "--config", "other.yaml", "--json").body["plugins"]}
    assert found["toy"]["status"] == "disabled"


def test_warnings_about_the_settings_are_shown(vsr, toy, monkeypatch):
    monkeypatch.setenv("VSR_DISABLED_PLUGINS", "nobody")
    assert "warning: VSR_DISABLED_PLUGINS names 'nobody'" in vsr("plugins").out


def test_a_strict_configuration_makes_a_broken_plugin_an_error(vsr, plant, monkeypatch):
    plant("bad", BROKEN)
    monkeypatch.setenv("VSR_PLUGINS", "bad")
    monkeypatch.setenv("VSR_STRICT_PLUGINS", "1")
    ran = vsr("plugins", "--json")
    assert (ran.code, ran.out) == (1, "")
    assert ran.error["plugin"] == "bad"
