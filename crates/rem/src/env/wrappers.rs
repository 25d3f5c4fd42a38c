//! Wrappers: environments around another environment.

mod checked;
mod life_loss;
mod preprocess;
mod time_limit;

pub(super) use checked::Checked;
pub use life_loss::LifeLoss;
pub use preprocess::Preprocess;
pub(crate) use preprocess::Scale;
pub use time_limit::TimeLimit;
