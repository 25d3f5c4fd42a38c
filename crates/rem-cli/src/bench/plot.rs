//! Time per imagined frame over the tokens of a frame, both on logarithmic axes, as an SVG.

use rem::bench::dreams::Way;

use super::imagination::Line;

const WIDTH: f64 = 620.0;
const HEIGHT: f64 = 380.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 190.0;
const TOP: f64 = 20.0;
const BOTTOM: f64 = 44.0;

fn colour(way: Way) -> &'static str {
    match way {
        Way::PopTwoCalls => "#0072b2",
        Way::PopOneCall => "#56b4e9",
        Way::NoPop => "#d55e00",
        Way::Iris => "#009e73",
        Way::IrisOwn => "#cc79a7",
    }
}

/// The smallest and the largest of some numbers.
fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| {
        (low.min(x), high.max(x))
    })
}

/// The shortest horizon drawn solid, the others dashed.
pub fn draw(lines: &[Line]) -> String {
    let (k_low, k_high) = range(lines.iter().map(|l| l.tokens as f64));
    let (low, high) = range(lines.iter().map(|l| l.ms_per_frame));
    // Whole powers of ten around the times.
    let (low, high) = (
        low.log10().floor(),
        high.log10().ceil().max(low.log10().floor() + 1.0),
    );
    let x = |k: f64| {
        let share = (k / k_low).ln() / (k_high / k_low).ln().max(1e-9);
        LEFT + share * (WIDTH - LEFT - RIGHT)
    };
    let y = |ms: f64| HEIGHT - BOTTOM - (ms.log10() - low) / (high - low) * (HEIGHT - TOP - BOTTOM);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    for power in low as i32..=high as i32 {
        let (ms, at) = (10f64.powi(power), y(10f64.powi(power)));
        out += &format!(
            "<path d=\"M{LEFT} {at:.1}H{:.1}\" stroke=\"#ddd\"/>\n<text x=\"{:.1}\" y=\"{:.1}\" \
             text-anchor=\"end\">{ms}</text>\n",
            WIDTH - RIGHT,
            LEFT - 6.0,
            at + 4.0
        );
    }
    let mut tokens: Vec<usize> = lines.iter().map(|l| l.tokens).collect();
    tokens.sort();
    tokens.dedup();
    for k in tokens {
        out += &format!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{k}</text>\n",
            x(k as f64),
            HEIGHT - BOTTOM + 18.0
        );
    }
    out += &format!(
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">tokens of a frame (K)</text>\n<text \
         transform=\"translate(14 {:.1}) rotate(-90)\" text-anchor=\"middle\">ms per imagined frame</text>\n",
        (LEFT + WIDTH - RIGHT) / 2.0,
        HEIGHT - 8.0,
        HEIGHT / 2.0
    );
    let mut horizons: Vec<usize> = lines.iter().map(|l| l.horizon).collect();
    horizons.sort();
    horizons.dedup();
    let mut legend = TOP;
    for way in Way::ALL {
        for (i, &horizon) in horizons.iter().enumerate() {
            let own = lines
                .iter()
                .filter(|l| l.way == way && l.horizon == horizon);
            let points: Vec<(f64, f64)> = own
                .map(|l| (x(l.tokens as f64), y(l.ms_per_frame)))
                .collect();
            if points.is_empty() {
                continue;
            }
            let dash = if i == 0 {
                ""
            } else {
                " stroke-dasharray=\"5 4\""
            };
            let stroke = format!(
                "stroke=\"{}\" stroke-width=\"2\" fill=\"none\"{dash}",
                colour(way)
            );
            let line: Vec<String> = points
                .iter()
                .map(|(x, y)| format!("{x:.1},{y:.1}"))
                .collect();
            out += &format!("<polyline points=\"{}\" {stroke}/>\n", line.join(" "));
            for (x, y) in &points {
                out += &format!(
                    "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{}\"/>\n",
                    colour(way)
                );
            }
            legend += 18.0;
            let at = WIDTH - RIGHT + 14.0;
            out += &format!(
                "<path d=\"M{at:.1} {:.1}h24\" {stroke}/>\n<text x=\"{:.1}\" y=\"{legend:.1}\">{}, H = {horizon}</text>\n",
                legend - 4.0,
                at + 30.0,
                way.name()
            );
        }
    }
    out + "</svg>\n"
}
