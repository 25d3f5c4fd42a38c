//! An SVG, written element by element.

use std::fmt::Write;

use super::font;
use super::theme::{Ink, Theme};

pub struct Svg {
    width: f64,
    height: f64,
    theme: Theme,
    body: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// How a line looks.
#[derive(Clone, Copy, Debug)]
pub struct Stroke {
    pub ink: Ink,
    pub width: f64,
    pub dashes: &'static str,
    pub opacity: f64,
}

impl Stroke {
    pub fn new(ink: Ink, width: f64) -> Self {
        Self {
            ink,
            width,
            dashes: "",
            opacity: 1.0,
        }
    }
}

impl Svg {
    /// The height is set by [`Svg::finish`].
    pub fn new(width: f64, theme: Theme) -> Self {
        Self {
            width,
            height: 0.0,
            theme,
            body: String::new(),
        }
    }

    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), stroke: Stroke) {
        self.path(&[from, to], stroke);
    }

    pub fn path(&mut self, points: &[(f64, f64)], stroke: Stroke) {
        let Stroke {
            ink,
            width,
            dashes,
            opacity,
        } = stroke;
        let colour = self.theme.colour(ink);
        let points = list(points);
        let _ = write!(
            self.body,
            r#"<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{width}" stroke-linejoin="round""#
        );
        if !dashes.is_empty() {
            let _ = write!(self.body, r#" stroke-dasharray="{dashes}""#);
        }
        if opacity < 1.0 {
            let _ = write!(self.body, r#" stroke-opacity="{opacity}""#);
        }
        self.body.push_str("/>\n");
    }

    pub fn area(&mut self, points: &[(f64, f64)], ink: Ink, opacity: f64) {
        let (points, colour) = (list(points), self.theme.colour(ink));
        let _ = writeln!(
            self.body,
            r#"<polygon points="{points}" fill="{colour}" fill-opacity="{opacity}"/>"#
        );
    }

    pub fn bar(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), ink: Ink, opacity: f64) {
        let colour = self.theme.colour(ink);
        let (x, y, width, height) = (short(x), short(y), short(width), short(height));
        let _ = writeln!(
            self.body,
            r#"<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="2" fill="{colour}" fill-opacity="{opacity}"/>"#
        );
    }

    /// A ring, or a disc.
    pub fn dot(&mut self, (x, y): (f64, f64), radius: f64, ink: Ink, filled: bool) {
        let colour = self.theme.colour(ink);
        let fill = if filled {
            colour.clone()
        } else {
            self.theme.colour(Ink::Background)
        };
        let (x, y) = (short(x), short(y));
        let _ = writeln!(
            self.body,
            r#"<circle cx="{x}" cy="{y}" r="{radius}" fill="{fill}" stroke="{colour}" stroke-width="2"/>"#
        );
    }

    /// With its baseline at y.
    pub fn text(&mut self, (x, y): (f64, f64), text: &str, size: f64, anchor: Anchor, ink: Ink) {
        self.write_text(
            &format!(r#"x="{}" y="{}""#, short(x), short(y)),
            text,
            size,
            anchor,
            ink,
        );
    }

    /// On lines, which keep away from the letters.
    pub fn text_on_lines(
        &mut self,
        (x, y): (f64, f64),
        text: &str,
        size: f64,
        anchor: Anchor,
        ink: Ink,
    ) {
        let halo = self.theme.colour(Ink::Background);
        let place = format!(
            r#"x="{}" y="{}" stroke="{halo}" stroke-width="3" stroke-linejoin="round" paint-order="stroke""#,
            short(x),
            short(y)
        );
        self.write_text(&place, text, size, anchor, ink);
    }

    /// From below to above, with its middle at the point.
    pub fn upright_text(&mut self, (x, y): (f64, f64), text: &str, size: f64, ink: Ink) {
        let place = format!(
            r#"transform="translate({} {}) rotate(-90)""#,
            short(x),
            short(y)
        );
        self.write_text(&place, text, size, Anchor::Middle, ink);
    }

    fn write_text(&mut self, place: &str, text: &str, size: f64, anchor: Anchor, ink: Ink) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let (colour, text) = (self.theme.colour(ink), escape(text));
        let _ = writeln!(
            self.body,
            r#"<text {place} font-size="{size}" text-anchor="{anchor}" fill="{colour}">{text}</text>"#
        );
    }

    /// The whole, under a name and a description for those who do not see it. On a page names must differ from those
    /// of other figures: `id` is put before them.
    pub fn finish(mut self, height: f64, id: &str, title: &str, description: &str) -> String {
        self.height = height;
        let (width, height) = (short(self.width), short(self.height));
        let (title, description) = (escape(title), escape(description));
        let families = font::FAMILIES;
        let head = match self.theme {
            // As wide as there is room, at most as it was made for.
            Theme::Page => format!(
                r#"class="plot" viewBox="0 0 {width} {height}" style="max-width:{width}px""#
            ),
            Theme::Light | Theme::Dark => format!(
                r#"xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}""#
            ),
        };
        let ground = match self.theme {
            Theme::Page => String::new(),
            Theme::Light | Theme::Dark => {
                let colour = self.theme.colour(Ink::Background);
                format!(r#"<rect width="{width}" height="{height}" fill="{colour}"/>"#)
            }
        };
        format!(
            "<svg {head} role=\"img\" aria-labelledby=\"{id}-title {id}-description\" font-family=\"{families}\">\n\
             <title id=\"{id}-title\">{title}</title>\n<desc id=\"{id}-description\">{description}</desc>\n{ground}\n{}</svg>\n",
            self.body
        )
    }
}

fn list(points: &[(f64, f64)]) -> String {
    let points: Vec<_> = points
        .iter()
        .map(|(x, y)| format!("{},{}", short(*x), short(*y)))
        .collect();
    points.join(" ")
}

/// Hundredths of a pixel are enough.
fn short(number: f64) -> String {
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
    fn numbers_are_short_and_text_is_escaped() {
        assert_eq!([short(1.0), short(-0.001), short(2.504)], ["1", "0", "2.5"]);
        let mut svg = Svg::new(100.0, Theme::Light);
        svg.text((1.0, 2.0), "a<b> & \"c\"", 12.0, Anchor::End, Ink::Text);
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
