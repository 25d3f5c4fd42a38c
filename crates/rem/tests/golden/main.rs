//! Golden tests: our numbers match those recorded from the authors' implementation.
//!
//! Tolerances in f32: 1e-4 relative (1e-5 absolute near zero) for values, 1e-3 for gradients, exact for tokens.
//! Tolerances in mixed precision: see `compare`.
//! `REM_GOLDEN_DIR` selects another directory of the same format; all sizes are read from it.
//! `REM_GOLDEN_VERBOSE=1` prints the difference of each comparison.

mod compare;
mod controller;
mod import;
mod initial_weights;
mod lpips;
mod no_pop;
mod support;
mod tokenizer;
mod world_model;
