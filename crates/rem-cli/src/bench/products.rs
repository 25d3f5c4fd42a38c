//! Multiply-adds of a training step and of an imagined frame: matrix products and convolutions, without the savings of
//! caches and fused kernels.

use rem::config::{self, Architecture, Config, ControllerInputs};
use rem::model::tokenizer::lpips::STAGES;
use rem::model::tokenizer::patch_width;

/// Encoder and decoder, per frame.
pub fn tokenizer(c: &Config) -> f64 {
    encoder(c) + decoder(c)
}

fn encoder(c: &Config) -> f64 {
    let t = &c.tokenizer;
    let (k, width) = (c.tokens_per_obs() as f64, t.embedding as f64);
    if t.encoder == (config::Encoder::WhitenedPatches {}) {
        return k * pixels_per_token(c) * width;
    }
    let levels = (0..t.downsamplings as i32).map(|level| {
        let (from, to) = (channels(c, level), channels(c, level + 1));
        9.0 * side(c, level + 1).powi(2) * (from * to + to * to)
    });
    let input = 27.0 * channels(c, 0) * side(c, 0).powi(2);
    let last = channels(c, t.downsamplings as i32);
    input + levels.sum::<f64>() + k * (9.0 * last * width + width * width)
}

fn decoder(c: &Config) -> f64 {
    let t = &c.tokenizer;
    let (k, width) = (c.tokens_per_obs() as f64, t.embedding as f64);
    if t.encoder == (config::Encoder::WhitenedPatches {}) {
        let hidden = patch_width(t) as f64;
        return k * (width * hidden + hidden * pixels_per_token(c));
    }
    let levels = (0..t.downsamplings as i32).map(|level| {
        let (to, from) = (channels(c, level), channels(c, level + 1));
        9.0 * side(c, level).powi(2) * (from * to + to * to)
    });
    let output = 27.0 * channels(c, 0) * side(c, 0).powi(2);
    let last = channels(c, t.downsamplings as i32);
    output + levels.sum::<f64>() + k * (9.0 * last * width + width * width)
}

fn pixels_per_token(c: &Config) -> f64 {
    3.0 * side(c, 0).powi(2) / c.tokens_per_obs() as f64
}

/// Channels after `level` downsamplings.
fn channels(c: &Config, level: i32) -> f64 {
    c.tokenizer.channels as f64 * f64::powi(2.0, level)
}

/// Height and width after `level` downsamplings.
fn side(c: &Config, level: i32) -> f64 {
    c.env.frame_size as f64 / f64::powi(2.0, level)
}

/// VGG-16, per image. The perceptual loss needs two images forward and one backward.
pub fn vgg(c: &Config) -> f64 {
    let (mut from, mut products) = (3.0, 0.0);
    for (stage, (count, width)) in STAGES.iter().enumerate() {
        for _ in 0..*count {
            products += 9.0 * side(c, stage as i32).powi(2) * from * *width as f64;
            from = *width as f64;
        }
    }
    products
}

/// The world model's forward pass in training, per step of a segment.
pub fn world_model(c: &Config) -> f64 {
    let k = c.tokens_per_obs() as f64;
    let steps = c.train.horizon as f64;
    let predicted = 1.0 - c.world_model.first_observation() as f64 / steps;
    let layers = match c.world_model.architecture {
        Architecture::Pop { .. } => chunkwise_layers(c) * (k + 1.0 + predicted * k),
        Architecture::Retnet { .. } => chunkwise_layers(c) * (k + 1.0),
        Architecture::Transformer {} => {
            let seen = (steps * (k + 1.0) + 1.0) / 2.0;
            transformer_layers(c, seen) * (k + 1.0)
        }
        Architecture::PopAttention { .. } => {
            let seen = (steps * (k + 1.0) + 1.0) / 2.0;
            transformer_layers(c, seen) * (k + 1.0 + predicted * k)
        }
    };
    layers + predicted * k * token_head(c)
}

/// The world model in imagination, per frame; the mean over `frames` frames after the context.
pub fn dream(c: &Config, frames: usize) -> f64 {
    let k = c.tokens_per_obs() as f64;
    let layers = match c.world_model.architecture {
        Architecture::Pop { .. } => chunkwise_layers(c) * (2.0 * k + 1.0),
        Architecture::Retnet { .. } => recurrent_layers(c) * (k + 1.0),
        Architecture::Transformer {} => {
            let seen = (c.world_model.context as f64 + frames as f64 / 2.0) * (k + 1.0);
            transformer_layers(c, seen) * (k + 1.0)
        }
        Architecture::PopAttention { .. } => {
            let seen = (c.world_model.context as f64 + frames as f64 / 2.0) * (k + 1.0);
            transformer_layers(c, seen) * (2.0 * k + 1.0)
        }
    };
    layers + k * token_head(c)
}

/// All retention layers, per token of a block: five projections, the feed-forward sublayer, and retention within the
/// block and from the state.
fn chunkwise_layers(c: &Config) -> f64 {
    let block = c.tokens_per_obs() as f64 + 1.0;
    recurrent_layers(c) + c.world_model.layers as f64 * width(c) * 2.0 * block
}

/// All retention layers, per token on its own.
fn recurrent_layers(c: &Config) -> f64 {
    let width = width(c);
    let dim = width / c.world_model.heads as f64;
    let inner = c.world_model.feed_forward as f64;
    c.world_model.layers as f64 * (5.0 * width * width + 2.0 * width * inner + 2.0 * width * dim)
}

/// All Transformer layers, per token that sees `seen` tokens.
fn transformer_layers(c: &Config, seen: f64) -> f64 {
    let width = width(c);
    let inner = c.world_model.feed_forward as f64;
    c.world_model.layers as f64 * (4.0 * width * width + 2.0 * width * inner + 2.0 * width * seen)
}

/// The observation head, per predicted token.
fn token_head(c: &Config) -> f64 {
    width(c) * (width(c) + c.tokenizer.vocabulary as f64)
}

fn width(c: &Config) -> f64 {
    c.tokenizer.embedding as f64
}

/// The controller, per observation and action, without [`controller_input`].
pub fn controller(c: &Config) -> f64 {
    let (width, lstm) = (width(c), c.actor_critic.lstm_dim as f64);
    let k = c.tokens_per_obs() as f64;
    let step = 8.0 * lstm * lstm;
    let codes = k * 9.0 * (width * width / 2.0 + width * width / 8.0) + k * width / 4.0 * lstm;
    match c.actor_critic.inputs {
        ControllerInputs::CodesAndActions { .. } => codes + 2.0 * step,
        ControllerInputs::Codes {} => codes + step,
        ControllerInputs::Pixels {} => {
            let layers = [(3.0, 32.0), (32.0, 32.0), (32.0, 64.0), (64.0, 64.0)];
            let convs = layers
                .iter()
                .enumerate()
                .map(|(i, (from, to))| 9.0 * side(c, i as i32).powi(2) * from * to);
            let features = 64.0 * side(c, 4).powi(2);
            convs.sum::<f64>() + 4.0 * lstm * (features + lstm)
        }
    }
}

/// From tokens to the controller's input, per observation: the decoder for a controller on frames. Has no gradient.
pub fn controller_input(c: &Config) -> f64 {
    match c.actor_critic.inputs {
        ControllerInputs::Pixels {} => decoder(c),
        ControllerInputs::CodesAndActions { .. } | ControllerInputs::Codes {} => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paper(set: &[&str]) -> Config {
        let mut all = vec!["env.game=catch"];
        all.extend(set);
        let all: Vec<String> = all.into_iter().map(String::from).collect();
        Config::load("atari100k", &all).unwrap()
    }

    #[test]
    fn pop_takes_twice_the_tokens_of_token_by_token_prediction() {
        // Width 256 = w, five layers, feed-forward 4 w, heads of w / 4: projections and feed-forward are 13 w² per token.
        let w2 = 256.0 * 256.0;
        let token = 5.0 * (13.0 * w2 + 2.0 * 256.0 * 64.0);
        let head = 64.0 * 3.0 * w2;
        let no_pop = paper(&["world_model.architecture=retnet"]);
        assert_eq!(dream(&no_pop, 8), 65.0 * token + head);
        let in_block = 5.0 * 256.0 * 2.0 * 65.0;
        let pop = paper(&[]);
        assert_eq!(dream(&pop, 8), 129.0 * (token + in_block) + head);
        // Eight of ten observations are predicted in training.
        let trained = (65.0 + 0.8 * 64.0) * (token + in_block) + 0.8 * head;
        assert!((world_model(&pop) / trained - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_transformers_frame_costs_more_the_later_it_is() {
        let iris = paper(&["world_model.architecture=transformer"]);
        assert!(dream(&iris, 16) > dream(&iris, 8));
        assert!(dream(&iris, 8) > dream(&paper(&["world_model.architecture=retnet"]), 8));
    }
}
