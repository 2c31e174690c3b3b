"""Class separation: ours against the pairwise definition, side by side.  Bounds: equal to 1e-6, linear in samples.

Growth is the exponent of the time from the smallest to the largest sample: 1 is linear, 2 quadratic. Both run on one
thread and are timed by the processor time they use, the best of several runs, so that other work on the machine does
not count.
"""

import math
import sys
import time

import torch

from unspur.metrics.represent import class_separation

SIZES = (2_000, 4_000, 8_000, 16_000)
NEURONS, CLASSES = 128, 10
GROWTH_LIMIT, DIFFERENCE_LIMIT = 1.3, 1e-6  # growth: above 1 for what caches do to larger samples


def pairwise(z, y, classes):
    """The definition: the distance of every sample to every other, class by class."""
    z = torch.nn.functional.normalize(z.double(), dim=1)
    parts = [z[y == k] for k in range(classes)]
    mean = torch.stack([torch.stack([(1 - a @ b.T).mean() for b in parts]) for a in parts])
    return 1 - float(mean.diagonal().mean() / mean.mean())


def timed(function, *arguments):
    """The best time of three runs or a second's worth of them, whichever is more, and the result."""
    seconds = []
    while len(seconds) < 3 or sum(seconds) < 1:
        start = time.process_time()
        result = function(*arguments)
        seconds.append(time.process_time() - start)
    return min(seconds), result


def sample(n, generator):
    y = torch.arange(n) % CLASSES
    centre, noise = (torch.randn(rows, NEURONS, generator=generator) for rows in (CLASSES, n))
    return (centre[y] + noise).relu(), y


def main():
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    class_separation(*sample(SIZES[-1], generator), CLASSES)  # the first call pays for memory that later ones reuse
    times, worst = [], 0.0
    print(f"{'samples':>8} {'ours':>10} {'pairwise':>10} {'ratio':>7} {'difference':>11}")
    for n in SIZES:
        z, y = sample(n, generator)
        ours, value = timed(class_separation, z, y, CLASSES)
        theirs, reference = timed(pairwise, z, y, CLASSES)
        times.append((ours, theirs))
        worst = max(worst, abs(value - reference))
        print(f"{n:>8} {ours * 1e3:>7.1f} ms {theirs * 1e3:>7.1f} ms {theirs / ours:>6.0f}x {value - reference:>11.1e}")
    growth = [
        math.log(last / first) / math.log(SIZES[-1] / SIZES[0]) for first, last in zip(times[0], times[-1], strict=True)
    ]
    print(f"growth: ours {growth[0]:.2f} (limit {GROWTH_LIMIT}), pairwise {growth[1]:.2f}")
    print(f"largest difference: {worst:.1e} (limit {DIFFERENCE_LIMIT:.0e})")
    return int(growth[0] > GROWTH_LIMIT or worst > DIFFERENCE_LIMIT)


if __name__ == "__main__":
    sys.exit(main())
