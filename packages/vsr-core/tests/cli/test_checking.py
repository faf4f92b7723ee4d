import json


def test_a_configuration_that_works_is_ok(vsr, mini):
    ran = vsr("check")
    assert ran.code == 0
    assert "ok: " in ran.out


def test_problems_are_printed_by_section_and_exit_1(vsr, mini, write):
    write(
        "catalog:\n  mini: {source: mini}\n  gone: {source: nowhere, backends: [toy]}\n"
        "roles:\n  embedding: {default: ['nobody:mini']}\n"
    )
    ran = vsr("check")
    assert ran.code == 1
    lines = ran.out.splitlines()
    assert lines.index("catalog") < lines.index("roles")
    assert any(line.startswith("  line 5: roles.embedding.default") for line in lines)
    assert "problems in " in lines[-1]


def test_problems_are_json_with_key_line_and_code(vsr, mini, write):
    write("catalog:\n  mini: {source: mini}\nroles:\n  embedding: {default: ['nobody:mini']}\n")
    ran = vsr("check", "--json")
    assert ran.code == 1
    assert ran.body["ok"] is False
    (problem,) = ran.body["problems"]
    assert problem["where"].startswith("roles.embedding.default")
    assert problem["line"] == 4
    assert "nobody" in problem["message"]


def test_a_configuration_that_cannot_be_read_is_an_answer_too(vsr, write):
    write("catalogue: {}\n")
    ran = vsr("check", "--json")
    assert (ran.code, ran.err) == (1, "")
    assert "catalogue" in ran.body["problems"][0]["message"]


def test_a_configuration_that_is_not_there_is_an_error(vsr):
    ran = vsr("check", "--config", "gone.yaml")
    assert (ran.code, ran.out) == (1, "")


def test_without_a_configuration_there_is_nothing_wrong(vsr, toy):
    assert vsr("check", "--json").body | {"notes": []} == {
        "schema": 1,
        "command": "check",
        "ok": True,
        "config": None,
        "problems": [],
        "notes": [],
    }


def test_the_schema_is_printed_ready_for_a_file(vsr):
    schema = json.loads(vsr("schema").out)
    assert "catalog" in schema["properties"]
    assert vsr("schema", "--json").body["json_schema"] == schema
