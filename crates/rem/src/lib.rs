//! REM: a token-based world-model agent (Retentive Environment Model) that learns games by dreaming them.
//!
//! `ARCHITECTURE.md` shows how the rooms hang together.

pub mod actor_critic;
pub mod agent;
pub mod batch;
pub mod bench;
pub mod calls;
pub mod checkpoint;
pub mod collect;
pub mod config;
mod conv;
pub mod device;
pub mod env;
pub mod episode;
pub mod error;
pub mod evaluate;
pub mod files;
pub mod imagination;
pub mod import;
pub mod linear;
pub mod media;
pub mod metrics;
pub mod needs;
pub mod network;
pub mod optimiser;
pub mod pop_mode;
pub mod replay;
pub mod retention;
pub mod retnet;
pub mod returns;
pub mod run;
pub mod sampling;
pub mod seeds;
pub mod showcase;
pub mod threads;
pub mod tokenizer;
pub mod train;
pub mod transformer;
pub mod weights;
pub mod world_model;
