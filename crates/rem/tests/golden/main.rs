//! Recorded numbers of the authors' implementation, met in f32 to the tolerances of their README:
//! 1e-4 relative (1e-5 absolute near zero) on values, 1e-3 on gradients, exactly on tokens.
//! In mixed precision as close as its rounding lets them be: see `compare`.
//! `REM_GOLDEN_DIR` names another directory of the same form; every size is read from it.
//! `REM_GOLDEN_VERBOSE=1` prints how close each one was.

mod compare;
mod controller;
mod import;
mod lpips;
mod no_pop;
mod support;
mod tokenizer;
mod world_model;
