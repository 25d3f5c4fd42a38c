//! The agent's three components, their networks and layers.
//!
//! | module | contents |
//! | --- | --- |
//! | [`tokenizer`] | V: the VQ-VAE between frames and tokens |
//! | [`world_model`] | M: embeddings, heads and losses around a [`network`] |
//! | [`network`] | the sequence model: [`retnet`] with or without POP, [`pop_attention`], or [`transformer`] |
//! | [`kv_cache`] | keys and values of attention in imagination |
//! | [`actor_critic`] | C: the controller with policy and value |
//! | [`agent`] | the three components together |
//! | [`weights`] | parameters by name, to and from safetensors |
//! | [`sampling`], [`calls`] | categorical sampling; counts of network calls |

pub mod actor_critic;
pub mod agent;
pub mod calls;
mod conv;
mod embedding;
pub(crate) mod hl_gauss;
pub mod kv_cache;
mod layer;
mod linear;
pub mod network;
pub mod pop_attention;
mod retention;
pub mod retnet;
pub mod sampling;
pub mod tokenizer;
pub mod transformer;
pub mod weights;
pub mod world_model;
mod world_model_sizes;
