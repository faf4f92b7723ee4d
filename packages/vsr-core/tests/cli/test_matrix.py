def cells_of(ran):
    return {(cell["backend"], cell["capability"]): cell for cell in ran.body["cells"]}


def test_the_grid_has_a_line_per_capability_and_marks_what_is_derived(vsr, toy):
    lines = [line.split() for line in vsr("matrix").out.splitlines()]
    assert ["embedding", "declared"] in lines
    assert ["similarity", "*", "declared"] in lines
    assert ["guard", "-"] in lines


def test_a_cell_says_how_sure_it_is(vsr, toy):
    assert cells_of(vsr("matrix", "--json"))["toy", "embedding"]["state"] == "declared"
    assert cells_of(vsr("matrix", "--probe", "--json"))["toy", "embedding"]["state"] == "probed"


def test_a_derived_cell_names_what_it_is_derived_from(vsr, toy):
    assert cells_of(vsr("matrix", "--json"))["toy", "similarity"]["derived_from"] == "embedding"


def test_reasons_are_given_cell_by_cell(vsr, toy):
    lines = vsr("matrix", "--why").out.splitlines()
    refused = next(line for line in lines if "guard" in line)
    assert "the backend does not declare it" in refused
    embedding = next(line for line in lines if " embedding " in line)
    assert "with batching" in embedding
    similar = next(line for line in lines if " similarity " in line)
    assert "computed from embedding" in similar


def test_values_are_never_cut_in_a_pipe(vsr, toy):
    assert "…" not in vsr("matrix", "--why").out


def test_without_a_backend_the_way_on_is_named(vsr, monkeypatch):
    monkeypatch.setenv("VSR_PLUGINS", "")
    ran = vsr("matrix")
    assert ran.code == 0
    assert "`vsr plugins`" in ran.out
    assert vsr("matrix", "--json").body["cells"] == []
