//! What is measured: system, model size, batch sizes, precision and device.

use clap::ValueEnum;
use rem::Result;
use rem::config::{Config, ConfigError, Precision};

/// An agent of the paper's comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum System {
    /// REM: preset atari100k, K = 64
    Pop,
    /// REM with a plain RetNet, token by token, at the same sizes: atari100k,ablation-no-pop
    NoPop,
    /// REM with POP on attention at the same sizes: atari100k, world_model.architecture=pop_attention
    PopAttention,
    /// Simulus at its own sizes: preset simulus
    Simulus,
    /// IRIS at its own sizes, K = 16: preset iris
    Iris,
    /// IRIS's world model at REM's sizes: atari100k,ablation-iris
    IrisRem,
    /// REM with IRIS's controller on decoded frames: atari100k,ablation-iris-controller
    IrisController,
}

impl System {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pop => "pop",
            Self::NoPop => "no-pop",
            Self::PopAttention => "pop-attention",
            Self::Simulus => "simulus",
            Self::Iris => "iris",
            Self::IrisRem => "iris-rem",
            Self::IrisController => "iris-controller",
        }
    }

    /// The name in tables and figures.
    pub fn title(self) -> &'static str {
        match self {
            Self::Pop => "REM (POP)",
            Self::NoPop => "No POP",
            Self::PopAttention => "POP on attention",
            Self::Simulus => "Simulus",
            Self::Iris => "IRIS",
            Self::IrisRem => "IRIS at REM's sizes",
            Self::IrisController => "REM with C of IRIS",
        }
    }

    /// The preset on top of one with REM's sizes. `None` for an agent with sizes of its own.
    fn ablation(self) -> Option<&'static str> {
        match self {
            Self::Pop | Self::PopAttention => Some(""),
            Self::NoPop => Some(",ablation-no-pop"),
            Self::Iris | Self::Simulus => None,
            Self::IrisRem => Some(",ablation-iris"),
            Self::IrisController => Some(",ablation-iris-controller"),
        }
    }

    /// Overrides of the preset.
    fn settings(self) -> &'static [&'static str] {
        match self {
            Self::PopAttention => &["world_model.architecture=pop_attention"],
            _ => &[],
        }
    }
}

/// Model size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scale {
    /// The size of the preset
    Paper,
    /// Small enough to expose overhead
    Tiny,
    /// The sizes and batch sizes of the preset atari-laptop for Breakout
    Laptop,
}

impl Scale {
    /// The preset with these sizes, before [`Self::settings`].
    fn preset(self) -> &'static str {
        match self {
            Self::Paper | Self::Tiny => "atari100k",
            Self::Laptop => "atari-laptop",
        }
    }

    /// The game, which `atari-laptop` has sizes for, and the size of its frames where the preset has another one.
    fn environment(self) -> &'static [&'static str] {
        match self {
            Self::Paper | Self::Tiny => &["env.game=catch", "env.frame_size=64"],
            Self::Laptop => &["env.game=breakout"],
        }
    }

    /// Overrides of the preset.
    pub fn settings(self) -> &'static [&'static str] {
        match self {
            Self::Paper | Self::Laptop => &[],
            Self::Tiny => &[
                "tokenizer.channels=8",
                "tokenizer.embedding=64",
                "tokenizer.vocabulary=64",
                "world_model.layers=2",
                "world_model.feed_forward=256",
                "actor_critic.lstm_dim=128",
            ],
        }
    }
}

/// Batch sizes of the three components.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Batches {
    /// Those of training: 128 frames, 64 segments, 128 rollouts of 8 steps (IRIS: 256, 64, 64 of 19)
    Paper,
    /// Those of the PyTorch reference benchmark: 32 frames, 16 segments, 16 rollouts of 9 steps
    Reference,
}

impl Batches {
    /// Overrides of the preset.
    fn settings(self) -> &'static [&'static str] {
        match self {
            Self::Paper => &[],
            Self::Reference => &[
                "tokenizer.optimizer.batch_size=32",
                "world_model.optimizer.batch_size=16",
                "actor_critic.optimizer.batch_size=16",
            ],
        }
    }
}

/// What all measurements of a command have in common.
#[derive(Clone, Debug)]
pub struct Setup {
    pub scale: Scale,
    pub precision: Precision,
    pub batches: Batches,
    pub device: String,
}

impl Setup {
    /// The config of a system.
    pub fn config(&self, system: System) -> Result<Config> {
        let scale = self.scale;
        let preset = match system.ablation() {
            Some(ablation) => format!("{}{ablation}", scale.preset()),
            None if scale == Scale::Laptop => {
                return Err(ConfigError::new(
                    format!("`{}` has no laptop scale", system.name()),
                    "other systems have the sizes of REM",
                )
                .into());
            }
            None => system.name().into(),
        };
        let fixed = [
            system.settings(),
            scale.settings(),
            self.batches.settings(),
            scale.environment(),
        ]
        .concat();
        let mut set: Vec<String> = fixed.into_iter().map(String::from).collect();
        set.extend([
            format!("precision={}", self.precision.name()),
            format!("device={}", self.device),
        ]);
        Ok(Config::load(&preset, &set)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rem::config::Architecture;

    #[test]
    fn every_system_has_the_sizes_that_its_help_states() {
        let setup = Setup {
            scale: Scale::Paper,
            precision: Precision::Mixed,
            batches: Batches::Paper,
            device: "flex".into(),
        };
        let config = |system| setup.config(system).unwrap();
        let pop = config(System::Pop);
        assert_eq!(pop.tokens_per_obs(), 64);
        for system in [
            System::NoPop,
            System::PopAttention,
            System::IrisRem,
            System::IrisController,
        ] {
            let c = config(system);
            assert_eq!(c.tokens_per_obs(), 64, "{system:?}");
            assert_eq!(c.world_model.layers, pop.world_model.layers, "{system:?}");
        }
        let iris = config(System::Iris);
        assert_eq!((iris.tokens_per_obs(), iris.world_model.layers), (16, 10));
        assert_eq!(iris.world_model.architecture, Architecture::Transformer {});
        let attention = config(System::PopAttention).world_model.architecture;
        assert!(matches!(attention, Architecture::PopAttention { .. }));
        let simulus = config(System::Simulus);
        assert_eq!(
            (simulus.tokens_per_obs(), simulus.world_model.layers),
            (64, 10)
        );
        let batches = |c: &Config| {
            [
                c.tokenizer.optimizer.batch_size,
                c.world_model.optimizer.batch_size,
                c.actor_critic.optimizer.batch_size,
            ]
        };
        assert_eq!(batches(&pop), [128, 64, 128]);
        assert_eq!(batches(&simulus), [128, 32, 128]);
        assert_eq!(batches(&iris), [256, 64, 64]);
    }

    /// The numbers of configs/atari-laptop.toml.
    #[test]
    fn the_laptop_scale_is_that_of_the_preset() {
        let setup = |batches| Setup {
            scale: Scale::Laptop,
            precision: Precision::Mixed,
            batches,
            device: "flex".into(),
        };
        let found = setup(Batches::Paper).config(System::Pop).unwrap();
        let preset = Config::load("atari-laptop", &["env.game=breakout".into()]).unwrap();
        assert_eq!(found, preset);
        assert_eq!((found.tokens_per_obs(), found.world_model.layers), (16, 3));
        let no_pop = setup(Batches::Paper).config(System::NoPop).unwrap();
        assert_eq!(no_pop.train.horizon, preset.train.horizon);
        let error = setup(Batches::Reference).config(System::Iris).unwrap_err();
        assert!(
            error
                .hint()
                .is_some_and(|hint| hint.contains("sizes of REM")),
            "{error}"
        );
    }

    #[test]
    fn names_are_those_of_the_command_line() {
        for system in System::value_variants() {
            let parsed = system.to_possible_value().unwrap();
            assert_eq!(parsed.get_name(), system.name());
        }
    }
}
