"""The other methods of ULE's Tables 2, 4 and 7, which train all layers of a pretrained network or, as EE, its last."""

from __future__ import annotations

from collections.abc import Mapping

from unspur.papers.table import Setup

# SGD by the scripts of GroupDRO and of JTT, in batches of 128: rate, weight decay and epochs; then the epochs of JTT's
# first training, and how often what it gets wrong is shown.
ALL_LAYERS = {"waterbirds": (1e-3, 1e-4, 300), "celeba": (1e-4, 1e-4, 50)}
JTT = {"waterbirds": (1e-5, 1.0, 300, 60, 100), "celeba": (1e-5, 0.1, 50, 1, 50)}
FINE_TUNED = {
    "ERM": "erm", "GroupDRO": "groupdro", "LfF": "lff", "EIIL": "eiil", "JTT": "jtt", "SSA": "ssa", "SPARE": "spare",
}  # fmt: skip
# --quick: what these have beside their main training.
QUICKER = {"eiil": ("steps=10",), "jtt": ("erm.epochs=1",), "ssa": ("attribute.epochs=1",)}

ERM_LAST_LAYER = "ERM's last layer has a row of its own, since that is what ULE trains."
OTHERS = (
    "The methods that train all layers have the settings of GroupDRO's script, JTT those of its own, with ImageNet "
    "weights V2; EE has this library's. The paper quotes their numbers, which were chosen by groups in validation; "
    f"ours are not. {ERM_LAST_LAYER}"
)
# UrbanCars by the script of its authors, Li et al., whose protocol Table 7 follows; SPARE by that of its own: rate,
# weight decay and epochs, and what else is not this library's default.
LI, SPARE = (1e-3, 1e-4, 300), (1e-4, 0.1, 300)
LI_IMAGES = ("data.size=256", "data.augment.flip=true")
LI_OWN = {"groupdro": ("adjustment=0",), "jtt": ("up=100",)}
OTHERS_URBANCARS = (
    "ERM, GroupDRO, LfF, EIIL and JTT have the settings of Li et al.'s script for UrbanCars, SPARE those of its own, "
    "which does not say how long the first training is (here: one epoch) and cuts 224 of 256 pixels from the middle "
    "(here: scales them). Both scripts keep the epoch with the best worst group in validation, ours the last. EIIL "
    "balances environments in Li et al.'s, labels with environments here. What is published as the worst group of the "
    "first five is Li et al.'s accuracy where both shortcuts mislead, the mean of two of the eight groups, and so it "
    f"is here; for SPARE and ULE it is the worst of the eight. {ERM_LAST_LAYER}"
)


def sgd(recipe: str, lr: float, decay: float, epochs: int) -> tuple[str, ...]:
    """The settings of a recipe."""
    own = (f"{recipe}.lr={lr:g}", f"{recipe}.weight_decay={decay:g}", f"{recipe}.epochs={epochs}")
    return (f"{recipe}=sgd", *own, f"{recipe}.batch_size=128")


def peer(row: str, data: str, networks: Mapping[str, tuple[str, str]]) -> Setup:
    """How the row of another method is made; its name ends in that of its network, which ``networks`` has."""
    name, model = row.split(", ")
    arch, weights = networks[model]
    start, quick = f"arch.weights={weights}", ("training.epochs=1",)
    if name == "EE":
        return Setup("ee", data, arch, (start,), quick=quick)
    method = FINE_TUNED[name.removesuffix(" (group labels)")]
    if method == "erm":
        return Setup(method, data, arch, (start, *sgd("erm", *ALL_LAYERS[data])), quick=("erm.epochs=1",))
    own = sgd("training", *ALL_LAYERS[data])
    if method == "jtt":
        lr, decay, epochs, first, up = JTT[data]
        own = (*sgd("erm", lr, decay, first), *sgd("training", lr, decay, epochs), f"up={up}")
    return Setup(method, data, arch, (start, *own), quick=(*quick, *QUICKER.get(method, ())))


def urbancars(row: str) -> Setup:
    """How the row of another method of Table 7 is made."""
    method = FINE_TUNED[row.removesuffix(" (group labels)")]
    start = ("arch.weights=IMAGENET1K_V1", *(() if method == "spare" else LI_IMAGES))
    if method == "erm":
        return Setup(method, "urbancars", "resnet50", (*start, *sgd("erm", *LI)), quick=("erm.epochs=1",))
    lr, decay, _ = LI
    brief = sgd("erm", lr, decay, 1) if method in ("eiil", "jtt", "spare") else ()
    own = (*brief, *sgd("training", *(SPARE if method == "spare" else LI)), *LI_OWN.get(method, ()))
    quick = ("training.epochs=1", *QUICKER.get(method, ()))
    return Setup(method, "urbancars", "resnet50", (*start, *own), quick=quick)
