"""What is done with the wheel is what the start page says, and the log has every step."""

from website.scripts import ROOT, script

wheel = script("try_wheel")
PAGE = (ROOT / "docs" / "start.md").read_text(encoding="utf-8")


def test_every_command_but_the_demo_stands_on_the_start_page():
    for photos in (False, True):
        for _, code in wheel.blocks(demo=False, photos=photos):
            assert code in PAGE


def test_photographs_take_the_place_of_the_program_that_writes_pictures():
    commands = [code.split()[:2] for kind, code in wheel.blocks(demo=False, photos=True) if kind == "sh"]
    steps = ["doctor", "audit", "data", "audit", "repair", "predict", "export"]
    assert commands == [["unspur", step] for step in steps]


def test_the_log_has_the_seconds_and_the_last_lines_of_each_step():
    lines = "\n".join(f"line {number}" for number in range(1, 31))
    steps = [wheel.Step("pip install unspur", "", 61.2), wheel.Step("unspur doctor\nls", lines, 4.4)]
    text = wheel.written(steps, "0123456789ab", ("0.2.0", "3.11.7", "2.13.0"), "300 photographs")
    assert "| `pip install unspur` | 61 |\n| `unspur doctor` | 4 |" in text
    assert "... 18 lines before\nline 19\n" in text and "line 18\n" not in text  # 30 lines, of which 12 are kept
    assert "commit 0123456789ab" in text and "300 photographs" in text
