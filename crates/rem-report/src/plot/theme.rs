//! Colours, for paper, for dark screens, and for a page that follows the reader's choice.

/// Where a figure is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    Light,
    Dark,
    /// Colours are the page's variables, see [`variables`].
    Page,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    Background,
    Text,
    /// Of axes and their numbers.
    Muted,
    Grid,
    /// Of links on the page.
    Link,
    /// Of a system; there are so many colours that these repeat, with other dashes.
    Series(usize),
}

/// Eight colours of which no two look alike to people with any of the common kinds of colour blindness, and which stand
/// out from their background: found by a search for the largest of smallest distances, which the test below measures.
const LIGHT: [&str; 8] = [
    "#093698", "#e46d00", "#7f9563", "#b781a8", "#513701", "#0f94f0", "#111111", "#800055",
];
const DARK: [&str; 8] = [
    "#4565fe", "#fa9f25", "#12be6a", "#a384de", "#836200", "#b8ddff", "#ffefcc", "#c9307c",
];

/// Dashes of lines, so that nobody needs colours to tell them apart.
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
    pub fn colour(self, ink: Ink) -> String {
        let (series, [background, text, muted, grid, link]) = match self {
            Self::Page => return format!("var(--{})", variable(ink)),
            Self::Light => (
                LIGHT,
                ["#ffffff", "#1a1a1a", "#555555", "#dddddd", "#093698"],
            ),
            Self::Dark => (
                DARK,
                ["#14171c", "#eaeaea", "#a9adb3", "#363b43", "#8fb4ff"],
            ),
        };
        match ink {
            Ink::Background => background,
            Ink::Text => text,
            Ink::Muted => muted,
            Ink::Grid => grid,
            Ink::Link => link,
            Ink::Series(index) => series[index % series.len()],
        }
        .into()
    }
}

pub fn dashes(series: usize) -> &'static str {
    DASHES[(series + series / LIGHT.len()) % DASHES.len()]
}

fn variable(ink: Ink) -> String {
    match ink {
        Ink::Background => "background".into(),
        Ink::Text => "text".into(),
        Ink::Muted => "muted".into(),
        Ink::Grid => "grid".into(),
        Ink::Link => "link".into(),
        Ink::Series(index) => format!("series-{}", index % LIGHT.len()),
    }
}

/// The declarations of a theme's colours in CSS.
pub fn variables(theme: Theme) -> String {
    let series = (0..LIGHT.len()).map(Ink::Series);
    let inks = [Ink::Background, Ink::Text, Ink::Muted, Ink::Grid, Ink::Link]
        .into_iter()
        .chain(series);
    inks.map(|ink| format!("--{}:{};", variable(ink), theme.colour(ink)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Linear light, red green blue.
    fn linear(colour: &str) -> [f64; 3] {
        [1, 3, 5].map(|start| {
            let byte = u8::from_str_radix(&colour[start..start + 2], 16).unwrap();
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

    /// What people see who lack one kind of cone, by the matrices of Machado, Oliveira and Fernandes (2009).
    const EYES: [[[f64; 3]; 3]; 4] = [
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

    fn seen(eye: &[[f64; 3]; 3], colour: &str) -> [f64; 3] {
        let rgb = linear(colour);
        lab(eye.map(|row| {
            row.iter()
                .zip(rgb)
                .map(|(a, b)| a * b)
                .sum::<f64>()
                .clamp(0.0, 1.0)
        }))
    }

    #[test]
    fn no_two_colours_look_alike_to_anyone() {
        let mut worst: Vec<(f64, String)> = Vec::new();
        for series in [LIGHT, DARK] {
            for (number, eye) in EYES.iter().enumerate() {
                for (index, a) in series.iter().enumerate() {
                    for b in &series[index + 1..] {
                        let (one, other) = (seen(eye, a), seen(eye, b));
                        let apart = one
                            .iter()
                            .zip(other)
                            .map(|(a, b)| (a - b).powi(2))
                            .sum::<f64>()
                            .sqrt();
                        worst.push((apart, format!("{a} and {b} to eye {number}")));
                    }
                }
            }
        }
        worst.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert!(worst[0].0 > 25.0, "{:#?}", &worst[..12]);
    }

    #[test]
    fn everything_stands_out_from_its_background() {
        for theme in [Theme::Light, Theme::Dark] {
            let against = |ink| contrast(&theme.colour(ink), &theme.colour(Ink::Background));
            assert!(
                against(Ink::Text) > 7.0 && against(Ink::Muted) > 4.5 && against(Ink::Link) > 4.5,
                "{theme:?}"
            );
            for series in 0..8 {
                let found = against(Ink::Series(series));
                assert!(found > 3.0, "{theme:?} {series}: {found}");
            }
        }
    }

    #[test]
    fn systems_beyond_the_colours_have_other_dashes() {
        let look = |series| (Theme::Light.colour(Ink::Series(series)), dashes(series));
        let mut looks: Vec<_> = (0..16).map(look).collect();
        looks.sort();
        looks.dedup();
        assert_eq!(looks.len(), 16);
    }
}
