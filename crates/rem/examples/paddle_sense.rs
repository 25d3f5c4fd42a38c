//! Measures whether a world model accounts for the paddle in Breakout and Pong.
//!
//! Finds all moments of held-out play in which the ball approaches the paddle, and imagines what follows with the recorded
//! actions. Prints the fraction of dreams that lose the ball, separately for balls that were lost and balls that
//! were hit in reality. A model that ignores the paddle has the same fraction for both.
//!
//! ```sh
//! cargo run --release --features atari --example paddle_sense -- RUN PLAY
//! ```
//! RUN provides the world model. PLAY provides the replay: another run of the same game with the same frame size.

use std::path::{Path, PathBuf};

use burn::module::Module;
use burn::tensor::{Int, Tensor, TensorData};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rem::config::Config;
use rem::data::replay::{Replay, StepId};
use rem::host;
use rem::imagination::Dream;
use rem::run::{self, checkpoint};
use rem::{device, threads, train};

/// Length of a dream, and the number of steps within which a ball must be lost or hit in reality.
const STEPS: usize = 20;
/// Dreams per moment.
const DREAMS: usize = 2;
/// Moments per batch.
const BATCH_SIZE: usize = 512;

/// The region to search for the ball, in pixels of the Atari screen.
struct Field {
    rows: [usize; 2],
    columns: [usize; 2],
    channel: usize,
    background: f32,
    /// Whether the paddle is at the bottom; otherwise it is on the right.
    paddle_below: bool,
    /// Range of ball positions at which a dream starts.
    start: [f32; 2],
}

const SCREEN: [usize; 2] = [210, 160];
/// Minimum brightness above the background, as a fraction of what a ball adds to a pixel.
const THRESHOLD: f32 = 0.2;

fn field(game: &str) -> Option<Field> {
    match game {
        "breakout" => Some(Field {
            rows: [97, 184],
            columns: [14, 146],
            channel: 0,
            background: 0.0,
            paddle_below: true,
            start: [149.0, 162.0],
        }),
        "pong" => Some(Field {
            rows: [43, 190],
            columns: [28, 132],
            channel: 2,
            background: 17.0,
            paddle_below: false,
            start: [95.0, 115.0],
        }),
        _ => None,
    }
}

impl Field {
    /// The position of the ball along the axis to the paddle, in screen pixels, if it is visible.
    fn ball(&self, frame: &[u8], size: usize) -> Option<f32> {
        // A ball has 2x4 screen pixels and a brightness of 200.
        let pixel = (SCREEN[0] * SCREEN[1]) as f32 / (size * size) as f32;
        let threshold = THRESHOLD * 200.0 * (8.0 / pixel).min(1.0);
        let [rows, columns] = [(self.rows, SCREEN[0]), (self.columns, SCREEN[1])]
            .map(|([from, to], of)| (from * size).div_ceil(of)..to * size / of);
        let (mut sum, mut weight) = (0.0, 0.0);
        for y in rows {
            for x in columns.clone() {
                let level = f32::from(frame[(y * size + x) * 3 + self.channel]) - self.background;
                if level > threshold {
                    let (position, of) = match self.paddle_below {
                        true => (y, SCREEN[0]),
                        false => (x, SCREEN[1]),
                    };
                    sum += level * (position as f32 + 0.5) * of as f32 / size as f32;
                    weight += level;
                }
            }
        }
        (weight > 0.0).then(|| sum / weight)
    }
}

/// A ball approaching the paddle: the step at which a dream starts, and the real outcome.
struct Moment {
    now: StepId,
    lost: bool,
}

/// All moments of the replay with a known outcome.
fn moments(replay: &Replay, field: &Field, size: usize, context: usize) -> Vec<Moment> {
    let mut moments = Vec::new();
    for episode in 0..replay.episodes() as u32 {
        let id = |index: usize| StepId {
            episode,
            index: index as u32,
        };
        let steps = replay.episode_steps(episode);
        let path: Vec<Option<f32>> = (0..steps)
            .map(|i| field.ball(replay.frame(id(i)), size))
            .collect();
        for now in context..steps {
            let (Some(before), Some(here)) = (path[now - 1], path[now]) else {
                continue;
            };
            let [near, far] = field.start;
            if here < before + 0.5 || !(near..far).contains(&here) {
                continue;
            }
            let end = (now + STEPS).min(steps);
            let lost = (now..end).any(|i| replay.terminated(id(i)) || replay.reward(id(i)) < 0.0);
            let hit = (now + 1..end).any(
                |i| matches!((path[i - 1], path[i]), (Some(a), Some(b)) if b < a - 0.5 && a > near),
            );
            // Skip balls that are both hit and lost, or neither.
            if lost != hit {
                moments.push(Moment { now: id(now), lost });
            }
        }
    }
    moments
}

fn replay_of(run: &Path, config: &Config) -> Replay {
    let epoch = *checkpoint::epochs(run)
        .last()
        .expect("PLAY has a checkpoint");
    let manifest = checkpoint::directory(run, epoch).join("manifest.json");
    let manifest = std::fs::read_to_string(manifest).expect("its manifest can be read");
    let manifest: checkpoint::Manifest = serde_json::from_str(&manifest).expect("a manifest");
    let (frame, tokens) = (config.frame_bytes(), config.tokens_per_obs());
    Replay::load(&run.join("replay"), &manifest.replay, frame, tokens).expect("a replay")
}

fn fail(message: &str) -> ! {
    eprintln!("error: {message}");
    std::process::exit(2);
}

fn main() {
    let paths: Vec<PathBuf> = std::env::args().skip(1).map(PathBuf::from).collect();
    let [run, play] = &paths[..] else {
        fail("usage: paddle_sense RUN PLAY");
    };
    let config = run::read_config(run).unwrap_or_else(|e| fail(&e.to_string()));
    let played = run::read_config(play).unwrap_or_else(|e| fail(&e.to_string()));
    let of = |config: &Config| (config.env.game.clone(), config.env.frame_size);
    if of(&config) != of(&played) {
        fail("RUN and PLAY have different games or frame sizes");
    }
    let Some(field) = field(&config.env.game) else {
        fail(&format!(
            "{} is not supported; use breakout or pong",
            config.env.game
        ));
    };
    threads::set(1).expect("one thread");
    threads::on_worker(|| sense(run, play, &config, &field));
}

fn sense(run: &Path, play: &Path, config: &Config, field: &Field) {
    let device = device::of(config).expect("the run's device");
    let (agent, epoch) = train::load_agent(run, config, None, device.clone()).expect("an agent");
    let (model, player) = (agent.world_model.valid(), agent.valid());
    let codes = player.tokenizer.codes();
    let replay = replay_of(play, config);
    let (size, context) = (config.env.frame_size, config.world_model.context);
    let k = config.tokens_per_obs();
    let ints = |values: Vec<i64>| {
        let count = values.len();
        Tensor::<1, Int>::from_data(TensorData::new(values, [count]), &device)
    };
    let mut rng = ChaCha8Rng::seed_from_u64(1);

    // [dreams that lost the ball, all dreams] for balls that were hit and balls that were lost.
    let mut counts = [[0usize; 2]; 2];
    for moments in moments(&replay, field, size, context).chunks(BATCH_SIZE) {
        let n = moments.len();
        let before = |m: &Moment, back: usize| StepId {
            index: m.now.index - back as u32,
            ..m.now
        };
        let context_steps = |m| (0..context).rev().map(move |back| before(m, back));
        let frames: Vec<StepId> = moments.iter().flat_map(context_steps).collect();
        let frames = frames.into_iter().map(|id| replay.frame(id));
        let tokens = host::ints(player.tokenize(frames, size, &device));
        let tokens: Tensor<3, Int> = ints(tokens).reshape([n, context, k]);
        let context_actions = (context > 1).then(|| {
            let taken = moments
                .iter()
                .flat_map(|m| context_steps(m).take(context - 1));
            let taken = taken.map(|id| i64::from(replay.action(id)));
            ints(taken.collect()).reshape([n, context - 1])
        });
        for _ in 0..DREAMS {
            let mut dream = Dream::start(&model, &codes, tokens.clone(), context_actions.clone());
            let mut lost = vec![false; n];
            for t in 0..STEPS {
                let action = |m: &Moment| {
                    let index = m.now.index + t as u32;
                    let real = (index as usize) < replay.episode_steps(m.now.episode);
                    // No action after the real end of the episode.
                    if real {
                        i64::from(replay.action(StepId { index, ..m.now }))
                    } else {
                        0
                    }
                };
                let step = dream.step(ints(moments.iter().map(action).collect()), &mut rng);
                for (i, lost) in lost.iter_mut().enumerate() {
                    *lost |= step.ends[i] || step.rewards[i] < 0.0;
                }
            }
            for (m, lost) in moments.iter().zip(lost) {
                counts[usize::from(m.lost)][0] += usize::from(lost);
                counts[usize::from(m.lost)][1] += 1;
            }
        }
    }
    let share = |[lost, all]: [usize; 2]| 100.0 * lost as f64 / all.max(1) as f64;
    println!(
        "epoch {epoch}: dreams lose {:.0}% of the balls lost in reality ({} moments), {:.0}% of those hit ({})",
        share(counts[1]),
        counts[1][1] / DREAMS,
        share(counts[0]),
        counts[0][1] / DREAMS,
    );
}
