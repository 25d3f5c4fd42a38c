//! GPU backends (CubeCL). `ops/cube.rs` lists their operations.

use burn::backend::Cube;

use super::KernelBackend;

impl KernelBackend for Cube {}
