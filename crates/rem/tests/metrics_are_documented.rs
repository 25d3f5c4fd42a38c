//! Every metric that a run logs is described in `docs/reference/metrics.md`, and every described metric is logged.

use std::collections::BTreeSet;

use rem::env::EnvFactory;
use rem::{Config, RunDir, Trainer, train};
use rem_run::metrics::METRICS;
use rem_run::{MetricsLine, layout, parse_lines};

#[test]
fn logged_metrics_are_the_documented_ones() {
    let dir = tempfile::tempdir().unwrap();
    // With every setting that adds a metric.
    let set = [
        "actor_critic.return_scaling=quantile_range",
        "world_model.ensemble_heads=2",
    ];
    let config = Config::load("debug", &set.map(String::from)).unwrap();
    let run = RunDir::create(&dir.path().join("run")).unwrap();
    let envs = EnvFactory::named(&config.env).unwrap();
    train::protocol(&config, &envs, 1, None, None)
        .unwrap()
        .write(run.path())
        .unwrap();
    let metrics = run.path().join(layout::METRICS);
    Trainer::start(run, config, envs, None)
        .unwrap()
        .train(&mut |_| ())
        .unwrap();

    let log = std::fs::read(metrics).unwrap();
    let mut logged = BTreeSet::new();
    for line in parse_lines::<MetricsLine>(&log) {
        if let MetricsLine::Scalars { phase, values, .. } = line {
            logged.extend(values.iter().map(|(name, _)| format!("{phase}/{name}")));
        }
    }
    let documented: BTreeSet<String> = METRICS.iter().map(|metric| metric.tag()).collect();
    assert_eq!(logged, documented);
}
