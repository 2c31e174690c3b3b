# make demo: from a fresh clone to a picture of a shortcut.  make test: every check.  Both set themselves up.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test venv lint types browser pytest bench results hostile soak docs docs-test dist

demo: venv
	$(BIN)/unspur demo --out demo

test: lint types pytest

venv: $(STAMP)

# torch first and pinned: an unpinned torch may bring gigabytes of CUDA packages.
$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt torch torchvision
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $(STAMP)

lint: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: venv
	$(BIN)/mypy

# The report is tested in Chromium: as root on Debian it is installed; without it those tests are skipped, but not in CI.
browser:
	@which chromium chromium-browser google-chrome 2>/dev/null | grep -q . \
	  || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
	       && apt-get update -qq && apt-get install -y -qq chromium >/dev/null; } \
	  || echo "No Chromium here: the report's browser tests will be skipped."

# One process more than cores, since some tests wait for processes of their own, and one thread a process: torch's own threads
# would only get in each other's way. Bytecode is kept, also where the environment says otherwise: rewriting every test again
# takes each process seven seconds.
pytest: venv browser
	OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -n $$(($$(getconf _NPROCESSORS_ONLN) + 1)) --dist worksteal

# Every bad input, every kill and every full disk, of which the ordinary tests have a sample: an hour. The counts go to
# results/reliability.jsonl, and with `make results` to results/reliability.md.
hostile: venv
	rm -f results/reliability.jsonl
	OMP_NUM_THREADS=1 UNSPUR_RELIABILITY=$(CURDIR)/results/reliability.jsonl $(BIN)/pytest -n auto -m '' tests/hostile tests/runs/test_supervisor.py

# 200 tiny runs with workers killed at random and a Ray node dying; adds its counts to the same file.
soak: venv
	OMP_NUM_THREADS=1 $(BIN)/python tests/hostile/soak.py --minutes 60 --ray --out results/reliability.jsonl

bench: venv
	for file in benchmarks/[a-z]*.py; do $(BIN)/python $$file || exit 1; done

# Every table of README.md and results/ from the JSON in results/; a test says when they differ.
results: venv
	$(BIN)/python scripts/make_results.py

# The site, in build/site/html: pages, reference from the code, and what the commands of its first page print (a few
# minutes, once for each version of the package). Warnings are errors; nothing is downloaded.
docs: venv
	OMP_NUM_THREADS=2 $(BIN)/python scripts/make_site.py

# The tests of the site that take longer: it is built, opened in Chromium and searched; longer blocks and tutorials are run.
docs-test: venv browser
	OMP_NUM_THREADS=1 $(BIN)/pytest -m site

# Wheel and sdist in dist/; the wheel is installed away from the checkout and does what the site's first page does.
dist: venv
	rm -rf dist build/lib build/bdist.*
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python scripts/try_wheel.py --demo dist/*.whl
