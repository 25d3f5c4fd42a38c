//! Loads the agent of a run and compares a dream of its world model with reality.
//!
//! ```sh
//! cargo run --release -p rem --example imagine -- runs/catch-seed1 dream.png
//! ```
//! The world model sees the first frames of the longest episode in the replay, then only the actions. Prints, for each
//! step, the real and the imagined reward and the fraction of tokens that equal those of the real frame, and writes both
//! sequences of frames as an image.

use std::error::Error;
use std::path::PathBuf;

use burn::module::Module;
use burn::tensor::{Int, Tensor, TensorData};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rem::data::batch;
use rem::host;
use rem::imagination::Dream;
use rem::media::{FramePair, dream_strip};
use rem::run::{self, checkpoint};
use rem::{device, train};

const STEPS: usize = 10;

fn main() -> Result<(), Box<dyn Error>> {
    let paths: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [run, image] = &paths[..] else {
        return Err("usage: imagine RUN IMAGE.png".into());
    };
    let config = run::read_config(run)?;
    let device = device::of(&config)?;
    let (agent, epoch) = train::load_agent(run, &config, None, device.clone())?;
    let (player, world_model) = (agent.valid(), agent.world_model.valid());

    let archive = checkpoint::archive(run);
    let longest = archive.list().max_by_key(|episode| episode.steps);
    let number = longest.ok_or("the run has no episodes yet")?.number;
    let episode = archive.read(number, 0..STEPS + 1)?.ok_or("no episode")?;
    let length = episode.frames.len();
    let context = world_model.context().min(length - 1);
    println!("agent of epoch {epoch}, episode {number}, {context} context frames");

    let frames = episode.frames.iter().map(|frame| &frame[..]);
    let real = player.tokenize(frames, config.env.frame_size, &device); // [length, K]
    let [_, k] = real.dims();
    let context_tokens = real.clone().narrow(0, 0, context).reshape([1, context, k]);
    let action = |t: usize| {
        let data = TensorData::new(vec![i64::from(episode.actions[t])], [1]);
        Tensor::<1, Int>::from_data(data, &device)
    };
    let context_actions = (context > 1).then(|| {
        let actions = (0..context - 1).map(action).collect();
        Tensor::cat(actions, 0).reshape([1, context - 1])
    });

    let mut dream = Dream::start(&world_model, &player.codes, context_tokens, context_actions);
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut pairs = Vec::new();
    for t in context..length {
        let step = dream.step(action(t - 1), &mut rng);
        let tokens = dream.tokens(); // [1, K]
        let same = tokens.clone().equal(real.clone().narrow(0, t, 1)).int();
        let accuracy = host::ints(same).iter().sum::<i64>() as f64 / k as f64;
        let rewards = format!("reward {:+}/{:+}", episode.rewards[t - 1], step.rewards[0]);
        println!("step {t:>3}  {rewards}  token accuracy {accuracy:.2}");
        pairs.push(FramePair {
            dream: Some(batch::to_rgb(player.tokenizer.decode(tokens)).remove(0)),
            reality: Some(episode.frames[t].clone()),
            caption: format!("step {t}  {rewards}"),
        });
        if step.ends[0] {
            println!("the world model predicts the end of the episode");
            break;
        }
    }
    dream_strip(config.env.frame_size, &pairs, STEPS).save_png(image)?;
    Ok(())
}
