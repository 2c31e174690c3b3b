"""Every section, in the order in which a page about runs shows them; those that need only a template are made here."""

from __future__ import annotations

from unspur.report.charts import stage_charts
from unspur.report.context import DataContext, RunContext, RunsContext
from unspur.report.section import Section
from unspur.report.sections.analysis import ANALYSIS
from unspur.report.sections.before_after import BEFORE_AFTER
from unspur.report.sections.data_set import DATA_SET
from unspur.report.sections.embedding import EMBEDDING
from unspur.report.sections.facts import FACTS
from unspur.report.sections.followed import FOLLOWED_MAPS
from unspur.report.sections.gallery import GALLERY
from unspur.report.sections.grid_search import GRID_SEARCH
from unspur.report.sections.headline import HEADLINE
from unspur.report.sections.hero import HERO
from unspur.report.sections.how_made import HOW_MADE
from unspur.report.sections.mining import MINING
from unspur.report.sections.pruning import PRUNING
from unspur.report.sections.selection import SELECTION
from unspur.report.sections.shortcut_effect import SHORTCUT_EFFECT
from unspur.report.sections.stages import STAGES
from unspur.report.sections.summary import SUMMARY

COMPARISON = Section[RunsContext]("comparison", applies=lambda page: len(page.runs) > 1)
RUN_TITLE = Section[RunContext]("run_title")
GROUPS = Section[RunContext]("groups", applies=lambda run: bool(run.tests))
TRAINING = Section[RunContext]("training", lambda run: stage_charts(run.log))
MEANING = Section[object]("meaning")

HEAD: tuple[Section[RunsContext], ...] = (HEADLINE, HERO)
OVERVIEW: tuple[Section[RunsContext], ...] = (COMPARISON,)
DATA: tuple[Section[DataContext], ...] = (DATA_SET,)
RUN: tuple[Section[RunContext], ...] = (
    RUN_TITLE,
    SUMMARY,
    BEFORE_AFTER,
    SHORTCUT_EFFECT,
    GALLERY,
    GROUPS,
    ANALYSIS,
    STAGES,
    MINING,
    PRUNING,
    SELECTION,
    EMBEDDING,
    TRAINING,
    FOLLOWED_MAPS,
    GRID_SEARCH,
    FACTS,
    HOW_MADE,
)
END: tuple[Section[object], ...] = (MEANING,)
