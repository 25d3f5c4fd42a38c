"""Tables and the figure of scripts/compare-with-pytorch."""

import csv
import json
import math
import statistics

MARK = "<!-- measured -->"
# Epochs at the end of a training for which the tables give the loss.
LAST = 4
SERIES = {
    "torch-f32": ("PyTorch, f32", "#000000"),
    "rem-f32": ("rem, f32", "#0072b2"),
    "rem-mixed": ("rem, mixed", "#d55e00"),
    "torch-f64": ("PyTorch, f64", "#009e73"),
}
TITLES = {"tokenizer": "Tokenizer", "world_model": "World model"}
# The trainings of which the difference is shown. With mixed precision the world model learns other tokens, those of its
# own tokenizer, so only distributions compare.
PAIRS = {
    ("rem-f32", "torch-f32"): ("rem from PyTorch, both f32", "#0072b2"),
    ("rem-f32", "torch-f64"): ("rem f32 from PyTorch f64", "#009e73"),
    ("torch-f32", "torch-f64"): ("PyTorch f32 from PyTorch f64", "#000000"),
    ("torch-full_distance", "torch-f64"): ("PyTorch f32, full distance, from PyTorch f64", "#d55e00"),
}
TERMS = {
    "tokenizer": ["loss", "loss_reconstruction", "loss_commitment", "grad_norm"],
    "world_model": ["loss", "loss_obs", "loss_rewards", "loss_ends", "grad_norm"],
}
WIDTH, HEIGHT, LEFT, BOTTOM = 400, 230, 56, 34


def report(work, root):
    results = root / "results/pytorch-curves"
    if work:
        results.mkdir(parents=True, exist_ok=True)
        for component in TITLES:
            write_table(results / f"{component}.csv", component, curves_of(work, component))
    curves = {component: read_table(results / f"{component}.csv") for component in TITLES}
    if not all(name in own for own in curves.values() for name in ("rem-f32", "torch-f32")):
        raise SystemExit("no component was trained with both programs yet; call `run` first")
    page = root / "docs/pytorch-curves.md"
    page.with_suffix(".svg").write_text(draw(curves))
    head = page.read_text().split(MARK)[0]
    tables = "\n\n".join(summary(component, curves[component]) for component in TITLES)
    page.write_text(f"{head}{MARK}\n\n{tables}\n\n![Training losses]({page.stem}.svg)\n")
    return 0


def curves_of(work, component):
    """{series: {seed: [means of each epoch]}}"""
    curves = {}
    for series in [*SERIES, "torch-full_distance"]:
        for seed in range(1, 100):
            run = work / f"seed-{seed}-{series}"
            log = run / "metrics.jsonl" if series.startswith("rem") else run.with_name(f"{run.name}-{component}.jsonl")
            if log.exists():
                lines = map(json.loads, log.read_text().splitlines())
                if lines := [line for line in lines if line["phase"] == component]:
                    curves.setdefault(series, {})[seed] = lines
    return curves


def write_table(path, component, curves):
    with open(path, "w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["series", "seed", "epoch", *TERMS[component]])
        for series, seeds in curves.items():
            for seed, lines in seeds.items():
                for line in lines:
                    out.writerow([series, seed, line["epoch"], *(f"{line[term]:.9g}" for term in TERMS[component])])


def read_table(path):
    curves = {}
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            series, seed, _ = row.pop("series"), int(row.pop("seed")), row.pop("epoch")
            curves.setdefault(series, {}).setdefault(seed, []).append({name: float(x) for name, x in row.items()})
    return curves


def totals(lines):
    return [line["loss"] for line in lines]


def relative(curves, pair):
    """Per seed, the relative differences of the first training's losses from the second's, as far as both go."""
    first, second = (curves.get(name, {}) for name in pair)
    return {
        seed: [abs(a - b) / b for a, b in zip(totals(first[seed]), totals(second[seed]))]
        for seed in first.keys() & second.keys()
    }


def summary(component, curves):
    epochs = min(len(lines) for name in ("torch-f32", "rem-f32") for lines in curves[name].values())
    rows = [
        f"**{TITLES[component]}**, the first {epochs} epochs of 5 updates, mean ± standard deviation over seeds:",
        "",
        f"| training | seeds | loss, first epoch | loss, last {LAST} epochs | gradient norm, last {LAST} epochs |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name in (name for name in SERIES if name in curves):
        whole = [lines[:epochs] for lines in curves[name].values() if len(lines) >= epochs]
        cells = [SERIES[name][0], str(len(whole)), spread([lines[0]["loss"] for lines in whole])]
        for term in ("loss", "grad_norm"):
            cells.append(spread([statistics.fmean(line[term] for line in lines[-LAST:]) for lines in whole]))
        if whole:
            rows.append("| " + " | ".join(cells) + " |")
    epochs = max(len(lines) for name in ("torch-f32", "rem-f32") for lines in curves[name].values())
    rows += [
        "",
        "Relative difference of the loss, the largest of the seeds that were trained so far with both:",
        "",
        "| training | seeds | " + " | ".join(f"epoch {epoch}" for epoch in shown(epochs)) + " |",
        "| --- | --- |" + " --- |" * len(shown(epochs)),
    ]
    for pair, (label, _) in PAIRS.items():
        seeds = relative(curves, pair).values()
        if not seeds:
            continue
        largest = [[s[epoch - 1] for s in seeds if len(s) >= epoch] for epoch in shown(epochs)]
        cells = [f"{max(values):.1e}" if values else "" for values in largest]
        if any(cells):
            rows.append(f"| {label} | {len(seeds)} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def shown(epochs):
    return [epoch for epoch in (1, 2, 3, 5, 7, 10, 15, 20, 30) if epoch <= epochs]


def spread(values):
    if not values:
        return ""
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{statistics.fmean(values):.4f} ± {deviation:.4f}"


def draw(curves):
    """Above: mean and standard deviation over seeds. Below: differences, the largest of the seeds."""
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH * len(TITLES)} {2 * HEIGHT + 84}" '
        'font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    drawn = set()
    for column, (component, title) in enumerate(TITLES.items()):
        left = column * WIDTH
        own = curves[component]
        epochs = max(len(lines) for name in ("torch-f32", "rem-f32") for lines in own[name].values())
        # Bands over all seeds or none: a mean over fewer seeds is another curve.
        bands = {name: band(own[name]) for name in SERIES if name in own and len(own[name]) == len(own["torch-f32"])}
        drawn |= bands.keys()
        high = 1.1 * max(mean + deviation for points in bands.values() for mean, deviation in points)
        low = 0.7 * min(mean for points in bands.values() for mean, _ in points)
        x, y = axes(out, left, 0, epochs, low, high, title, "loss")
        for name, points in bands.items():
            upper = [(x(i), y(mean + deviation)) for i, (mean, deviation) in enumerate(points)]
            lower = [(x(i), y(max(mean - deviation, low))) for i, (mean, deviation) in enumerate(points)]
            color = SERIES[name][1]
            out.append(f'<polygon points="{path(upper + lower[::-1])}" fill="{color}" opacity="0.12"/>')
            line = path((x(i), y(mean)) for i, (mean, _) in enumerate(points))
            out.append(f'<polyline points="{line}" fill="none" stroke="{color}" {stroke(name)}/>')
        largest = {}
        for pair in PAIRS:
            seeds = relative(own, pair).values()
            longest = max(map(len, seeds), default=0)
            largest[pair] = [max(s[i] for s in seeds if len(s) > i) for i in range(longest)]
        values = [v for xs in largest.values() for v in xs]
        low, high = max(min(values), 1e-9) / 2, 2 * max(values)
        x, y = axes(out, left, HEIGHT, epochs, low, high, "", "relative difference")
        for pair, xs in largest.items():
            line = path((x(i), y(max(v, low))) for i, v in enumerate(xs))
            out.append(f'<polyline points="{line}" fill="none" stroke="{PAIRS[pair][1]}" stroke-width="1.3"/>')
    above = [("above: " + SERIES[name][0], SERIES[name][1], stroke(name)) for name in SERIES if name in drawn]
    below = [("below: " + label, color, 'stroke-width="1.3"') for label, color in PAIRS.values()]
    for column, entries in enumerate((above, below)):
        for row, (label, color, style) in enumerate(entries):
            left, top = column * WIDTH + LEFT, 2 * HEIGHT + 16 + 17 * row
            out.append(f'<path d="M{left} {top}h22" stroke="{color}" {style}/>')
            out.append(f'<text x="{left + 28}" y="{top + 4}">{label}</text>')
    return "\n".join([*out, "</svg>", ""])


def band(seeds):
    columns = zip(*(totals(lines) for lines in seeds.values()))
    return [(statistics.fmean(c), statistics.stdev(c) if len(c) > 1 else 0.0) for c in columns]


def axes(out, left, top, epochs, low, high, title, label):
    """Draws the axes of a panel. Returns the maps from epoch and value (logarithmic) to pixels."""
    x = lambda i: left + LEFT + (WIDTH - LEFT - 14) * i / max(epochs - 1, 1)
    y = lambda v: top + HEIGHT - BOTTOM - (HEIGHT - BOTTOM - 26) * math.log(v / low) / math.log(high / low)
    out.append(f'<text x="{left + WIDTH / 2}" y="{top + 16}" text-anchor="middle" font-size="13">{title}</text>')
    decades = [10.0**k for k in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]
    steps = (1, 2, 5) if high / low < 1000 else (1,)
    for value in (step * decade for decade in decades for step in steps):
        if low <= value <= high:
            out.append(f'<path d="M{x(0):.1f} {y(value):.1f}H{x(epochs - 1):.1f}" stroke="#ddd"/>')
            out.append(f'<text x="{x(0) - 5:.1f}" y="{y(value) + 4:.1f}" text-anchor="end">{value:g}</text>')
    for epoch in sorted({1, *range(5, epochs + 1, 5)}):
        out.append(f'<text x="{x(epoch - 1):.1f}" y="{top + HEIGHT - 19}" text-anchor="middle">{epoch}</text>')
    out.append(f'<text x="{left + WIDTH / 2}" y="{top + HEIGHT - 4}" text-anchor="middle">epoch of 5 updates</text>')
    middle = top + HEIGHT / 2
    out.append(f'<text transform="translate({left + 10} {middle}) rotate(-90)" text-anchor="middle">{label}</text>')
    out.append(f'<path d="M{x(0):.1f} {y(high):.1f}V{y(low):.1f}H{x(epochs - 1):.1f}" stroke="#666" fill="none"/>')
    return x, y


def path(points):
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def stroke(series):
    """PyTorch is a wide line below the others, so that a line that lies on it shows both."""
    return 'stroke-width="5" opacity="0.3"' if series == "torch-f32" else 'stroke-width="1.3"'


if __name__ == "__main__":
    raise SystemExit("run scripts/compare-with-pytorch report")
