# %% [markdown]
# # Repair it
#
# A classifier of digits, 0-4 against 5-9, in which a blue square gave the class away in 99 of 100 training images.
# This notebook trains it, shows where it looks, hides that (MaskTune), and looks again. The other way, by what an
# audit found, is one command: `unspur repair`.

# %%
import torch
from PIL import Image

import unspur

epochs = 6  # tests: 1
data = unspur.load("biased_mnist", base="mini", conflict=0.01)
model = unspur.build_model("small_cnn", data)
fit = unspur.MaskTune(erm=unspur.SGD(lr=0.01, epochs=epochs)).fit(model, data.train, seed=0)

# %% [markdown]
# ## Before and after
#
# `original` has no square. In `biased` the square sits on the wrong class: a classifier that looks at the square is
# wrong.

# %%
for name, stage in {"plain training": fit.stages["erm"], "MaskTune": fit.model}.items():
    original, biased = (unspur.evaluate(stage, data)[test]["accuracy"] for test in ("original", "biased"))
    print(f"{name}: {original:.1%} without the square, {biased:.1%} where it misleads")

# %% [markdown]
# ## Where each of them looks
#
# Above the image, below it the map of plain training, then of MaskTune: brighter is what counts more.


# %%
def picture_of(maps: torch.Tensor) -> Image.Image:
    """Maps side by side, each stretched to its own largest value."""
    sheet = Image.new("L", (len(maps) * 100, 96), 255)
    for place, one in enumerate(maps):
        grey = (255 * one / one.max().clamp(min=1e-9)).byte().numpy()
        sheet.paste(Image.fromarray(grey).resize((96, 96)), (place * 100, 0))
    return sheet


batch = data.tests["biased"].batch(torch.arange(6))
rows = [batch.x.amax(1), unspur.cam(fit.stages["erm"], batch.x), unspur.cam(fit.model, batch.x)]
sheet = Image.new("L", (600, 300), 255)
for row, maps in enumerate(rows):
    sheet.paste(picture_of(maps.detach()), (0, row * 100))
sheet

# %% [markdown]
# ## Keep it
#
# Both models in one file that abstains where they disagree, for another program.

# %%
from pathlib import Path

from unspur.models.catalog import arch_named

predictor = unspur.Predictor.choose(fit.stages["erm"], fit.model, arch_named("small_cnn"), data, coverage=0.9)
Path("tutorial").mkdir(exist_ok=True)
predictor.save(Path("tutorial/predictor.safetensors"))
print(predictor.predict(data.tests["biased"].x[:6]))
