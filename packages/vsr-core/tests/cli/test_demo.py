def test_without_a_backend_the_demo_fails_and_names_the_commands_that_help(vsr, monkeypatch):
    monkeypatch.setenv("VSR_PLUGINS", "")
    monkeypatch.setattr("vsr_core.cli.demo_run.requires", lambda name: ["vsr-new[x]<2,>=1; extra == 'new'"])
    ran = vsr("demo")
    assert (ran.code, ran.out) == (1, "")
    assert 'pip install "vsr-core[NAME]", where NAME is one of new' in ran.err


def test_without_the_packaged_model_the_demo_names_the_command_that_installs_it(vsr, toy, monkeypatch):
    monkeypatch.setattr("vsr_core.cli.demo_run.MODEL_DISTRIBUTION", "nobody-has-this-model")
    monkeypatch.setattr("vsr_core.cli.demo.MODEL_SOURCE", "pkg://nobody_has_this_model/model", raising=False)
    monkeypatch.setattr("vsr_core.cli.demo_run.MODEL_SOURCE", "pkg://nobody_has_this_model/model")
    ran = vsr("demo", "--json")
    assert ran.code == 1
    assert "pip install nobody-has-this-model" in ran.error["message"]


def test_a_plugin_that_is_not_used_is_named_with_the_reason(vsr, toy, monkeypatch):
    monkeypatch.setenv("VSR_DISABLED_PLUGINS", "toy")
    assert "plugin 'toy' is disabled" in vsr("demo").err


def test_a_backend_that_embeds_nonsense_does_not_pass_for_a_model(vsr, mini):
    ran = vsr("demo", "--config", "vsr.yaml")
    assert (ran.code, ran.out) == (1, "")
    assert "toy:mini answered with" in ran.err


def test_a_demo_whose_configuration_has_no_default_is_a_message(vsr, toy, write):
    write("catalog: {}\n")
    ran = vsr("demo", "--config", "vsr.yaml")
    assert ran.code == 1
    assert "default" in ran.err


def test_a_demo_whose_default_does_not_embed_is_a_message(vsr, kinds, write):
    write("catalog:\n  labels: {source: heads/sequence}\n")
    ran = vsr("demo", "--config", "vsr.yaml")
    assert (ran.code, ran.out) == (1, "")
    assert "the model is for sequence_classification" in ran.err
