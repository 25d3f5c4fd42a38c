//! Resizing of palette and RGB images, bit-identical to Pillow's BILINEAR filter: a triangle over the source pixels, first
//! along rows, then along columns, in fixed-point arithmetic, rounded after each pass.

/// Fractional bits of a weight: with 8 bits of a pixel, a sign and a carry they fill 32 bits.
const BITS: u32 = 32 - 8 - 2;
/// One half, for rounding.
const HALF: i32 = 1 << (BITS - 1);

/// Red, green, blue and 0 of each of 256 colors.
pub type Palette = [[i32; 4]; 256];

/// Resizes images from one size to another.
pub struct Resize {
    from: (usize, usize),
    size: usize,
    columns: Vec<Window>,
    rows: Vec<Window>,
    /// Source rows at the target width: `[height, size * 3]`
    narrow: Vec<u8>,
}

/// The source pixels under a target pixel.
struct Window {
    first: usize,
    weights: Vec<i32>,
}

fn windows(from: usize, to: usize) -> Vec<Window> {
    let scale = from as f64 / to as f64;
    // Half the width of the triangle, at least one pixel.
    let support = scale.max(1.0);
    let per_pixel = 1.0 / support;
    let window = |target: usize| {
        let center = (target as f64 + 0.5) * scale;
        let first = (center - support + 0.5).max(0.0) as usize;
        let end = ((center + support + 0.5) as usize).min(from);
        let height = |x: usize| {
            let distance = (x as f64 - center + 0.5) * per_pixel;
            (1.0 - distance.abs()).max(0.0)
        };
        let heights: Vec<f64> = (first..end).map(height).collect();
        let sum = heights.iter().fold(0.0, |sum, height| sum + height);
        let fixed_point = |height: &f64| (0.5 + height / sum * f64::from(1 << BITS)) as i32;
        Window {
            first,
            weights: heights.iter().map(fixed_point).collect(),
        }
    };
    (0..to).map(window).collect()
}

impl Resize {
    /// Resizes images of `height` x `width` to `size` x `size` pixels.
    pub fn new(height: usize, width: usize, size: usize) -> Self {
        Self {
            from: (height, width),
            size,
            columns: windows(width, size),
            rows: windows(height, size),
            narrow: vec![0; height * size * 3],
        }
    }

    /// Resizes an image of palette indices to RGB.
    ///
    /// # Shapes
    /// - `image`: `[height, width]`
    /// - `out`: `[size, size, 3]`
    ///
    /// # Panics
    /// If `image` or `out` has a different length.
    pub fn apply(&mut self, image: &[u8], palette: &Palette, out: &mut [u8]) {
        let (height, width) = self.from;
        assert_eq!(image.len(), height * width);
        assert_eq!(out.len(), self.size * self.size * 3);
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has AVX2.
            return unsafe { self.apply_avx2(image, palette, out) };
        }
        self.apply_portable(image, palette, out);
    }

    /// Resizes an RGB image. Equals [`Self::apply`] for an image of palette indices with the same colors.
    ///
    /// # Shapes
    /// - `image`: `[height, width, 3]`
    /// - `out`: `[size, size, 3]`
    ///
    /// # Panics
    /// If `image` or `out` has a different length.
    pub fn apply_rgb(&mut self, image: &[u8], out: &mut [u8]) {
        let (height, width) = self.from;
        assert_eq!(image.len(), height * width * 3);
        assert_eq!(out.len(), self.size * self.size * 3);
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has AVX2.
            return unsafe { self.apply_rgb_avx2(image, out) };
        }
        self.apply_rgb_portable(image, out);
    }

    /// [`Self::apply_rgb_portable`], compiled for AVX2.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn apply_rgb_avx2(&mut self, image: &[u8], out: &mut [u8]) {
        self.apply_rgb_portable(image, out);
    }

    #[inline(always)]
    fn apply_rgb_portable(&mut self, image: &[u8], out: &mut [u8]) {
        let (_, width) = self.from;
        let line = self.size * 3;
        let rows = image.chunks_exact(width * 3);
        for (pixels, narrow) in rows.zip(self.narrow.chunks_exact_mut(line)) {
            resize_rgb_row(pixels, &self.columns, narrow);
        }
        let mut sums = vec![0; line];
        for (window, out) in self.rows.iter().zip(out.chunks_exact_mut(line)) {
            sum_rows(&self.narrow, window, &mut sums, out);
        }
    }

    /// [`Self::apply_portable`], compiled for AVX2: the loops vectorize to about half the time.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn apply_avx2(&mut self, image: &[u8], palette: &Palette, out: &mut [u8]) {
        self.apply_portable(image, palette, out);
    }

    #[inline(always)]
    fn apply_portable(&mut self, image: &[u8], palette: &Palette, out: &mut [u8]) {
        let (height, width) = self.from;
        let line = self.size * 3;
        for row in 0..height {
            let pixels = &image[row * width..][..width];
            // Adjacent rows are often equal.
            if row > 0 && image[(row - 1) * width..][..width] == *pixels {
                let before = (row - 1) * line..row * line;
                self.narrow.copy_within(before, row * line);
            } else {
                let to = &mut self.narrow[row * line..][..line];
                resize_row(pixels, palette, &self.columns, to);
            }
        }
        let mut sums = vec![0; line];
        for (window, out) in self.rows.iter().zip(out.chunks_exact_mut(line)) {
            sum_rows(&self.narrow, window, &mut sums, out);
        }
    }
}

/// Whether the first `count` pixels have one color. Counts above 8 and the last pixels of a row give false.
#[inline(always)]
fn is_one_color(pixels: &[u8], count: usize) -> bool {
    let Some(eight) = pixels.first_chunk::<8>() else {
        return false;
    };
    let word = u64::from_le_bytes(*eight);
    let differences = word ^ (u64::from(eight[0]) * 0x0101_0101_0101_0101);
    count <= 8 && differences << (64 - 8 * count) == 0
}

/// A row of palette indices to RGB at the target width.
#[inline(always)]
fn resize_row(pixels: &[u8], palette: &Palette, windows: &[Window], out: &mut [u8]) {
    for (window, out) in windows.iter().zip(out.chunks_exact_mut(3)) {
        let pixels = &pixels[window.first..];
        // Weights sum to 1 up to a few units in the last place, so one color keeps its value.
        if is_one_color(pixels, window.weights.len()) {
            let [red, green, blue, _] = palette[usize::from(pixels[0])];
            out.copy_from_slice(&[red as u8, green as u8, blue as u8]);
            continue;
        }
        let mut sums = [HALF; 4];
        for (weight, pixel) in window.weights.iter().zip(pixels) {
            let color = &palette[usize::from(*pixel)];
            for (sum, channel) in sums.iter_mut().zip(color) {
                *sum += weight * channel;
            }
        }
        for (out, sum) in out.iter_mut().zip(sums) {
            *out = (sum >> BITS) as u8;
        }
    }
}

/// A row of RGB pixels to the target width.
#[inline(always)]
fn resize_rgb_row(pixels: &[u8], windows: &[Window], out: &mut [u8]) {
    for (window, out) in windows.iter().zip(out.chunks_exact_mut(3)) {
        // Four lanes, of which three are used, fill a register.
        let mut sums = [HALF; 4];
        let pixels = pixels[window.first * 3..].as_chunks::<3>().0;
        for (weight, &[red, green, blue]) in window.weights.iter().zip(pixels) {
            for (sum, channel) in sums.iter_mut().zip([red, green, blue, 0]) {
                *sum += weight * i32::from(channel);
            }
        }
        for (out, sum) in out.iter_mut().zip(sums) {
            *out = (sum >> BITS) as u8;
        }
    }
}

/// The weighted sum of the rows in a window.
#[inline(always)]
fn sum_rows(rows: &[u8], window: &Window, sums: &mut [i32], out: &mut [u8]) {
    let line = out.len();
    sums.fill(HALF);
    let rows = rows[window.first * line..].chunks_exact(line);
    for (weight, row) in window.weights.iter().zip(rows) {
        for (sum, channel) in sums.iter_mut().zip(row) {
            *sum += weight * i32::from(*channel);
        }
    }
    for (out, sum) in out.iter_mut().zip(sums) {
        *out = (*sum >> BITS) as u8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gray() -> Palette {
        std::array::from_fn(|i| [i as i32, i as i32, i as i32, 0])
    }

    #[test]
    fn images_of_one_color_keep_it() {
        for color in [0, 1, 127, 254, 255] {
            let mut out = vec![9; 64 * 64 * 3];
            Resize::new(210, 160, 64).apply(&vec![color; 210 * 160], &gray(), &mut out);
            assert!(out.iter().all(|x| *x == color), "{color}");
        }
    }

    #[test]
    fn weights_form_a_triangle() {
        // Half the size: four pixels at distances 3/4, 1/4, 1/4 and 3/4 of the support.
        let window = &windows(8, 4)[1];
        assert_eq!(window.first, 1);
        let eighths: Vec<i32> = window.weights.iter().map(|w| w >> (BITS - 3)).collect();
        assert_eq!(eighths, [1, 3, 3, 1]);
    }

    #[test]
    fn an_rgb_image_is_resized_like_a_palette_image_of_the_same_colors() {
        let palette: Palette = std::array::from_fn(|i| {
            let i = i as i32;
            [i, 255 - i, i * 7 % 256, 0]
        });
        // Broad areas of one color, which palette images take a shortcut for, and noise.
        for (height, width, size) in [(210, 160, 64), (160, 160, 32), (7, 9, 64)] {
            let index = |i: usize| match i / width % 3 {
                0 => (i * 31 % 251) as u8,
                _ => (i / width / 7 * 31 % 256) as u8,
            };
            let image: Vec<u8> = (0..height * width).map(index).collect();
            let color = |i: &u8| palette[usize::from(*i)][..3].iter().map(|c| *c as u8);
            let rgb: Vec<u8> = image.iter().flat_map(color).collect();
            let mut resize = Resize::new(height, width, size);
            let (mut expected, mut found) = (vec![0; size * size * 3], vec![1; size * size * 3]);
            resize.apply(&image, &palette, &mut expected);
            resize.apply_rgb(&rgb, &mut found);
            assert!(found == expected, "{height}x{width}");
        }
    }

    #[test]
    fn repeated_rows_and_avx2_do_not_change_the_result() {
        let image: Vec<u8> = (0..210 * 160)
            .map(|i| ((i / 160 / 7 * 31 + i % 160 * 3) % 256) as u8)
            .collect();
        let mut resize = Resize::new(210, 160, 64);
        let mut out = vec![0; 64 * 64 * 3];
        resize.apply(&image, &gray(), &mut out);
        let mut expected = vec![0; 64 * 64 * 3];
        for (row, pixels) in image.chunks_exact(160).enumerate() {
            let to = &mut resize.narrow[row * 192..][..192];
            resize_row(pixels, &gray(), &resize.columns, to);
        }
        let mut sums = vec![0; 192];
        for (window, out) in resize.rows.iter().zip(expected.chunks_exact_mut(192)) {
            sum_rows(&resize.narrow, window, &mut sums, out);
        }
        assert_eq!(out, expected);
    }
}
