//! The first lines of a run's output.

use std::path::Path;

use rem::config::{Config, Perceptual};
use rem_run::Protocol;

use crate::print;

/// Prints what is trained, on what, and where.
pub fn print_header(dir: &Path, config: &Config, protocol: &Protocol, resumed: Option<u32>) {
    let c = config;
    print::message(format_args!(
        "rem {} · device {} · {} thread{} · precision {}",
        protocol.rem_version,
        c.device,
        protocol.threads,
        if protocol.threads == 1 { "" } else { "s" },
        protocol.precision
    ));
    let scripted = protocol
        .scripted_player
        .map_or_else(String::new, |s| format!(", scripted player {s:.2}"));
    let players = match protocol.baseline_episodes {
        0 => "no evaluation".into(),
        _ => format!("random player {:.2}{scripted}", protocol.random_player),
    };
    print::message(format_args!(
        "game {} at {}x{} · {} tokens per frame, vocabulary {} · {players} · seed {}",
        c.env.game,
        c.env.frame_size,
        c.env.frame_size,
        c.tokens_per_obs(),
        c.tokenizer.vocabulary,
        c.seed
    ));
    if let Some(data) = &protocol.data {
        print::message(format_args!(
            "offline: {} episodes, {} steps of {}",
            data.episodes, data.steps, data.source
        ));
    }
    if let Some(env) = &protocol.environment {
        let wrappers = match env.wrappers.is_empty() {
            true => String::new(),
            false => format!(" · {}", env.wrappers.join(" · ")),
        };
        print::message(format_args!(
            "environment: {}{wrappers}",
            env.observation_space
        ));
        if !env.snapshots {
            print::message(
                "its state cannot be saved: a resumed run starts a new episode and is not bit-identical",
            );
        }
    }
    let measured = protocol.pop_mode_measured.map_or_else(String::new, |m| {
        format!(
            " (auto: measured {:.2} ms per step in one call, {:.2} ms in two)",
            m.one_call_ms, m.two_calls_ms
        )
    });
    print::message(format_args!(
        "imagination: {}{measured}",
        protocol.imagination_mode
    ));
    if !protocol.perceptual_loss {
        print::message(format_args!(
            "perceptual loss off: {}",
            match c.tokenizer.perceptual {
                Perceptual::Off => "disabled in the config",
                _ => "LPIPS weights not found; see `rem import lpips --help`",
            }
        ));
    }
    let from = resumed.map_or_else(String::new, |e| format!(" · resumed after epoch {e}"));
    print::message(format_args!(
        "{} epochs in {}{from} · stop at any time, continue with `rem train --resume {}`",
        c.train.epochs,
        dir.display(),
        dir.display()
    ));
}
