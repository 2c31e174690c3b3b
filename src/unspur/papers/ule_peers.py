"""The other methods of ULE's Tables 2 and 4, which train all layers of a pretrained network or, as EE, its last one."""

from __future__ import annotations

from collections.abc import Mapping

from unspur.papers.table import Setup

# SGD by the scripts of GroupDRO and of JTT, in batches of 128: rate, weight decay and epochs; then the epochs of JTT's
# first training, and how often what it gets wrong is shown.
ALL_LAYERS = {"waterbirds": (1e-3, 1e-4, 300), "celeba": (1e-4, 1e-4, 50)}
JTT = {"waterbirds": (1e-5, 1.0, 300, 60, 100), "celeba": (1e-5, 0.1, 50, 1, 50)}
FINE_TUNED = {"ERM": "erm", "GroupDRO": "groupdro", "LfF": "lff", "EIIL": "eiil", "JTT": "jtt", "SSA": "ssa"}
# --quick: what these have beside their main training.
QUICKER = {"eiil": ("steps=10",), "jtt": ("erm.epochs=1",), "ssa": ("attribute.epochs=1",)}

OTHERS = (
    "The methods that train all layers have the settings of GroupDRO's script, JTT those of its own, with ImageNet "
    "weights V2; EE has this library's. The paper quotes their numbers, which were chosen by groups in validation; "
    "ours are not. ERM's last layer has a row of its own, since that is what ULE trains."
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
