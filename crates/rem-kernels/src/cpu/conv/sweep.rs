//! Iteration of the convolution kinds over images.
//!
//! All kinds, forward and backward, share one scheme: a grid of positions, and at each position a window of the source
//! image that is multiplied into a few pixels of the target image, the phases. Upsampled images are never stored: taps
//! of the kernel that fall on copies of one pixel are merged into one tap with the sum of their weights. Which taps
//! merge depends on the phase only.

use std::ops::Range;

use super::{ConvKind, Shape};

/// Along one axis, the offset of a window's pixel from its position, and the kernel indices that are summed for it.
pub(super) type Tap = (isize, &'static [usize]);

/// The iteration along one axis; both axes are alike.
pub(super) struct Axis {
    /// Source pixels from one position to the next.
    pub stride: usize,
    /// The taps of each of the target's pixels at a position, as many as there are target pixels from one
    /// position to the next. Taps are in order, without gaps.
    pub phases: &'static [&'static [Tap]],
}

static POINTWISE: Axis = Axis {
    stride: 1,
    phases: &[&[(0, &[0])]],
};
static SAME: Axis = Axis {
    stride: 1,
    phases: &[&[(-1, &[0]), (0, &[1]), (1, &[2])]],
};
static SAME_BACKWARD: Axis = Axis {
    stride: 1,
    phases: &[&[(-1, &[2]), (0, &[1]), (1, &[0])]],
};
static DOWN: Axis = Axis {
    stride: 2,
    phases: &[&[(0, &[0]), (1, &[1]), (2, &[2])]],
};
/// Even pixels were read by two windows, odd ones by one.
static DOWN_BACKWARD: Axis = Axis {
    stride: 1,
    phases: &[&[(-1, &[2]), (0, &[0])], &[(0, &[1])]],
};
static UP: Axis = Axis {
    stride: 1,
    phases: &[&[(-1, &[0]), (0, &[1, 2])], &[(0, &[0, 1]), (1, &[2])]],
};
static UP_BACKWARD: Axis = Axis {
    stride: 2,
    phases: &[&[(-1, &[2]), (0, &[1, 2]), (1, &[0, 1]), (2, &[0])]],
};

#[derive(Clone, Copy)]
pub(super) struct Size {
    pub height: usize,
    pub width: usize,
    pub channels: usize,
}

impl Size {
    pub fn row(&self) -> usize {
        self.width * self.channels
    }
}

/// The iteration over a batch of images.
pub(super) struct Sweep {
    pub images: usize,
    pub source: Size,
    pub target: Size,
    pub axis: &'static Axis,
    /// Height and width of the kernel.
    pub side: usize,
}

impl Sweep {
    pub fn forward(shape: Shape, kind: ConvKind) -> Self {
        let (height, width) = shape.output(kind);
        Self {
            images: shape.images,
            source: Size {
                height: shape.height,
                width: shape.width,
                channels: shape.c_in,
            },
            target: Size {
                height,
                width,
                channels: shape.c_out,
            },
            axis: match kind {
                ConvKind::Same => &SAME,
                ConvKind::Down => &DOWN,
                ConvKind::Up => &UP,
                ConvKind::Pointwise => &POINTWISE,
            },
            side: kind.side(),
        }
    }

    /// From the output's gradient to the input's.
    pub fn backward(shape: Shape, kind: ConvKind) -> Self {
        let forward = Self::forward(shape, kind);
        Self {
            source: forward.target,
            target: forward.source,
            axis: match kind {
                ConvKind::Same => &SAME_BACKWARD,
                ConvKind::Down => &DOWN_BACKWARD,
                ConvKind::Up => &UP_BACKWARD,
                ConvKind::Pointwise => &POINTWISE,
            },
            ..forward
        }
    }

    /// Target pixels from one position to the next.
    pub fn spread(&self) -> usize {
        self.axis.phases.len()
    }

    pub fn grid_height(&self) -> usize {
        self.source.height / self.axis.stride
    }

    pub fn grid_width(&self) -> usize {
        self.source.width / self.axis.stride
    }

    /// Vertical and horizontal index of each phase.
    pub fn phases(&self) -> impl Iterator<Item = (usize, usize)> {
        let spread = self.spread();
        (0..spread * spread).map(move |phase| (phase / spread, phase % spread))
    }

    /// How far windows reach before a position.
    pub fn before(&self) -> usize {
        let first = |taps: &&[Tap]| -taps[0].0;
        self.axis.phases.iter().map(first).max().unwrap_or(0) as usize
    }

    /// How far windows reach after a position.
    pub fn after(&self) -> usize {
        let last = |taps: &&[Tap]| taps[taps.len() - 1].0;
        self.axis.phases.iter().map(last).max().unwrap_or(0) as usize
    }

    /// Source pixels under the windows of `positions` adjacent positions, along one axis.
    pub fn reach(&self, positions: usize) -> usize {
        (positions - 1) * self.axis.stride + self.before() + 1 + self.after()
    }

    /// The source row, unless it is padding, that is row `i` under the windows from grid row `first` on.
    pub fn source_row(&self, first: usize, i: usize) -> Option<usize> {
        let row = (first * self.axis.stride + i).checked_sub(self.before())?;
        (row < self.source.height).then_some(row)
    }

    /// Multiplications over all images.
    pub fn products(&self) -> usize {
        let taps: usize = self.axis.phases.iter().map(|taps| taps.len()).sum();
        let pixels = self.images * self.grid_height() * self.grid_width();
        pixels * taps * taps * self.source.channels * self.target.channels
    }

    /// Whether there is work for more than one thread.
    pub fn is_large(&self) -> bool {
        self.products() >= 1 << 19
    }

    /// Splits the grid into strips, if possible at least `parts`, whose working memory (`size` of a number of rows) is
    /// at most `limit` if possible.
    pub fn strips(&self, size: impl Fn(usize) -> usize, limit: usize, parts: usize) -> Vec<Strip> {
        let height = self.grid_height();
        if self.images == 0 || height == 0 || self.grid_width() == 0 {
            return Vec::new();
        }
        let mut bands = parts.div_ceil(self.images).min(height);
        while bands < height && size(height.div_ceil(bands)) > limit {
            bands += 1;
        }
        let groups = if bands > 1 {
            self.images
        } else {
            // Weights are read once per strip: combine several small images.
            let at_once = (limit / size(height)).max(1);
            self.images
                .div_ceil(at_once)
                .next_multiple_of(parts)
                .min(self.images)
        };
        let strip = |images: Range<usize>, rows: Range<usize>| Strip {
            image: images.start,
            images: images.len(),
            row: rows.start,
            rows: rows.len(),
        };
        cut(self.images, groups)
            .flat_map(|images| cut(height, bands).map(move |rows| strip(images.clone(), rows)))
            .collect()
    }
}

/// Splits `total` into `parts` that differ by at most one.
fn cut(total: usize, parts: usize) -> impl Iterator<Item = Range<usize>> {
    (0..parts).map(move |i| i * total / parts..(i + 1) * total / parts)
}

/// Rows of the grid that one task computes: some of an image, or all of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Strip {
    pub image: usize,
    pub images: usize,
    pub row: usize,
    pub rows: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strips_cover_the_grid_in_order_within_the_limit() {
        for (images, height) in [(1, 1), (1, 64), (5, 7), (32, 4), (33, 8)] {
            let shape = Shape {
                images,
                height,
                width: 4,
                c_in: 1,
                c_out: 1,
            };
            let sweep = Sweep::forward(shape, ConvKind::Same);
            for limit in [1, 6, 40, 1000] {
                for parts in [1, 3, 16] {
                    let strips = sweep.strips(|rows| sweep.reach(rows), limit, parts);
                    let mut next = 0;
                    for strip in &strips {
                        assert_eq!(strip.image * height + strip.row, next, "{strips:?}");
                        assert!(strip.images == 1 || strip.rows == height, "{strips:?}");
                        let fits = strip.images * sweep.reach(strip.rows) <= limit;
                        assert!(fits || (strip.images == 1 && strip.rows == 1), "{strips:?}");
                        next += strip.images * strip.rows;
                    }
                    assert_eq!(next, images * height);
                    assert!(strips.len() >= parts.min(images * height), "{strips:?}");
                }
            }
        }
    }
}
