"""Tables and the figure of scripts/compare-with-pytorch."""

import csv
import json
import math
import statistics

MARK = "<!-- measured -->"
# Epochs at the end of a training for which the tables give the loss.
LAST = 4
REFERENCE = "torch-f32"
SERIES = {
    "torch-f32": ("PyTorch, f32", "#000000"),
    "rem-f32": ("rem, f32", "#0072b2"),
    "rem-mixed": ("rem, mixed", "#d55e00"),
    "torch-reversed": ("PyTorch, f32, reversed batches", "#009e73"),
}
TITLES = {"tokenizer": "Tokenizer", "world_model": "World model"}
# With mixed precision the world model learns other tokens, those of its own tokenizer: only distributions compare.
COMPARED = {"tokenizer": ["rem-f32", "torch-reversed", "rem-mixed"], "world_model": ["rem-f32", "torch-reversed"]}
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
        (results / "weights.json").write_text(json.dumps(weight_differences(work), indent=1) + "\n")
    curves = {component: read_table(results / f"{component}.csv") for component in TITLES}
    weights = json.loads((results / "weights.json").read_text())
    page = root / "docs/pytorch-curves.md"
    page.with_suffix(".svg").write_text(draw(curves))
    head = page.read_text().split(MARK)[0]
    tables = "\n\n".join(summary(component, curves[component], weights) for component in TITLES)
    page.write_text(f"{head}{MARK}\n\n{tables}\n\n![Training losses]({page.stem}.svg)\n")
    return 0


def curves_of(work, component):
    """{series: {seed: [means of each epoch]}}"""
    curves = {}
    for series in SERIES:
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


def weight_differences(work):
    """Distance of the trained weights from those of PyTorch, relative to their distance from the initial weights."""
    import torch
    from safetensors.torch import load_file

    from pytorch_data import exported_names, initial_weights, last_checkpoint

    out = {}
    for component in TITLES:
        for seed in range(1, 100):
            run = work / f"seed-{seed}-rem-f32"
            states = {v: work / f"seed-{seed}-torch-{v}-{component}.pt" for v in ("f32", "reversed")}
            if not run.exists() or not states["f32"].exists():
                continue
            reference = torch.load(states["f32"])
            theirs = reference["module"]
            initial = exported_names(load_file(initial_weights(run, component)))
            own = exported_names(load_file(last_checkpoint(run) / f"{component}.safetensors"))
            others = {}
            if int(last_checkpoint(run).name.removeprefix("epoch-")) >= reference["next"] - 1:
                others["rem-f32"] = own
            if states["reversed"].exists():
                state = torch.load(states["reversed"])
                if state["next"] == reference["next"]:
                    others["torch-reversed"] = state["module"]
            norm = lambda a, b: math.sqrt(sum((a[name] - b[name]).square().sum().item() for name in theirs))
            for series, weights in others.items():
                ratio = norm(weights, theirs) / norm(initial, theirs)
                out.setdefault(component, {}).setdefault(series, {})[str(seed)] = round(ratio, 7)
    return out


def totals(lines):
    return [line["loss"] for line in lines]


def relative(curves, series):
    """Per seed, the relative differences from PyTorch's losses at each epoch."""
    reference = curves[REFERENCE]
    return [
        [abs(a - b) / b for a, b in zip(totals(lines), totals(reference[seed]))]
        for seed, lines in curves[series].items()
        if seed in reference
    ]


def summary(component, curves, weights):
    epochs = max(len(lines) for lines in curves[REFERENCE].values())
    rows = [
        f"**{TITLES[component]}**, {epochs} epochs of 5 updates. Losses are mean ± standard deviation over seeds; differences "
        "are relative to PyTorch's loss with the same seed:",
        "",
        f"| training | seeds | loss, first epoch | loss, last {LAST} epochs | difference, first epoch | median | largest | "
        "of weights |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for series in (name for name in SERIES if name in curves):
        whole = [totals(lines) for lines in curves[series].values() if len(lines) == epochs]
        cells = [SERIES[series][0], str(len(whole)), spread([losses[0] for losses in whole])]
        cells.append(spread([statistics.fmean(losses[-LAST:]) for losses in whole]))
        if series in COMPARED[component] and relative(curves, series):
            seeds = relative(curves, series)
            cells.append(f"{max(s[0] for s in seeds):.1e}")
            cells.append(f"{statistics.median(x for s in seeds for x in s):.1e}")
            cells.append(f"{max(max(s) for s in seeds):.1e}")
            own = weights.get(component, {}).get(series, {})
            cells.append(f"{max(own.values()):.1e}" if own else "")
        else:
            cells += [""] * 4
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows)


def spread(values):
    if not values:
        return ""
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{statistics.fmean(values):.4f} ± {deviation:.4f}"


def draw(curves):
    """Above: mean and standard deviation over seeds. Below: the largest difference of any seed from PyTorch."""
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH * len(TITLES)} {2 * HEIGHT + 50}" '
        'font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for column, (component, title) in enumerate(TITLES.items()):
        left = column * WIDTH
        bands = {name: band(curves[component][name]) for name in SERIES if name in curves[component]}
        epochs = max(len(points) for points in bands.values())
        high = 1.1 * max(mean + deviation for points in bands.values() for mean, deviation in points)
        low = 0.8 * min(mean for points in bands.values() for mean, _ in points)
        x, y = axes(out, left, 0, epochs, low, high, title, "loss")
        for name, points in bands.items():
            upper = [(x(i), y(mean + deviation)) for i, (mean, deviation) in enumerate(points)]
            lower = [(x(i), y(max(mean - deviation, low))) for i, (mean, deviation) in enumerate(points)]
            color = SERIES[name][1]
            out.append(f'<polygon points="{path(upper + lower[::-1])}" fill="{color}" opacity="0.12"/>')
            line = path((x(i), y(mean)) for i, (mean, _) in enumerate(points))
            out.append(f'<polyline points="{line}" fill="none" stroke="{color}" {stroke(name)}/>')
        largest = {
            name: [max(xs) for xs in zip(*relative(curves[component], name))]
            for name in COMPARED[component]
            if name in curves[component]
        }
        values = [v for xs in largest.values() for v in xs]
        low, high = max(min(values), 1e-9) / 2, 2 * max(values)
        x, y = axes(out, left, HEIGHT, epochs, low, high, "", "relative difference")
        for name, xs in largest.items():
            line = path((x(i), y(max(v, low))) for i, v in enumerate(xs))
            out.append(f'<polyline points="{line}" fill="none" stroke="{SERIES[name][1]}" stroke-width="1.3"/>')
    for k, (name, (label, color)) in enumerate(SERIES.items()):
        left = LEFT + 130 * k
        out.append(f'<path d="M{left} {2 * HEIGHT + 30}h22" stroke="{color}" {stroke(name)}/>')
        out.append(f'<text x="{left + 28}" y="{2 * HEIGHT + 34}">{label}</text>')
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
    return 'stroke-width="5" opacity="0.3"' if series == REFERENCE else 'stroke-width="1.3"'


if __name__ == "__main__":
    raise SystemExit("run scripts/compare-with-pytorch report")
