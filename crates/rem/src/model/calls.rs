//! Counts of network calls and tokens outside training: the columns of Table 6.

use std::ops::Sub;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Network calls outside training, and the tokens that they processed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Number of calls.
    pub calls: u64,
    /// Tokens per sequence of the batch, summed over the calls.
    pub tokens: u64,
}

impl Sub for Calls {
    type Output = Self;
    fn sub(self, earlier: Self) -> Self {
        Self {
            calls: self.calls - earlier.calls,
            tokens: self.tokens - earlier.tokens,
        }
    }
}

/// A counter that a network shares with its clones.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallCounter(Arc<[AtomicU64; 2]>);

impl CallCounter {
    /// Counts one call with the given number of tokens per sequence.
    pub(crate) fn add(&self, tokens: usize) {
        self.0[0].fetch_add(1, Relaxed);
        self.0[1].fetch_add(tokens as u64, Relaxed);
    }

    /// The calls so far.
    pub(crate) fn get(&self) -> Calls {
        Calls {
            calls: self.0[0].load(Relaxed),
            tokens: self.0[1].load(Relaxed),
        }
    }
}
