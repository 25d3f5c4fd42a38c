//! The paper's comparisons as values: what the world model and the controller are made of.

use serde::{Deserialize, Serialize};

/// The world model's network, and with it how it predicts an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Architecture {
    /// A RetNet with POP: all tokens of an observation together.
    Pop,
    /// A plain RetNet, token by token (the paper's "No POP").
    Retnet,
    /// A causal Transformer with a key-value cache, token by token (IRIS).
    Transformer,
}

/// How POP dreams. The results are the same up to rounding, the times are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PopMode {
    /// Fold the block, then predict (the paper's default).
    TwoCalls,
    /// Block and prediction tokens together (the paper's alternative).
    OneCall,
    /// Whichever is faster at the start of a run, where it is measured; as [`PopMode::TwoCalls`] until then.
    Auto,
}

impl PopMode {
    pub fn name(self) -> &'static str {
        match self {
            Self::TwoCalls => "two_calls",
            Self::OneCall => "one_call",
            Self::Auto => "auto",
        }
    }
}

/// How a dream's next observation comes about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    TwoCalls,
    OneCall,
    TokenByToken,
}

/// What observation tokens are to the world model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Embeddings {
    /// The tokenizer's codes, which it does not change.
    Tokenizer,
    /// A table that it learns itself (the paper's separate embeddings, IRIS).
    Own,
}

/// What the controller's LSTM takes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ControllerInputs {
    /// Code vectors in their spatial order, and the actions.
    CodesAndActions,
    /// Code vectors alone (the paper's controller without action inputs).
    Codes,
    /// Frames as the tokenizer draws them, through a CNN, and no actions (IRIS's controller).
    Pixels,
}
