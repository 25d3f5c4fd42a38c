//! How often a network is asked, and how much it reads each time: the columns of the paper's cost table.

use std::ops::Sub;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Calls outside training, and the tokens of one sequence that went through them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    pub calls: u64,
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

/// A count that a network shares with its copies.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallCount(Arc<[AtomicU64; 2]>);

impl CallCount {
    /// One call with so many tokens of each sequence.
    pub(crate) fn add(&self, tokens: usize) {
        self.0[0].fetch_add(1, Relaxed);
        self.0[1].fetch_add(tokens as u64, Relaxed);
    }

    pub(crate) fn so_far(&self) -> Calls {
        Calls {
            calls: self.0[0].load(Relaxed),
            tokens: self.0[1].load(Relaxed),
        }
    }
}
