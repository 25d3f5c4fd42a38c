//! Colors of figures and pages.

/// The color scheme of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    /// Light background, for print.
    Light,
    /// Dark background.
    Dark,
    /// On a page that follows the preference of the user. Colors are CSS variables.
    Page,
}

/// A color by its role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Color {
    /// The background.
    Background,
    /// Text and reference lines.
    Text,
    /// Axes and their labels.
    Muted,
    /// Grid lines.
    Grid,
    /// Links.
    Link,
    /// The line of a series. Colors repeat after eight series, with other dashes.
    Series(usize),
}

/// Eight colors that are distinct with all common kinds of color blindness and have enough contrast to the background. A
/// search maximized their smallest distance, which the test below measures. `rem-web/assets/styles/theme.css` has the
/// same colors.
const LIGHT: [&str; 8] = [
    "#093698", "#e46d00", "#7f9563", "#b781a8", "#513701", "#0f94f0", "#111111", "#800055",
];
const DARK: [&str; 8] = [
    "#4565fe", "#fa9f25", "#12be6a", "#a384de", "#836200", "#b8ddff", "#ffefcc", "#c9307c",
];

/// Dashes of lines, which distinguish series without color.
const DASHES: [&str; 8] = [
    "",
    "7 3",
    "2 3",
    "9 3 2 3",
    "12 4",
    "5 2 1 2 1 2",
    "1 2",
    "4 4",
];

impl Theme {
    /// The color as CSS.
    pub fn color(self, color: Color) -> String {
        let (series, [background, text, muted, grid, link]) = match self {
            Self::Page => return format!("var(--{})", variable(color)),
            Self::Light => (
                LIGHT,
                ["#ffffff", "#1a1a1a", "#555555", "#dddddd", "#093698"],
            ),
            Self::Dark => (
                DARK,
                ["#14171c", "#eaeaea", "#a9adb3", "#363b43", "#8fb4ff"],
            ),
        };
        match color {
            Color::Background => background,
            Color::Text => text,
            Color::Muted => muted,
            Color::Grid => grid,
            Color::Link => link,
            Color::Series(index) => series[index % series.len()],
        }
        .into()
    }
}

/// The `stroke-dasharray` of a series.
pub(crate) fn dashes(series: usize) -> &'static str {
    DASHES[(series + series / LIGHT.len()) % DASHES.len()]
}

fn variable(color: Color) -> String {
    match color {
        Color::Background => "background".into(),
        Color::Text => "text".into(),
        Color::Muted => "muted".into(),
        Color::Grid => "grid".into(),
        Color::Link => "link".into(),
        Color::Series(index) => format!("series-{}", index % LIGHT.len()),
    }
}

/// CSS declarations of the colors of a theme.
pub(crate) fn variables(theme: Theme) -> String {
    let series = (0..LIGHT.len()).map(Color::Series);
    let colors = [
        Color::Background,
        Color::Text,
        Color::Muted,
        Color::Grid,
        Color::Link,
    ]
    .into_iter()
    .chain(series);
    colors
        .map(|color| format!("--{}:{};", variable(color), theme.color(color)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Linear light, red green blue.
    fn linear(color: &str) -> [f64; 3] {
        [1, 3, 5].map(|start| {
            let byte = u8::from_str_radix(&color[start..start + 2], 16).unwrap();
            let value = f64::from(byte) / 255.0;
            if value <= 0.04045 {
                value / 12.92
            } else {
                ((value + 0.055) / 1.055).powf(2.4)
            }
        })
    }

    fn luminance([red, green, blue]: [f64; 3]) -> f64 {
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    }

    /// The contrast of the Web Content Accessibility Guidelines.
    fn contrast(a: &str, b: &str) -> f64 {
        let (a, b) = (luminance(linear(a)), luminance(linear(b)));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    /// CIE L*a*b* of linear light, D65.
    fn lab(rgb: [f64; 3]) -> [f64; 3] {
        let rows = [
            [0.4124, 0.3576, 0.1805],
            [0.2126, 0.7152, 0.0722],
            [0.0193, 0.1192, 0.9505],
        ];
        let white = [0.9505, 1.0, 1.089];
        let xyz: Vec<f64> = rows
            .iter()
            .zip(white)
            .map(|(row, white)| row.iter().zip(rgb).map(|(a, b)| a * b).sum::<f64>() / white)
            .map(|t: f64| {
                if t > 0.008856 {
                    t.cbrt()
                } else {
                    7.787 * t + 16.0 / 116.0
                }
            })
            .collect();
        [
            116.0 * xyz[1] - 16.0,
            500.0 * (xyz[0] - xyz[1]),
            200.0 * (xyz[1] - xyz[2]),
        ]
    }

    /// Normal vision, protanopia, deuteranopia and tritanopia, by Machado, Oliveira and Fernandes (2009).
    const VISIONS: [[[f64; 3]; 3]; 4] = [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ],
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ],
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ],
    ];

    fn perceived(vision: &[[f64; 3]; 3], color: &str) -> [f64; 3] {
        let rgb = linear(color);
        lab(vision.map(|row| {
            row.iter()
                .zip(rgb)
                .map(|(a, b)| a * b)
                .sum::<f64>()
                .clamp(0.0, 1.0)
        }))
    }

    #[test]
    fn colors_are_distinct_with_any_color_blindness() {
        let mut worst: Vec<(f64, String)> = Vec::new();
        for series in [LIGHT, DARK] {
            for (number, vision) in VISIONS.iter().enumerate() {
                for (index, a) in series.iter().enumerate() {
                    for b in &series[index + 1..] {
                        let (one, other) = (perceived(vision, a), perceived(vision, b));
                        let distance = one
                            .iter()
                            .zip(other)
                            .map(|(a, b)| (a - b).powi(2))
                            .sum::<f64>()
                            .sqrt();
                        worst.push((distance, format!("{a} and {b}, vision {number}")));
                    }
                }
            }
        }
        worst.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert!(worst[0].0 > 25.0, "{:#?}", &worst[..12]);
    }

    #[test]
    fn colors_have_contrast_with_the_background() {
        for theme in [Theme::Light, Theme::Dark] {
            let against = |color| contrast(&theme.color(color), &theme.color(Color::Background));
            assert!(
                against(Color::Text) > 7.0
                    && against(Color::Muted) > 4.5
                    && against(Color::Link) > 4.5,
                "{theme:?}"
            );
            for series in 0..8 {
                let found = against(Color::Series(series));
                assert!(found > 3.0, "{theme:?} {series}: {found}");
            }
        }
    }

    #[test]
    fn series_with_equal_colors_have_different_dashes() {
        let style = |series| (Theme::Light.color(Color::Series(series)), dashes(series));
        let mut styles: Vec<_> = (0..16).map(style).collect();
        styles.sort();
        styles.dedup();
        assert_eq!(styles.len(), 16);
    }
}
