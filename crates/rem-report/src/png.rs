//! SVG to PNG, with our own font.

use std::sync::{Arc, LazyLock};

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::fontdb::Database;
use resvg::usvg::{Options, Tree};

use crate::plot::font;

/// Pixels of the picture for each of the SVG.
const SCALE: f32 = 2.0;

static FONTS: LazyLock<Arc<Database>> = LazyLock::new(|| {
    let mut fonts = Database::new();
    fonts.load_font_data(font::BYTES.to_vec());
    Arc::new(fonts)
});

/// # Panics
/// If it is not an SVG; ours are.
pub fn of(svg: &str) -> Vec<u8> {
    let options = Options {
        fontdb: FONTS.clone(),
        ..Options::default()
    };
    let tree = Tree::from_str(svg, &options).expect("our figures are well formed");
    let size = tree.size();
    let side = |length: f32| (length * SCALE).ceil() as u32;
    let mut pixels =
        Pixmap::new(side(size.width()), side(size.height())).expect("figures have a size");
    resvg::render(
        &tree,
        Transform::from_scale(SCALE, SCALE),
        &mut pixels.as_mut(),
    );
    pixels.encode_png().expect("pixels can be encoded")
}
