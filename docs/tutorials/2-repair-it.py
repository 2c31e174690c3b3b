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
# Six test digits of 5-9, all with the square, which says 0-4. In the first row the images; in the second what plain
# training looks at, lit up; in the third what MaskTune looks at.


# %%
def lit(images: torch.Tensor, maps: torch.Tensor) -> torch.Tensor:
    """Each image in full light where its map is largest, and nearly dark where it is nothing."""
    shares = maps / maps.amax((1, 2), keepdim=True).clamp(min=1e-9)
    large = torch.nn.functional.interpolate(shares[:, None], images.shape[2:], mode="bilinear")
    return images * (0.15 + 0.85 * large)


test = data.tests["biased"]
batch = test.batch((test.y == 1).nonzero().flatten()[:6])
maps = [unspur.cam(stage, batch.x).detach() for stage in (fit.stages["erm"], fit.model)]
sheet = Image.new("RGB", (6 * 100 - 4, 3 * 100 - 4), "white")
for row, images in enumerate([batch.x, *(lit(batch.x, each) for each in maps)]):
    for column, image in enumerate(images):
        pixels = (255 * image).byte().permute(1, 2, 0).numpy()
        sheet.paste(Image.fromarray(pixels).resize((96, 96)), (column * 100, row * 100))
sheet

# %% [markdown]
# ## Keep it
#
# Both models in one file for another program. It answers where they agree and are sure enough, by a threshold that
# validation data chose: nine of ten images like those. Where the square misleads the two disagree, and it answers few.

# %%
from pathlib import Path

from unspur.models.catalog import arch_named

predictor = unspur.Predictor.choose(fit.stages["erm"], fit.model, arch_named("small_cnn"), data, coverage=0.9)
Path("tutorial").mkdir(exist_ok=True)
predictor.save(Path("tutorial/predictor.safetensors"))
for name, split in {"like training images": data.val, "where the square misleads": test}.items():
    answers = predictor.predict(split.x[:500])
    right = [data.classes[label] == answer for answer, label in zip(answers, split.y.tolist(), strict=False) if answer]
    print(f"{name}: {len(right)} of {len(answers)} answered, {sum(right)} of them right")
