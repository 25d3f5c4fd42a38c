//! [`Preprocess`]: frame skip, maximum over two frames, gray scale and resizing, in the order of the Atari benchmark.

use rem_ale::Resize;
use serde::{Deserialize, Serialize};

use crate::config::{ResizeFilter, Wrappers};
use crate::env::snapshot::{invalid, pack, unpack};
use crate::env::{Action, Env, EnvError, Observation, ObservationSpace, Outcome, Spaces, Step};

const LAYER: &str = "preprocess";

/// Turns the images of an environment into square RGB frames, and repeats actions.
///
/// A step takes the action `frame_skip` times and sums the rewards. Its frame is the last one, or with `max_of_two` the
/// maximum over the last two, after resizing. If the episode is over earlier, frames that were not reached keep the
/// content of the step before, as in the benchmark's wrappers.
pub struct Preprocess<E> {
    inner: E,
    settings: Wrappers,
    size: usize,
    scale: Scale,
    /// The last two frames of a step.
    pair: [Vec<u8>; 2],
    /// The current observation.
    frame: Vec<u8>,
}

/// The state outside the wrapped environment is `pair` and `frame`, as bytes.
#[derive(Serialize, Deserialize)]
struct Size {
    size: usize,
}

impl<E: Env> Preprocess<E> {
    /// Wraps an environment; frames get `size` x `size` pixels.
    ///
    /// # Panics
    /// If `settings.frame_skip` is 0.
    pub fn new(inner: E, settings: Wrappers, size: usize) -> Self {
        assert!(settings.frame_skip > 0);
        let bytes = size * size * 3;
        Self {
            scale: Scale::new(&inner.spaces().observation, settings, size),
            inner,
            settings,
            size,
            pair: [vec![0; bytes], vec![0; bytes]],
            frame: vec![0; bytes],
        }
    }

    /// Whether the wrapper would change nothing.
    pub(crate) fn is_identity(spaces: &Spaces, settings: &Wrappers, size: usize) -> bool {
        spaces.observation == ObservationSpace::rgb(size, size)
            && settings.frame_skip == 1
            && !settings.grayscale
    }
}

impl<E: Env> Env for Preprocess<E> {
    fn spaces(&self) -> Spaces {
        Spaces {
            observation: ObservationSpace::rgb(self.size, self.size),
            action: self.inner.spaces().action,
        }
    }

    fn reset(&mut self) -> Result<Observation, EnvError> {
        let observation = self.inner.reset()?;
        self.scale.apply(observation.image(), &mut self.frame);
        Ok(self.frame.clone().into())
    }

    fn step(&mut self, action: &Action) -> Result<Step, EnvError> {
        let skip = self.settings.frame_skip;
        let (mut total, mut outcome) = (0.0, Outcome::Running);
        for frame in 0..skip {
            let step = self.inner.step(action)?;
            total += step.reward;
            outcome = step.outcome;
            let over = outcome != Outcome::Running;
            if self.settings.max_of_two && frame + 2 >= skip {
                let kept = &mut self.pair[(frame + 2 - skip) as usize];
                self.scale.apply(step.observation.image(), kept);
            } else if !self.settings.max_of_two && (frame + 1 == skip || over) {
                self.scale.apply(step.observation.image(), &mut self.frame);
            }
            if over {
                break;
            }
        }
        if self.settings.max_of_two {
            let [first, second] = &mut self.pair;
            if skip == 1 {
                first.copy_from_slice(second);
            }
            for ((seen, a), b) in self.frame.iter_mut().zip(&*first).zip(&*second) {
                *seen = *a.max(b);
            }
        }
        Ok(Step {
            observation: self.frame.clone().into(),
            reward: total,
            outcome,
        })
    }

    fn lives(&self) -> u32 {
        self.inner.lives()
    }

    fn scripted_action(&self) -> Option<Action> {
        self.inner.scripted_action()
    }

    fn snapshot(&mut self) -> Result<Option<Vec<u8>>, EnvError> {
        let Some(inner) = self.inner.snapshot()? else {
            return Ok(None);
        };
        let [first, second] = &self.pair;
        let inner = [&self.frame[..], first, second, &inner].concat();
        Ok(Some(pack(LAYER, &Size { size: self.size }, &inner)))
    }

    fn restore(&mut self, snapshot: &[u8]) -> Result<Observation, EnvError> {
        let (Size { size }, rest) = unpack(LAYER, snapshot)?;
        let bytes = self.frame.len();
        if size != self.size || rest.len() < 3 * bytes {
            return Err(invalid(
                "the frames of `preprocess` are of another size".into(),
            ));
        }
        let (frames, inner) = rest.split_at(3 * bytes);
        self.inner.restore(inner)?;
        self.frame.copy_from_slice(&frames[..bytes]);
        let kept = self.pair.iter_mut();
        for (kept, frame) in kept.zip(frames[bytes..].chunks_exact(bytes)) {
            kept.copy_from_slice(frame);
        }
        Ok(self.frame.clone().into())
    }
}

/// Converts images of one space to square RGB frames.
pub(crate) struct Scale {
    from: (usize, usize, usize),
    size: usize,
    grayscale: bool,
    filter: ResizeFilter,
    resize: Resize,
    /// The image as RGB, if it is not RGB already.
    rgb: Vec<u8>,
}

impl Scale {
    pub(crate) fn new(space: &ObservationSpace, settings: Wrappers, size: usize) -> Self {
        let ObservationSpace::Image {
            height,
            width,
            channels,
        } = *space;
        Self {
            from: (height, width, channels),
            size,
            grayscale: settings.grayscale,
            filter: settings.resize,
            resize: Resize::new(height, width, size),
            rgb: Vec::new(),
        }
    }

    /// Converts an image of `height * width * channels` bytes to `size * size * 3`.
    pub(crate) fn apply(&mut self, image: &[u8], out: &mut [u8]) {
        let (height, width, channels) = self.from;
        let image = match (channels, self.grayscale) {
            (3, false) => image,
            (3, true) => {
                self.rgb.clear();
                let pixels = image.as_chunks::<3>().0;
                self.rgb.extend(pixels.iter().flat_map(|p| [luma(p); 3]));
                &self.rgb
            }
            _ => {
                self.rgb.clear();
                self.rgb.extend(image.iter().flat_map(|value| [*value; 3]));
                &self.rgb
            }
        };
        if (height, width) == (self.size, self.size) {
            out.copy_from_slice(image);
            return;
        }
        match self.filter {
            ResizeFilter::Bilinear => self.resize.apply_rgb(image, out),
            ResizeFilter::Nearest => nearest(image, (height, width), self.size, out),
        }
    }
}

/// Luminance by ITU-R 601, as Pillow computes it.
fn luma([r, g, b]: &[u8; 3]) -> u8 {
    let [r, g, b] = [r, g, b].map(|channel| u32::from(*channel));
    ((r * 19595 + g * 38470 + b * 7471 + 0x8000) >> 16) as u8
}

fn nearest(image: &[u8], (height, width): (usize, usize), size: usize, out: &mut [u8]) {
    // The source pixel under the center of a target pixel.
    let source = |target: usize, from: usize| (2 * target + 1) * from / (2 * size);
    for (y, row) in out.chunks_exact_mut(size * 3).enumerate() {
        let from = &image[source(y, height) * width * 3..][..width * 3];
        for (x, pixel) in row.chunks_exact_mut(3).enumerate() {
            pixel.copy_from_slice(&from[source(x, width) * 3..][..3]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::ActionSpace;
    use crate::env::testing::act;

    /// Counts steps: each frame is filled with the number of the step times ten, each reward is that number.
    struct Counter {
        space: ObservationSpace,
        steps: u8,
        length: u8,
    }

    impl Counter {
        fn frame(&self) -> Observation {
            vec![self.steps * 10; self.space.bytes()].into()
        }
    }

    impl Env for Counter {
        fn spaces(&self) -> Spaces {
            Spaces {
                observation: self.space.clone(),
                action: ActionSpace::discrete(2),
            }
        }
        fn reset(&mut self) -> Result<Observation, EnvError> {
            self.steps = 0;
            Ok(self.frame())
        }
        fn step(&mut self, action: &Action) -> Result<Step, EnvError> {
            self.steps += 1;
            // Action 1 darkens the frame.
            let observation = match action.index() {
                0 => self.frame(),
                _ => vec![self.steps; self.space.bytes()].into(),
            };
            Ok(Step {
                observation,
                reward: f32::from(self.steps),
                outcome: match self.steps == self.length {
                    true => Outcome::Terminated,
                    false => Outcome::Running,
                },
            })
        }
        fn snapshot(&mut self) -> Result<Option<Vec<u8>>, EnvError> {
            Ok(Some(vec![self.steps]))
        }
        fn restore(&mut self, snapshot: &[u8]) -> Result<Observation, EnvError> {
            self.steps = snapshot[0];
            Ok(self.frame())
        }
    }

    fn counter(space: ObservationSpace, settings: Wrappers) -> Preprocess<Counter> {
        let inner = Counter {
            space,
            steps: 0,
            length: 6,
        };
        Preprocess::new(inner, settings, 4)
    }

    fn skipping(frame_skip: u32, max_of_two: bool) -> Wrappers {
        Wrappers {
            frame_skip,
            max_of_two,
            ..Wrappers::default()
        }
    }

    #[test]
    fn actions_are_repeated_and_rewards_summed_until_the_end() {
        let mut env = counter(ObservationSpace::gray(7, 5), skipping(4, false));
        assert_eq!(env.reset().unwrap().into_image(), [0; 48]);
        let first = act(&mut env, 0);
        assert_eq!((first.reward, first.outcome), (10.0, Outcome::Running));
        assert_eq!(first.observation.into_image(), [40; 48]);
        let second = act(&mut env, 0);
        assert_eq!((second.reward, second.outcome), (11.0, Outcome::Terminated));
        assert_eq!(second.observation.into_image(), [60; 48]);
    }

    #[test]
    fn the_frame_is_the_maximum_over_the_last_two() {
        let mut env = counter(ObservationSpace::rgb(4, 4), skipping(2, true));
        env.reset().unwrap();
        assert_eq!(act(&mut env, 0).observation.into_image(), [20; 48]);
        // Steps 3 and 4 are dark.
        assert_eq!(act(&mut env, 1).observation.into_image(), [4; 48]);
        let snapshot = env.snapshot().unwrap().unwrap();
        let expected = act(&mut env, 0);
        let mut other = counter(ObservationSpace::rgb(4, 4), skipping(2, true));
        assert_eq!(other.restore(&snapshot).unwrap().into_image(), [4; 48]);
        assert_eq!(act(&mut other, 0), expected);
        assert!(other.restore(&snapshot[..60]).is_err());
    }

    #[test]
    fn colors_become_gray_and_nearest_keeps_values() {
        let settings = Wrappers {
            grayscale: true,
            resize: ResizeFilter::Nearest,
            ..Wrappers::default()
        };
        let space = ObservationSpace::rgb(2, 2);
        let mut scale = Scale::new(&space, settings, 4);
        let mut out = vec![0; 48];
        let image = [255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255];
        scale.apply(&image, &mut out);
        // Luminance of pure red, green and blue in Pillow: 76, 150 (149.7), 29.
        let corners = [0, 9, 36, 45].map(|at| out[at]);
        assert_eq!(corners, [76, 150, 29, 255]);
        assert_eq!(&out[..6], [76; 6]);
    }
}
