# %% [markdown]
# # Compare methods
#
# Which method helps against a colour that gives the digit away? Each trains the same network on the same data, and
# all are scored on digits of random colours. `unspur compare` does this with seeds, one rule of choice and intervals;
# this notebook is the short form in Python.

# %%
from PIL import Image, ImageDraw, ImageFont

import unspur

epochs = 3  # tests: 1
data = unspur.load("colored_mnist", base="mini", conflict=0.02)
recipe = unspur.Adam(lr=1e-3, epochs=epochs, batch_size=128)

# %% [markdown]
# ## The data
#
# A picture of each group: the label, and the colour that it was given.

# %%
from unspur.data.preview import preview

picture = preview(data)
picture.thumbnail((900, 900))
picture

# %% [markdown]
# ## Train each
#
# `erm` is plain training. `jtt` trains twice and needs no group labels. `group_balanced` and `lisa` read the colours
# of the training images: what they gain is what group labels are worth.

# %%
methods = {
    "erm": unspur.ERM(erm=recipe),
    "jtt": unspur.JTT(erm=unspur.Adam(lr=1e-3, epochs=1), training=recipe),
    "group_balanced": unspur.GroupBalanced(training=recipe),
    "lisa": unspur.LISA(training=recipe),
}
scores = {}
for name, method in methods.items():
    model = unspur.build_model("small_cnn", data)
    fit = method.fit(model, data.train, val=data.val, seed=0)
    scores[name] = unspur.evaluate(fit.model, data)["unbiased"]
    print(
        f"{name}: {scores[name]['accuracy']:.1%} of all, {scores[name]['conflicting_accuracy']:.1%} against the colour"
    )

# %% [markdown]
# ## Side by side
#
# One seed and a few epochs: a first look, not a verdict. `unspur compare erm,jtt,group_balanced,lisa colored_mnist
# --set data.base=mini --seeds 0,1,2` is the careful form.

# %%
chart = Image.new("RGB", (640, 44 * len(scores)), "white")
draw, letters = ImageDraw.Draw(chart), ImageFont.load_default(size=15)
for row, (name, score) in enumerate(scores.items()):
    middle, end = 44 * row + 21, 140 + 420 * score["accuracy"]
    draw.text((8, middle), name, fill="black", font=letters, anchor="lm")
    draw.rectangle((140, middle - 13, end, middle + 13), fill="#4477aa")
    draw.text((end + 8, middle), f"{score['accuracy']:.1%}", fill="black", font=letters, anchor="lm")
chart
