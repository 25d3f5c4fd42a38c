//! SVG images.

use std::fmt::Write;

use super::font;
use super::theme::{Color, Theme};

/// An SVG image that is drawn element by element.
pub struct Svg {
    width: f64,
    height: f64,
    theme: Theme,
    text_mode: TextMode,
    body: String,
}

/// The part of a text that is at its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// Its start.
    Start,
    /// Its middle.
    Middle,
    /// Its end.
    End,
}

impl Anchor {
    fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Middle => "middle",
            Self::End => "end",
        }
    }

    /// The fraction of the text before its position.
    fn fraction(self) -> f64 {
        match self {
            Self::Start => 0.0,
            Self::Middle => 0.5,
            Self::End => 1.0,
        }
    }
}

/// How text is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextMode {
    /// As text elements, in a font of the viewer.
    Text,
    /// As outlines of the embedded font, for renderers without fonts.
    Outlines,
}

/// Position and orientation of text.
struct Placement {
    x: f64,
    y: f64,
    anchor: Anchor,
    is_vertical: bool,
    has_margin: bool,
}

impl Placement {
    fn horizontal((x, y): (f64, f64), anchor: Anchor) -> Self {
        Self {
            x,
            y,
            anchor,
            is_vertical: false,
            has_margin: false,
        }
    }
}

/// The style of a line.
#[derive(Clone, Copy, Debug)]
pub struct Stroke {
    /// Color of the line.
    pub color: Color,
    /// Width in pixels.
    pub width: f64,
    /// `stroke-dasharray`; empty for a solid line.
    pub dashes: &'static str,
    /// Opacity from 0 to 1.
    pub opacity: f64,
}

impl Stroke {
    /// A solid line.
    pub fn new(color: Color, width: f64) -> Self {
        Self {
            color,
            width,
            dashes: "",
            opacity: 1.0,
        }
    }
}

impl Svg {
    /// An empty image. [`Svg::finish`] sets its height.
    pub fn new(width: f64, theme: Theme) -> Self {
        Self {
            width,
            height: 0.0,
            theme,
            text_mode: TextMode::Text,
            body: String::new(),
        }
    }

    /// The same image with text drawn as `text_mode`.
    pub(crate) fn with_text_mode(self, text_mode: TextMode) -> Self {
        Self { text_mode, ..self }
    }

    /// Draws a line between two points.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), stroke: Stroke) {
        self.path(&[from, to], stroke);
    }

    /// Draws a line through points.
    pub fn path(&mut self, points: &[(f64, f64)], stroke: Stroke) {
        let Stroke {
            color,
            width,
            dashes,
            opacity,
        } = stroke;
        let color = self.theme.color(color);
        let points = list(points);
        let _ = write!(
            self.body,
            r#"<polyline points="{points}" fill="none" stroke="{color}" stroke-width="{width}" stroke-linejoin="round""#
        );
        if !dashes.is_empty() {
            let _ = write!(self.body, r#" stroke-dasharray="{dashes}""#);
        }
        if opacity < 1.0 {
            let _ = write!(self.body, r#" stroke-opacity="{opacity}""#);
        }
        self.body.push_str("/>\n");
    }

    /// Draws a filled polygon.
    pub(crate) fn polygon(&mut self, points: &[(f64, f64)], color: Color, opacity: f64) {
        let (points, color) = (list(points), self.theme.color(color));
        let _ = writeln!(
            self.body,
            r#"<polygon points="{points}" fill="{color}" fill-opacity="{opacity}"/>"#
        );
    }

    /// Draws a filled rectangle, given its top left corner and size.
    pub fn rect(
        &mut self,
        (x, y): (f64, f64),
        (width, height): (f64, f64),
        color: Color,
        opacity: f64,
    ) {
        let color = self.theme.color(color);
        let (x, y, width, height) = (rounded(x), rounded(y), rounded(width), rounded(height));
        let _ = writeln!(
            self.body,
            r#"<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="2" fill="{color}" fill-opacity="{opacity}"/>"#
        );
    }

    /// Draws a disc if `filled`, else a ring.
    pub fn dot(&mut self, (x, y): (f64, f64), radius: f64, color: Color, filled: bool) {
        let color = self.theme.color(color);
        let fill = if filled {
            color.clone()
        } else {
            self.theme.color(Color::Background)
        };
        let (x, y) = (rounded(x), rounded(y));
        let _ = writeln!(
            self.body,
            r#"<circle cx="{x}" cy="{y}" r="{radius}" fill="{fill}" stroke="{color}" stroke-width="2"/>"#
        );
    }

    /// Draws text. The baseline is at y.
    pub fn text(
        &mut self,
        position: (f64, f64),
        text: &str,
        size: f64,
        anchor: Anchor,
        color: Color,
    ) {
        let placement = Placement::horizontal(position, anchor);
        self.write_text(&placement, text, size, color);
    }

    /// Draws text with a margin in the background color, to be readable on top of lines.
    pub(crate) fn text_over_lines(
        &mut self,
        position: (f64, f64),
        text: &str,
        size: f64,
        anchor: Anchor,
        color: Color,
    ) {
        let placement = Placement {
            has_margin: true,
            ..Placement::horizontal(position, anchor)
        };
        self.write_text(&placement, text, size, color);
    }

    /// Draws text that runs upwards, centered at `position`.
    pub fn vertical_text(&mut self, position: (f64, f64), text: &str, size: f64, color: Color) {
        let placement = Placement {
            is_vertical: true,
            ..Placement::horizontal(position, Anchor::Middle)
        };
        self.write_text(&placement, text, size, color);
    }

    fn write_text(&mut self, placement: &Placement, text: &str, size: f64, color: Color) {
        let color = self.theme.color(color);
        let (x, y) = (rounded(placement.x), rounded(placement.y));
        let margin = match placement.has_margin {
            true => format!(
                r#" stroke="{}" stroke-width="3" stroke-linejoin="round" paint-order="stroke""#,
                self.theme.color(Color::Background)
            ),
            false => String::new(),
        };
        let _ = match self.text_mode {
            TextMode::Text => {
                let position = match placement.is_vertical {
                    true => format!(r#"transform="translate({x} {y}) rotate(-90)""#),
                    false => format!(r#"x="{x}" y="{y}""#),
                };
                let (anchor, text) = (placement.anchor.name(), escape(text));
                writeln!(
                    self.body,
                    r#"<text {position}{margin} font-size="{size}" text-anchor="{anchor}" fill="{color}">{text}</text>"#
                )
            }
            TextMode::Outlines => {
                let (data, width) = font::outlines(text, size);
                let back = rounded(-width * placement.anchor.fraction());
                let turn = if placement.is_vertical {
                    " rotate(-90)"
                } else {
                    ""
                };
                writeln!(
                    self.body,
                    r#"<path transform="translate({x} {y}){turn} translate({back} 0)"{margin} fill="{color}" d="{data}"/>"#
                )
            }
        };
    }

    /// The image as SVG, with a title and a description for screen readers. `id` makes their ids unique on a page.
    pub fn finish(mut self, height: f64, id: &str, title: &str, description: &str) -> String {
        self.height = height;
        let (width, height) = (rounded(self.width), rounded(self.height));
        let (title, description) = (escape(title), escape(description));
        let families = font::FAMILIES;
        let head = match self.theme {
            // Scales down with the page, up to its own width.
            Theme::Page => format!(
                r#"class="plot" viewBox="0 0 {width} {height}" style="max-width:{width}px""#
            ),
            Theme::Light | Theme::Dark => format!(
                r#"xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}""#
            ),
        };
        let background = match self.theme {
            Theme::Page => String::new(),
            Theme::Light | Theme::Dark => {
                let color = self.theme.color(Color::Background);
                format!(r#"<rect width="{width}" height="{height}" fill="{color}"/>"#)
            }
        };
        format!(
            "<svg {head} role=\"img\" aria-labelledby=\"{id}-title {id}-description\" font-family=\"{families}\">\n\
             <title id=\"{id}-title\">{title}</title>\n<desc id=\"{id}-description\">{description}</desc>\n{background}\n{}</svg>\n",
            self.body
        )
    }
}

fn list(points: &[(f64, f64)]) -> String {
    let points: Vec<_> = points
        .iter()
        .map(|(x, y)| format!("{},{}", rounded(*x), rounded(*y)))
        .collect();
    points.join(" ")
}

/// Rounded to hundredths of a pixel, without trailing zeros.
fn rounded(number: f64) -> String {
    let text = format!("{number:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" {
        "0".into()
    } else {
        text.into()
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_and_text_is_escaped() {
        assert_eq!(
            [rounded(1.0), rounded(-0.001), rounded(2.504)],
            ["1", "0", "2.5"]
        );
        let mut svg = Svg::new(100.0, Theme::Light);
        svg.text((1.0, 2.0), "a<b> & \"c\"", 12.0, Anchor::End, Color::Text);
        let whole = svg.finish(50.0, "x", "T & t", "D");
        assert!(
            whole.contains("a&lt;b&gt; &amp; &quot;c&quot;</text>"),
            "{whole}"
        );
        assert!(
            whole.contains("<title id=\"x-title\">T &amp; t</title>"),
            "{whole}"
        );
    }
}
