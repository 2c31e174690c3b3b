import pytest

from unspur.data import lettering as module
from unspur.data.lettering import draws, lettering, wrapped


@pytest.mark.parametrize("text", ["cat, place: sea", "Café, Größe: müde", "собака", "日本", "a\u2014b \u00d7 2"])
def test_a_font_is_chosen_that_draws_every_letter_that_is_left(text):
    chosen = lettering(text, 17)
    assert chosen.text and all(draws(chosen.font, letter) for letter in chosen.text)


def test_plain_text_stays_as_it_is():
    assert lettering("cat, place: sea", 17).text == "cat, place: sea"


def test_what_no_font_draws_is_spelt(monkeypatch):
    own = module._fonts(17)[:1]  # Pillow's own has neither letter
    monkeypatch.setattr(module, "_fonts", lambda size: own)
    assert lettering("Café 日本", 17).text == "Cafe U+65E5U+672C"


def test_lines_are_broken_between_words_and_none_is_wider_than_allowed():
    text = "one two three four five six seven"
    lines = wrapped(text, 14, 80)
    assert len(lines) > 1 and " ".join(line.text for line in lines) == text
    assert all(line.width <= 80 for line in lines)
    assert wrapped("incomprehensibilities are long", 14, 40)[0].text == "incomprehensibilities"
    assert wrapped("", 14, 80) == []
