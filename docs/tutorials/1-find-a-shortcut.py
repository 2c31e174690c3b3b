# %% [markdown]
# # Find a shortcut in your photographs
#
# A folder of images, a folder for each class, and a question: does something give the labels away that is not the
# object? To know the right answer, this notebook draws a mark into pictures of digits. Put your own folder in place
# of `photos`, leave out the planting, and the rest stays as it is.

# %%
from pathlib import Path

from PIL import Image

import unspur

images = 150  # of each class  # tests: 30
folder = Path("tutorial")

# %%
digits = unspur.load("mnist", base="mini").train
for number, name in {3: "three", 5: "five"}.items():
    (folder / "photos" / name).mkdir(parents=True, exist_ok=True)
    for place in (digits.y == number).nonzero().flatten()[:images].tolist():
        picture = Image.fromarray(digits.x[place, 0].numpy()).resize((96, 96))
        picture.save(folder / "photos" / name / f"{place}.png")

# %% [markdown]
# ## Plant a shortcut
#
# In 95 of 100 training images a coloured square goes with the class; in the rest it is the other class's.
# `unspur data plant` does the same on the command line.

# %%
from unspur.data.sets.folder import Folder
from unspur.data.shortcuts.plant_folder import plant

planted = plant(Folder(root=str(folder / "photos")), "square", folder / "marked", conflict=0.05)
print(planted.summary())

# %%
marked = folder / "marked" / "images"
shown = [path for name in ("three", "five") for path in sorted((marked / name).glob("*.png"))[:3]]
sheet = Image.new("RGB", (6 * 100, 96), "white")
for place, path in enumerate(shown):
    with Image.open(path) as picture:
        sheet.paste(picture.convert("RGB").resize((96, 96)), (place * 100, 0))
sheet

# %% [markdown]
# ## Audit
#
# The audit looks at images and labels alone. It asks which places, colours and traces tell the label, corrects for
# having asked many questions, trains a quick model and tests whether it follows what was found. The page that `unspur
# audit` writes shows all of it.

# %%
from unspur.practice.audit.audit import audit
from unspur.practice.audit.target import target_named

target = target_named(str(folder / "marked" / "metadata.csv"), [], None, None)
found = audit(target.source, target=target.words)
print(found.verdict)
print(found.sentence)

# %% [markdown]
# ## Where it is
#
# The leak map: how well the statistics of each cell tell the label, from chance (black) to always (white).

# %%
leak = ((found.leak_map - 0.5).clamp(min=0) * 2 * 255).byte().numpy()
Image.fromarray(leak).resize((240, 240), Image.Resampling.NEAREST)

# %%
for finding in found.findings[:3]:
    print(finding.what)
print("Next:", found.next)
