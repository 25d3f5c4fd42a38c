//! Images of few colours made smaller as the imaging library Pillow does with its filter BILINEAR, to the bit: a
//! triangle over the source pixels, first along rows, then along columns, in whole numbers, rounded after each.

use super::level::{Level, vectorised};

/// Weights are multiples of 2^-22: with 8 bits of a pixel, and room for a sign and a sum, a 32-bit number.
const BITS: u32 = 32 - 8 - 2;
/// One half, for rounding.
const HALF: i32 = 1 << (BITS - 1);

/// Red, green, blue and nothing of each of 256 colours.
pub type Palette = [[i32; 4]; 256];

/// From one size to another.
pub struct Resize {
    level: Level,
    from: (usize, usize),
    size: usize,
    across: Vec<Window>,
    down: Vec<Window>,
    /// Rows of the source, made narrower: `[height, size * 3]`
    narrow: Vec<u8>,
}

/// Source pixels under a target pixel.
struct Window {
    first: usize,
    weights: Vec<i32>,
}

fn windows(from: usize, to: usize) -> Vec<Window> {
    let scale = from as f64 / to as f64;
    // Half the width of the triangle, which never is less than a pixel.
    let reach = scale.max(1.0);
    let per_pixel = 1.0 / reach;
    let window = |target: usize| {
        let centre = (target as f64 + 0.5) * scale;
        let first = (centre - reach + 0.5).max(0.0) as usize;
        let end = ((centre + reach + 0.5) as usize).min(from);
        let height = |x: usize| {
            let distance = (x as f64 - centre + 0.5) * per_pixel;
            (1.0 - distance.abs()).max(0.0)
        };
        let heights: Vec<f64> = (first..end).map(height).collect();
        let sum = heights.iter().fold(0.0, |sum, height| sum + height);
        let whole = |height: &f64| (0.5 + height / sum * f64::from(1 << BITS)) as i32;
        Window {
            first,
            weights: heights.iter().map(whole).collect(),
        }
    };
    (0..to).map(window).collect()
}

impl Resize {
    /// From `height` x `width` to `size` x `size` pixels.
    pub fn new(height: usize, width: usize, size: usize) -> Self {
        Self {
            level: Level::of_this_machine(),
            from: (height, width),
            size,
            across: windows(width, size),
            down: windows(height, size),
            narrow: vec![0; height * size * 3],
        }
    }

    /// # Shapes
    /// - `image`: `[height, width]`, numbers of colours; `out`: `[size, size, 3]`
    pub fn apply(&mut self, image: &[u8], palette: &Palette, out: &mut [u8]) {
        let (height, width) = self.from;
        assert_eq!(image.len(), height * width);
        assert_eq!(out.len(), self.size * self.size * 3);
        let line = self.size * 3;
        for row in 0..height {
            let pixels = &image[row * width..][..width];
            // Neighbouring rows are often the same.
            if row > 0 && image[(row - 1) * width..][..width] == *pixels {
                let before = (row - 1) * line..row * line;
                self.narrow.copy_within(before, row * line);
            } else {
                let to = &mut self.narrow[row * line..][..line];
                narrow(self.level, pixels, palette, &self.across, to);
            }
        }
        let mut sums = vec![0; line];
        for (window, out) in self.down.iter().zip(out.chunks_exact_mut(line)) {
            lower(self.level, &self.narrow, window, &mut sums, out);
        }
    }
}

/// Whether the first `count` pixels have one colour; false if it cannot be told at a glance.
#[inline(always)]
fn all_the_same(pixels: &[u8], count: usize) -> bool {
    let Some(eight) = pixels.first_chunk::<8>() else {
        return false;
    };
    let word = u64::from_le_bytes(*eight);
    let differences = word ^ (u64::from(eight[0]) * 0x0101_0101_0101_0101);
    count <= 8 && differences << (64 - 8 * count) == 0
}

vectorised! {
    fn narrow(pixels: &[u8], palette: &Palette, windows: &[Window], out: &mut [u8]) {
        for (window, out) in windows.iter().zip(out.chunks_exact_mut(3)) {
            let seen = &pixels[window.first..];
            // Weights add up to one but for a few units in the last place: one colour stays as it is.
            if all_the_same(seen, window.weights.len()) {
                let [red, green, blue, _] = palette[usize::from(seen[0])];
                out.copy_from_slice(&[red as u8, green as u8, blue as u8]);
                continue;
            }
            let mut sums = [HALF; 4];
            for (weight, pixel) in window.weights.iter().zip(seen) {
                let colour = &palette[usize::from(*pixel)];
                for (sum, part) in sums.iter_mut().zip(colour) {
                    *sum += weight * part;
                }
            }
            for (out, sum) in out.iter_mut().zip(sums) {
                *out = (sum >> BITS) as u8;
            }
        }
    }
}

vectorised! {
    fn lower(rows: &[u8], window: &Window, sums: &mut [i32], out: &mut [u8]) {
        let line = out.len();
        sums.fill(HALF);
        for (weight, row) in window.weights.iter().zip(rows[window.first * line..].chunks_exact(line)) {
            for (sum, part) in sums.iter_mut().zip(row) {
                *sum += weight * i32::from(*part);
            }
        }
        for (out, sum) in out.iter_mut().zip(sums) {
            *out = (*sum >> BITS) as u8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grey() -> Palette {
        std::array::from_fn(|i| [i as i32, i as i32, i as i32, 0])
    }

    #[test]
    fn one_colour_stays_that_colour() {
        for colour in [0, 1, 127, 254, 255] {
            let mut out = vec![9; 64 * 64 * 3];
            Resize::new(210, 160, 64).apply(&vec![colour; 210 * 160], &grey(), &mut out);
            assert!(out.iter().all(|x| *x == colour), "{colour}");
        }
    }

    #[test]
    fn weights_are_a_triangle() {
        // Half the size: four pixels at distances 3/4, 1/4, 1/4 and 3/4 of the triangle's reach.
        let window = &windows(8, 4)[1];
        assert_eq!(window.first, 1);
        let eighths: Vec<i32> = window.weights.iter().map(|w| w >> (BITS - 3)).collect();
        assert_eq!(eighths, [1, 3, 3, 1]);
    }

    #[test]
    fn rows_that_repeat_are_as_any_other() {
        let image: Vec<u8> = (0..210 * 160)
            .map(|i| ((i / 160 / 7 * 31 + i % 160 * 3) % 256) as u8)
            .collect();
        let mut resize = Resize::new(210, 160, 64);
        let mut out = vec![0; 64 * 64 * 3];
        resize.apply(&image, &grey(), &mut out);
        let mut expected = vec![0; 64 * 64 * 3];
        for row in 0..210 {
            let to = &mut resize.narrow[row * 192..][..192];
            narrow(
                Level::Portable,
                &image[row * 160..][..160],
                &grey(),
                &resize.across,
                to,
            );
        }
        let mut sums = vec![0; 192];
        for (window, out) in resize.down.iter().zip(expected.chunks_exact_mut(192)) {
            lower(Level::Portable, &resize.narrow, window, &mut sums, out);
        }
        assert_eq!(out, expected);
    }
}
