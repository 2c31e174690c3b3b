"""`unspur doctor` as a person and a script meet it."""

import json


def test_a_person_sees_versions_extras_and_data_and_the_next_command(unspur, tmp_path):
    code, out, err = unspur("doctor", "--data-dir", tmp_path)
    assert code == 0 and "torch" in out and "efficientnet" in out and str(tmp_path) in out
    assert err.startswith("Next: unspur demo")


def test_a_script_gets_one_document(unspur, tmp_path):
    code, out, err = unspur("doctor", "--data-dir", tmp_path, "--json")
    assert code == 0 and err == ""
    assert json.loads(out)["data_dir"] == str(tmp_path)


def test_what_unspur_cannot_do_without_is_a_problem_and_exit_1(unspur, tmp_path, monkeypatch):
    monkeypatch.setattr("unspur.practice.doctor.importlib.metadata.requires", lambda name: ["torch>=99"])
    code, out, err = unspur("doctor", "--data-dir", tmp_path)
    assert code == 1 and "Problem: unspur needs torch>=99, but 2." in out
    assert err.startswith("Next: unspur doctor")
