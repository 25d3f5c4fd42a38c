//! Conversion of agents of the authors' PyTorch code: parameter names, layouts and sizes.
//!
//! - Linear weights are `[out, in]` there and `[in, out]` here. The scale of a norm is called `weight` there.
//! - The embedding table there has rows for observations, actions and padding, also in a model that shares the
//!   tokenizer's codes and never trains the rows for observations. See [`were_trained`].
//! - The last of the K + 1 prediction embeddings is unused. An agent without prediction embeddings has no POP.

use crate::config::Embeddings;
use crate::model::weights::{Array, Arrays, under};

/// The converted weights of an agent of the authors' code.
#[derive(Clone, Debug)]
pub struct AuthorsAgent {
    /// Weights of the tokenizer.
    pub tokenizer: Arrays,
    /// Weights of the world model.
    pub world_model: Arrays,
    /// Weights of the controller.
    pub actor_critic: Arrays,
    sizes: Sizes,
}

/// Sizes that follow from the shapes of the arrays.
#[derive(Clone, Debug)]
struct Sizes {
    architecture: &'static str,
    embeddings: Embeddings,
    vocabulary: usize,
    embedding: usize,
    channels: usize,
    downsamplings: usize,
    layers: usize,
    heads: usize,
    feed_forward: usize,
    lstm_dim: usize,
    actions: usize,
    tokens_per_obs: usize,
}

impl AuthorsAgent {
    /// Converts all arrays of an agent. `embeddings` are those of observation tokens; `None` means the tokenizer's, and
    /// is an error if the world model has rows for observations that look trained.
    pub(super) fn new(arrays: &Arrays, embeddings: Option<Embeddings>) -> Result<Self, String> {
        let shape = |name: &str| {
            let found = arrays.get(name).map(|a| a.shape.clone());
            found.ok_or_else(|| format!("`{name}` is missing"))
        };
        let rank = |name: &str, rank: usize| {
            let shape = shape(name)?;
            let valid = shape.len() == rank && shape.iter().all(|n| *n > 0);
            valid
                .then_some(shape.clone())
                .ok_or_else(|| format!("`{name}` has the shape {shape:?}"))
        };
        let count = |prefix: &str, suffix: &str| {
            (0..)
                .take_while(|i| arrays.contains_key(&format!("{prefix}.{i}{suffix}")))
                .count()
        };
        let codes = rank("tokenizer.embedding.weight", 2)?;
        let thetas = rank("world_model._model.layers.0.retention.thetas", 1)?;
        rank("world_model.embedding.weight", 2)?;
        let actor = rank("actor_critic.actor_linear.weight", 2)?;
        let (architecture, tokens_per_obs) = if arrays.contains_key(PREDICTION_EMBEDDINGS) {
            ("pop", rank(PREDICTION_EMBEDDINGS, 2)?[0] - 1)
        } else {
            // The dense layer reads the channels of the last convolution at K positions.
            let last = count("actor_critic.convs", ".0.weight").max(1) - 1;
            let channels = rank(&format!("actor_critic.convs.{last}.0.weight"), 4)?[0];
            (
                "retnet",
                rank("actor_critic.dense.0.weight", 2)?[1] / channels,
            )
        };
        let sizes = Sizes {
            architecture,
            embeddings: embeddings.unwrap_or(Embeddings::Tokenizer),
            vocabulary: codes[0],
            embedding: codes[1],
            channels: rank("tokenizer.encoder.in_conv.weight", 4)?[0],
            downsamplings: count("tokenizer.encoder.blocks", ".0.weight"),
            layers: count("world_model._model.layers", ".norm1.weight"),
            heads: codes[1] / thetas[0].max(1),
            feed_forward: rank("world_model._model.layers.0.linear1.weight", 2)?[0],
            lstm_dim: actor[1],
            actions: actor[0],
            tokens_per_obs,
        };
        let mut world_model = world_model(under(arrays, "world_model"), sizes.vocabulary)?;
        let table = &arrays["world_model.embedding.weight"];
        let observations = rows_of(table, 0, sizes.vocabulary);
        match embeddings {
            None if were_trained(&observations) => return Err(AMBIGUOUS_EMBEDDINGS.into()),
            None | Some(Embeddings::Tokenizer) => {}
            Some(Embeddings::Own) => {
                world_model.insert("observation_embeddings".into(), observations);
            }
        }
        Ok(Self {
            tokenizer: tokenizer(under(arrays, "tokenizer"))?,
            world_model,
            actor_critic: actor_critic(under(arrays, "actor_critic"))?,
            sizes,
        })
    }

    /// Number of actions.
    pub fn actions(&self) -> usize {
        self.sizes.actions
    }

    /// Overrides that set the sizes of a config to those of the agent.
    pub(super) fn overrides(&self, game: &str) -> Vec<String> {
        let s = &self.sizes;
        let frame_size = s.tokens_per_obs.isqrt() << s.downsamplings;
        [
            ("env.frame_size", frame_size),
            ("tokenizer.vocabulary", s.vocabulary),
            ("tokenizer.embedding", s.embedding),
            ("tokenizer.channels", s.channels),
            ("tokenizer.downsamplings", s.downsamplings),
            ("world_model.layers", s.layers),
            ("world_model.heads", s.heads),
            ("world_model.feed_forward", s.feed_forward),
            ("actor_critic.lstm_dim", s.lstm_dim),
        ]
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .chain([
            format!("env.game={game}"),
            format!("world_model.architecture={}", s.architecture),
            format!("world_model.embeddings={}", s.embeddings.name()),
            // The authors train in f32.
            "precision=f32".into(),
        ])
        .collect()
    }
}

const AMBIGUOUS_EMBEDDINGS: &str = "the world model has trained embeddings of observation tokens: pass \
     `--embeddings own` if it was trained with separate embeddings, or `--embeddings tokenizer` if it reads the tokenizer's codes";

/// Whether embeddings have left their initial distribution, a standard normal one: the sum or the sum of squares is more
/// than six standard deviations from its expectation. Weight decay there does not apply to embeddings, so rows that no
/// token uses keep their initial values.
fn were_trained(rows: &Array) -> bool {
    let count = rows.data.len() as f64;
    let values = rows.data.iter().map(|x| f64::from(*x));
    let sum: f64 = values.clone().sum();
    let squares: f64 = values.map(|x| x * x).sum();
    sum.abs() > 6.0 * count.sqrt() || (squares - count).abs() > 6.0 * (2.0 * count).sqrt()
}

/// The embeddings that only agents with POP have.
const PREDICTION_EMBEDDINGS: &str = "world_model.placeholder_embeddings.weight";

/// Burn's name for a parameter of a norm.
fn norm_part(part: &str) -> Option<&'static str> {
    match part {
        "weight" => Some("gamma"),
        "bias" => Some("beta"),
        _ => None,
    }
}

/// Renames every array by `rule`, which returns the new name and whether to transpose. Arrays for which `dropped` holds
/// are left out; any other array without a rule is an error.
fn renamed(
    arrays: Arrays,
    rule: impl Fn(&[&str]) -> Option<(String, bool)>,
    dropped: impl Fn(&str) -> bool,
) -> Result<Arrays, String> {
    let mut out = Arrays::new();
    for (name, array) in arrays {
        if dropped(&name) {
            continue;
        }
        let parts: Vec<&str> = name.split('.').collect();
        let (new, transpose) = rule(&parts).ok_or_else(|| format!("unexpected weight `{name}`"))?;
        let array = if transpose && array.shape.len() == 2 {
            array.transposed()
        } else {
            array
        };
        out.insert(new, array);
    }
    Ok(out)
}

/// Converts the weights of a tokenizer, named without the prefix `tokenizer.`.
///
/// # Errors
/// If an array is unknown.
pub fn tokenizer(arrays: Arrays) -> Result<Arrays, String> {
    let rule = |parts: &[&str]| {
        let name = match parts {
            ["embedding", "weight"] => "codebook".to_string(),
            [conv @ ("pre_quant_conv" | "post_quant_conv"), part] => format!("{conv}.{part}"),
            [net, "in_conv", part] => format!("{net}.Cnn.in_conv.{part}"),
            [net, "blocks", i, "0", part] => {
                format!("{net}.Cnn.blocks.{i}.norm.{}", norm_part(part)?)
            }
            ["encoder", "blocks", i, "2", "conv", part] => {
                format!("encoder.Cnn.blocks.{i}.down.{part}")
            }
            ["decoder", "blocks", i, "2", "conv", part] => {
                format!("decoder.Cnn.blocks.{i}.up.{part}")
            }
            [net, "blocks", i, "3", part] => format!("{net}.Cnn.blocks.{i}.conv.{part}"),
            [net, "out_conv" | "out_block", "0", part] => {
                format!("{net}.Cnn.out_norm.{}", norm_part(part)?)
            }
            [net, "out_conv" | "out_block", "2", part] => format!("{net}.Cnn.out_conv.{part}"),
            _ => return None,
        };
        Some((name, false))
    };
    // Some checkpoints include the LPIPS network, which is not part of an agent.
    renamed(arrays, rule, |name| name.starts_with("lpips."))
}

/// Converts the weights of a world model, named without the prefix `world_model.`. Without prediction embeddings it is a
/// RetNet without POP.
///
/// # Errors
/// If an array is unknown, or the embeddings are missing or have too few rows.
pub fn world_model(mut arrays: Arrays, vocabulary: usize) -> Result<Arrays, String> {
    let embedding = arrays
        .remove("embedding.weight")
        .ok_or("`embedding.weight` is missing")?;
    let placeholders = arrays.remove("placeholder_embeddings.weight");
    let net = match placeholders {
        Some(_) => "network.Pop.retnet",
        None => "network.Retnet",
    };
    let rule = |parts: &[&str]| {
        let name = match parts {
            ["_model", "layers", l, norm @ ("norm1" | "norm2"), part] => {
                format!("{net}.layers.{l}.{norm}.{}", norm_part(part)?)
            }
            [
                "_model",
                "layers",
                l,
                linear @ ("linear1" | "linear2"),
                part,
            ] => {
                format!("{net}.layers.{l}.{linear}.{part}")
            }
            ["_model", "layers", l, "retention", projection, part] => {
                format!("{net}.layers.{l}.{projection}.{part}")
            }
            [head, "0", part] => format!("{head}.hidden.{part}"),
            [head, "2", part] => format!("{head}.out.{part}"),
            _ => return None,
        };
        Some((name, true))
    };
    let mut out = renamed(arrays, rule, |name| name.ends_with(".thetas"))?;
    let rows = embedding.shape.first().copied().unwrap_or(0);
    if rows < vocabulary + 2 {
        return Err(format!(
            "`embedding.weight` has {rows} rows, too few for {vocabulary} codes"
        ));
    }
    out.insert(
        "action_embeddings".into(),
        rows_of(&embedding, vocabulary, rows - 1),
    );
    if let Some(placeholders) = placeholders {
        let k = placeholders.shape[0] - 1;
        out.insert(
            "network.Pop.prediction_tokens".into(),
            rows_of(&placeholders, 0, k),
        );
    }
    Ok(out)
}

/// Converts the weights of a controller, named without the prefix `actor_critic.`.
///
/// # Errors
/// If an array is unknown.
pub fn actor_critic(arrays: Arrays) -> Result<Arrays, String> {
    let rule = |parts: &[&str]| {
        let (name, transpose) = match parts {
            ["convs", i, "0", part] => (format!("encoder.Codes.convs.{i}.{part}"), false),
            ["dense", "0", part] => (format!("encoder.Codes.dense.{part}"), true),
            ["rnn", "weight_ih"] => ("lstm.input.weight".into(), true),
            ["rnn", "bias_ih"] => ("lstm.input.bias".into(), false),
            ["rnn", "weight_hh"] => ("lstm.hidden.weight".into(), true),
            ["rnn", "bias_hh"] => ("lstm.hidden.bias".into(), false),
            ["actions_embeddings", "weight"] => ("action_embeddings".into(), false),
            ["actor_linear", part] => (format!("actor.{part}"), true),
            ["critic_linear", part] => (format!("critic.{part}"), true),
            _ => return None,
        };
        Some((name, transpose))
    };
    renamed(arrays, rule, |_| false)
}

/// The rows `from..to` of a matrix.
fn rows_of(array: &Array, from: usize, to: usize) -> Array {
    let width = array.shape[1];
    Array {
        shape: vec![to - from, width],
        data: array.data[from * width..to * width].to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// Standard normal numbers by the method of Box and Muller.
    fn initial_rows(seed: u64) -> Array {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut normal = || {
            let (a, b): (f64, f64) = (1.0 - rng.random::<f64>(), rng.random());
            ((-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()) as f32
        };
        Array {
            shape: vec![512, 64],
            data: (0..512 * 64).map(|_| normal()).collect(),
        }
    }

    #[test]
    fn initial_embeddings_are_not_taken_for_trained_ones() {
        for seed in 0..20 {
            assert!(!were_trained(&initial_rows(seed)), "{seed}");
        }
    }

    /// Changes of any direction with a root mean square of 0.3, a shift, or decay.
    #[test]
    fn changed_embeddings_are_recognized() {
        let changed = |change: &dyn Fn(usize, f32) -> f32| {
            let mut rows = initial_rows(1);
            for (i, x) in rows.data.iter_mut().enumerate() {
                *x = change(i, *x);
            }
            were_trained(&rows)
        };
        let other = initial_rows(2).data;
        assert!(changed(&|i, x| x + 0.3 * other[i]));
        assert!(changed(&|_, x| x + 0.05));
        assert!(changed(&|_, x| 0.95 * x));
    }
}
