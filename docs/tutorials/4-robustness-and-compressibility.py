# %% [markdown]
# # Robustness and compressibility
#
# Large learning rates make networks rely less on shortcuts and easier to prune, at once (arXiv:2507.17748). This
# notebook trains the same network at rising rates on `double_mnist`, where a bright second digit goes with the label
# in training, and measures both. `unspur sweep --analyze` does it with seeds and draws the figure.

# %%
import torch
from PIL import Image, ImageDraw, ImageFont

import unspur
from unspur.evaluation.scores import predict
from unspur.metrics.compress import prunability

epochs = 12  # tests: 1
rates = (0.003, 0.03, 0.3)
data = unspur.load("double_mnist", base="mini", conflict=0.1)
test = data.tests["unbiased"]

# %% [markdown]
# Left, dim, the digit to be named; right, bright, the one that goes with it in training and not in these test images.

# %%
first = test.batch(torch.arange(6)).x
sheet = Image.new("L", (6 * 116, 56), 255)
for place, one in enumerate(first):
    picture = Image.fromarray((255 * one[0]).byte().numpy()).resize((112, 56))
    sheet.paste(picture, (place * 116, 0))
sheet

# %% [markdown]
# ## Train at rising rates
#
# Robust: the accuracy on test images in which the second digit is drawn at random. Compressible: the accuracy that is
# left once the smallest nodes are removed, over the accuracy before, the mean over shares from 0 to 90 %.


# %%
def accuracy(model) -> float:
    return (predict(model, test).argmax(1) == test.y).float().mean().item()


found = {}
for rate in rates:
    model = unspur.build_model("fcn", data, width=256)
    recipe = unspur.SGD(lr=rate, momentum=0.0, epochs=epochs, batch_size=100)
    fit = unspur.ERM(erm=recipe).fit(model, data.train, seed=0)
    found[rate] = accuracy(fit.model), prunability(fit.model, accuracy).mean
    print(f"rate {rate}: {found[rate][0]:.1%} right on unbiased images, prunability {found[rate][1]:.2f}")

# %% [markdown]
# ## Both over the rate
#
# Prunability is a share of the accuracy that was there: the lowest rate has little to lose. From the middle rate to the
# highest both rise. `unspur train large_lr` finds the highest rate that still converges by itself.

# %%
chart = Image.new("RGB", (560, 300), "white")
draw, letters = ImageDraw.Draw(chart), ImageFont.load_default(size=15)
for place, (rate, measured) in enumerate(found.items()):
    for bar, (value, color) in enumerate(zip(measured, ("#4477aa", "#ee8866"), strict=True)):
        left, top = 40 + 175 * place + 65 * bar, 250 - 190 * value
        draw.rectangle((left, top, left + 55, 250), fill=color)
        draw.text((left + 27, top - 4), f"{value:.2f}", fill="black", font=letters, anchor="ms")
    draw.text((40 + 175 * place + 60, 274), f"rate {rate}", fill="black", font=letters, anchor="ms")
for left, color, name in ((40, "#4477aa", "accuracy, unbiased"), (215, "#ee8866", "prunability")):
    draw.rectangle((left, 8, left + 14, 22), fill=color)
    draw.text((left + 22, 21), name, fill="black", font=letters, anchor="ls")
chart
