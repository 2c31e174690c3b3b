# %% [markdown]
# # Robustness and compressibility
#
# Large learning rates make networks rely less on shortcuts and easier to prune, at once (arXiv:2507.17748). This
# notebook trains the same network at rising rates on `double_mnist`, where a bright second digit goes with the label
# in training, and measures both. `unspur sweep --analyze` does it with seeds and draws the figure.

# %%
import torch
from PIL import Image, ImageDraw

import unspur
from unspur.evaluation.scores import predict
from unspur.metrics.compress import prunability

epochs = 12  # tests: 1
rates = (0.003, 0.03, 0.3)
data = unspur.load("double_mnist", base="mini", conflict=0.1)
test = data.tests["unbiased"]

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
# Blue: accuracy; orange: prunability. `unspur train large_lr` finds the highest rate that still converges by itself.

# %%
chart = Image.new("RGB", (480, 240), "white")
draw = ImageDraw.Draw(chart)
for place, (rate, (right, prunable)) in enumerate(found.items()):
    left = 40 + 140 * place
    draw.rectangle((left, 200 - 180 * right, left + 40, 200), fill="#4477aa")
    draw.rectangle((left + 50, 200 - 180 * min(prunable, 1.0), left + 90, 200), fill="#ee8866")
    draw.text((left + 20, 208), f"rate {rate}", fill="black")
chart
