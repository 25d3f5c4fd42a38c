//! What is lost between frames and tokens.

use std::collections::{HashMap, HashSet};

use burn::module::Module;
use serde::Serialize;

use super::estimate::share;
use super::{HeldOut, Progress, Subject};
use crate::data::batch::{self, host_tokens, to_rgb};
use crate::data::replay::StepId;
use crate::model::tokenizer::CodeUsage;

/// Frames per call of the tokenizer.
const BATCH_SIZE: usize = 128;

/// Measurements of a tokenizer on held-out frames.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TokenizerResult {
    /// Number of frames.
    pub frames: usize,
    /// Number of different frames.
    pub distinct_frames: usize,
    /// Different frames that share all tokens with another one: the agent cannot tell them apart.
    pub ambiguous_frames: usize,
    /// Share of the frames that are reconstructed exactly, after rounding.
    pub exact: f64,
    /// Explained variance of the reconstructions.
    pub explained_variance: f64,
    /// Share of the tokens that differ from those of the frame before.
    pub changed_tokens: Option<f64>,
    /// Share of the changed tokens in cells without a changed pixel: codes that depend on pixels elsewhere, which the world
    /// model has to predict in vain.
    pub changed_without_pixels: Option<f64>,
    /// Share of the cells with a changed pixel whose token stays the same.
    pub unchanged_with_pixels: Option<f64>,
    /// Number of codes in use.
    pub active_codes: usize,
    /// Number of codes.
    pub vocabulary: usize,
    /// Perplexity of the tokens: the effective number of codes.
    pub perplexity: f64,
}

impl Subject<'_> {
    /// Measures the tokenizer on the frames of held-out play.
    pub fn tokenizer(&self, play: &HeldOut, progress: Progress) -> TokenizerResult {
        let tokenizer = self.agent.tokenizer.valid();
        let size = self.config.env.frame_size;
        let mut counts = Counts::new(size, self.config.grid(), self.config.tokenizer.vocabulary);
        let replay = &play.replay;
        let (mut done, all) = (0, replay.steps());
        for episode in 0..replay.episodes() as u32 {
            let steps = 0..replay.episode_steps(episode) as u32;
            let ids: Vec<StepId> = steps.map(|index| StepId { episode, index }).collect();
            counts.start_episode();
            for ids in ids.chunks(BATCH_SIZE) {
                let frames = ids.iter().map(|id| replay.frame(*id));
                let tokens = tokenizer.encode(batch::frames(frames, size, self.device));
                let images = to_rgb(tokenizer.decode(tokens.clone()));
                let tokens = host_tokens(tokens);
                let tokens = tokens.chunks(self.config.tokens_per_obs());
                for ((id, tokens), image) in ids.iter().zip(tokens).zip(&images) {
                    counts.add(replay.frame(*id), tokens, image);
                }
                done += ids.len();
                progress(done, all);
            }
        }
        counts.result()
    }
}

/// What is counted frame by frame.
struct Counts<'a> {
    size: usize,
    grid: usize,
    /// The frame before in the same episode, and its tokens.
    before: Option<(&'a [u8], Vec<u16>)>,
    /// The different frames of each combination of tokens.
    frames_of: HashMap<Vec<u16>, HashSet<&'a [u8]>>,
    usage: CodeUsage,
    frames: usize,
    exact: usize,
    /// Squared errors of all reconstructions.
    squared_error: f64,
    /// Sum of each byte over all frames, and of all squares.
    sums: Vec<f64>,
    squares: f64,
    cells: Cells,
}

/// Cells, each compared with the frame before.
#[derive(Default)]
struct Cells {
    all: usize,
    new_token: usize,
    new_pixels: usize,
    new_token_only: usize,
    new_pixels_only: usize,
}

impl<'a> Counts<'a> {
    fn new(size: usize, grid: usize, vocabulary: usize) -> Self {
        Self {
            size,
            grid,
            before: None,
            frames_of: HashMap::new(),
            usage: CodeUsage::new(vocabulary),
            frames: 0,
            exact: 0,
            squared_error: 0.0,
            sums: vec![0.0; size * size * 3],
            squares: 0.0,
            cells: Cells::default(),
        }
    }

    /// The next frame has none before it.
    fn start_episode(&mut self) {
        self.before = None;
    }

    /// Adds a frame with its tokens and its reconstruction.
    fn add(&mut self, frame: &'a [u8], tokens: &[u16], reconstruction: &[u8]) {
        self.frames += 1;
        self.exact += usize::from(frame == reconstruction);
        for ((sum, pixel), other) in self.sums.iter_mut().zip(frame).zip(reconstruction) {
            let pixel = f64::from(*pixel);
            *sum += pixel;
            self.squares += pixel * pixel;
            self.squared_error += (pixel - f64::from(*other)).powi(2);
        }
        self.usage.count(tokens);
        let same_tokens = self.frames_of.entry(tokens.to_vec()).or_default();
        same_tokens.insert(frame);
        if let Some((before, tokens_before)) = self.before.take() {
            for (cell, (token, before_token)) in tokens.iter().zip(&tokens_before).enumerate() {
                let new_pixels = self.cell_differs(cell, frame, before);
                let new_token = token != before_token;
                let cells = &mut self.cells;
                cells.all += 1;
                cells.new_token += usize::from(new_token);
                cells.new_pixels += usize::from(new_pixels);
                cells.new_token_only += usize::from(new_token && !new_pixels);
                cells.new_pixels_only += usize::from(new_pixels && !new_token);
            }
        }
        self.before = Some((frame, tokens.to_vec()));
    }

    /// Whether two frames differ in the pixels of a cell.
    fn cell_differs(&self, cell: usize, a: &[u8], b: &[u8]) -> bool {
        let side = self.size / self.grid;
        let (top, left) = (cell / self.grid * side, cell % self.grid * side);
        (top..top + side).any(|y| {
            let row = (y * self.size + left) * 3..(y * self.size + left + side) * 3;
            a[row.clone()] != b[row]
        })
    }

    fn result(&self) -> TokenizerResult {
        let n = self.frames.max(1) as f64;
        let of_means: f64 = self.sums.iter().map(|sum| sum * sum / n).sum();
        let variance = self.squares - of_means;
        let sizes = self.frames_of.values().map(HashSet::len);
        let cells = &self.cells;
        TokenizerResult {
            frames: self.frames,
            distinct_frames: sizes.clone().sum(),
            ambiguous_frames: sizes.filter(|frames| *frames > 1).sum(),
            exact: self.exact as f64 / n,
            // Frames that are all equal have no variance.
            explained_variance: match variance > 0.0 {
                true => 1.0 - self.squared_error / variance,
                false => f64::from(u8::from(self.squared_error == 0.0)),
            },
            changed_tokens: share(cells.new_token, cells.all),
            changed_without_pixels: share(cells.new_token_only, cells.new_token),
            unchanged_with_pixels: share(cells.new_pixels_only, cells.new_pixels),
            active_codes: self.usage.active(),
            vocabulary: self.usage.counts().len(),
            perplexity: self.usage.perplexity(),
        }
    }
}

/// Share of ambiguous frames from which on a tokenizer loses information.
const MANY_AMBIGUOUS: f64 = 0.02;
/// Share of changed tokens without changed pixels from which on tokens are noisy.
const MANY_FAR: f64 = 0.2;
/// Explained variance below which reconstructions are poor.
const POOR: f64 = 0.9;

impl TokenizerResult {
    /// Whether tokens lack what frames show.
    pub fn loses_information(&self) -> bool {
        self.ambiguous_share() > MANY_AMBIGUOUS || self.explained_variance < POOR
    }

    fn ambiguous_share(&self) -> f64 {
        self.ambiguous_frames as f64 / self.distinct_frames.max(1) as f64
    }

    /// What the numbers mean.
    pub fn verdict(&self) -> String {
        let far = self.changed_without_pixels.unwrap_or(0.0);
        if self.ambiguous_share() > MANY_AMBIGUOUS {
            return format!(
                "The tokenizer loses information: {:.0}% of the different frames share all tokens with another frame.",
                100.0 * self.ambiguous_share()
            );
        }
        if self.explained_variance < POOR {
            return format!(
                "The tokenizer loses information: its reconstructions explain only {:.0}% of the variance.",
                100.0 * self.explained_variance.max(0.0)
            );
        }
        if far > MANY_FAR {
            return format!(
                "The tokenizer tells frames apart, but {:.0}% of the changed tokens are noise for the world model: no pixel \
                 of their cell changed.",
                100.0 * far
            );
        }
        "The tokenizer tells frames apart, and tokens change where pixels do.".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames of 4x4 pixels in a grid of 2x2 cells; `pixels` holds the brightness of the pixels that are not black.
    fn frame(pixels: &[(usize, u8)]) -> Vec<u8> {
        let mut frame = vec![0; 48];
        for (pixel, value) in pixels {
            frame[3 * pixel..3 * pixel + 3].fill(*value);
        }
        frame
    }

    #[test]
    fn tokens_are_compared_with_the_pixels_of_their_cell() {
        // Pixel 0 is in cell 0, pixel 15 in cell 3.
        let frames = [frame(&[]), frame(&[(0, 9)]), frame(&[(0, 9), (15, 9)])];
        let mut counts = Counts::new(4, 2, 8);
        counts.add(&frames[0], &[0, 0, 0, 0], &frames[0]);
        // Cell 0 has new pixels and a new token; cell 1 has a new token only.
        counts.add(&frames[1], &[1, 1, 0, 0], &frames[1]);
        // Cell 3 has new pixels only.
        counts.add(&frames[2], &[1, 1, 0, 0], &frames[1]);
        // The first frame of an episode is not compared.
        counts.start_episode();
        counts.add(&frames[0], &[7, 7, 7, 7], &frames[0]);
        let result = counts.result();
        assert_eq!(result.changed_tokens, Some(2.0 / 8.0));
        assert_eq!(result.changed_without_pixels, Some(0.5));
        assert_eq!(result.unchanged_with_pixels, Some(0.5));
        assert_eq!(result.exact, 0.75);
        assert_eq!(result.active_codes, 3);
    }

    #[test]
    fn frames_that_share_all_tokens_are_ambiguous_once_each() {
        let frames = [frame(&[]), frame(&[(0, 1)]), frame(&[(1, 1)])];
        let mut counts = Counts::new(4, 2, 8);
        for (i, tokens) in [
            (0, [1; 4]),
            (1, [1; 4]),
            (1, [1; 4]),
            (2, [2; 4]),
            (2, [2; 4]),
        ] {
            counts.add(&frames[i], &tokens, &frames[i]);
        }
        let result = counts.result();
        assert_eq!((result.frames, result.distinct_frames), (5, 3));
        assert_eq!(result.ambiguous_frames, 2);
        assert!(result.loses_information() && result.verdict().contains("67%"));
        assert_eq!(result.explained_variance, 1.0);
    }

    #[test]
    fn the_mean_frame_explains_no_variance() {
        let frames = [frame(&[]), frame(&[(0, 100)])];
        let mean = frame(&[(0, 50)]);
        let mut counts = Counts::new(4, 2, 8);
        for (frame, token) in frames.iter().zip([0, 1]) {
            counts.add(frame, &[token; 4], &mean);
        }
        let result = counts.result();
        assert!(result.explained_variance.abs() < 1e-12);
        assert!(result.loses_information() && result.verdict().contains("only 0%"));
    }
}
