//! SVG to PNG.

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};

/// Pixels of the image per pixel of the SVG.
const SCALE: f32 = 2.0;

/// Renders an SVG without text elements: draw it with [`TextMode::Outlines`](crate::plot::svg::TextMode).
///
/// # Panics
///
/// If `svg` is not a valid SVG.
pub fn render(svg: &str) -> Vec<u8> {
    assert!(!svg.contains("<text"), "text must be outlines");
    let tree = Tree::from_str(svg, &Options::default()).expect("the figure is a valid SVG");
    let size = tree.size();
    let side = |length: f32| (length * SCALE).ceil() as u32;
    let mut pixels =
        Pixmap::new(side(size.width()), side(size.height())).expect("the figure has a size");
    resvg::render(
        &tree,
        Transform::from_scale(SCALE, SCALE),
        &mut pixels.as_mut(),
    );
    pixels.encode_png().expect("the image can be encoded")
}
