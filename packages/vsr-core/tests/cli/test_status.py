def test_the_page_shows_configuration_backends_roles_models_and_places(vsr, mini, write, tmp_path):
    write("catalog:\n  mini: {source: mini}\nroles:\n  embedding: {default: ['toy:mini']}\n")
    out = vsr("status").out
    for part in (str(tmp_path / "vsr.yaml"), str(tmp_path / "cache"), "declared", "toy:mini", "default"):
        assert part in out


def test_the_status_is_one_json_object_with_the_paths(vsr, mini, tmp_path):
    body = vsr("status", "--json").body
    assert body["config"] == str(tmp_path / "vsr.yaml")
    assert body["paths"] == {"cache": str(tmp_path / "cache"), "hub": str(tmp_path / "hub" / "hub")}
    assert [backend["name"] for backend in body["backends"]] == ["toy"]
    assert [model["backend_id"] for model in body["models"]] == ["toy:mini"]


def test_a_backend_that_cannot_be_made_is_shown_as_broken(vsr, toy, write):
    write("backends:\n  toy: {wheels: 4}\n")
    ran = vsr("status")
    assert ran.code == 0
    assert "broken" in ran.out
    assert "wheels" in ran.out


def test_without_anything_installed_the_page_says_so(vsr, monkeypatch):
    monkeypatch.setenv("VSR_PLUGINS", "")
    out = vsr("status").out
    assert out.count("none; ") == 4
