//! Statistics of published scores match `expected-statistics.json`, which was computed independently.

use rem_stats::{
    Bootstrap, Estimate, Game, Matrix, Metric, baselines, probability_of_improvement, profile,
    superhuman,
};
use serde_json::Value;

/// Tolerance of interval bounds: both bootstraps are random.
const INTERVAL_TOLERANCE: f64 = 0.02;

fn expected() -> Value {
    serde_json::from_str(include_str!("expected-statistics.json")).unwrap()
}

fn system(name: &str) -> Matrix {
    let name = if name == "dreamerv3" {
        "DreamerV3"
    } else {
        name
    };
    baselines::named(name).unwrap().scores().normalized()
}

fn numbers(list: &Value) -> Vec<f64> {
    let list = list.as_array().unwrap().iter();
    list.map(|number| number.as_f64().unwrap()).collect()
}

fn assert_interval(what: &str, estimate: &Estimate, low: f64, high: f64) {
    let interval = estimate.interval.unwrap();
    let off = (interval.low - low).abs().max((interval.high - high).abs());
    assert!(
        off <= INTERVAL_TOLERANCE,
        "{what}: {interval:?}, expected {low} to {high}"
    );
}

#[test]
fn benchmark_games_match() {
    let expected = expected();
    let titles = expected["games"].as_array().unwrap().iter();
    let titles: Vec<_> = titles.map(|title| title.as_str().unwrap()).collect();
    let ours: Vec<_> = Game::benchmark().iter().map(Game::title).collect();
    assert_eq!(ours, titles);
}

#[test]
fn metrics_and_intervals_match() {
    let expected = expected();
    let systems = expected["aggregates"].as_object().unwrap();
    assert_eq!(systems.len(), 5);
    for (name, expected) in systems {
        let matrix = system(name);
        assert_eq!(expected["superhuman"], superhuman(&matrix), "{name}");
        let estimates = Bootstrap::default().metrics(&matrix);
        let (lows, highs) = (
            numbers(&expected["ci95_low"]),
            numbers(&expected["ci95_high"]),
        );
        let keys = ["mean", "median", "iqm", "optimality_gap"];
        for (index, metric) in Metric::ALL.into_iter().enumerate() {
            let what = format!("{name} {metric:?}");
            let estimate = &estimates[index];
            assert_eq!(estimate.value, metric.of(&matrix));
            let value = expected[keys[index]].as_f64().unwrap();
            assert!((estimate.value - value).abs() <= 1e-9, "{what}");
            assert_interval(&what, estimate, lows[index], highs[index]);
        }
    }
}

#[test]
fn profiles_match_and_lie_within_their_intervals() {
    let expected = &expected()["performance_profile"];
    let thresholds = numbers(&expected["taus"]);
    let few = Bootstrap {
        replicates: 2_000,
        ..Bootstrap::default()
    };
    for (name, values) in expected["values"].as_object().unwrap() {
        let matrix = system(name);
        let shares = profile(&matrix, &thresholds);
        assert_eq!(shares, numbers(values), "{name}");
        for (share, estimate) in shares.iter().zip(few.profile(&matrix, &thresholds)) {
            let interval = estimate.interval.unwrap();
            assert_eq!(estimate.value, *share);
            assert!(interval.low <= *share && *share <= interval.high, "{name}");
        }
    }
}

#[test]
fn probabilities_of_improvement_and_intervals_match() {
    let expected = expected();
    let pairs = expected["probability_of_improvement"].as_object().unwrap();
    assert_eq!(pairs.len(), 4);
    for (pair, expected) in pairs {
        let (x, y) = pair.split_once(',').unwrap();
        let (x, y) = (system(x), system(y));
        let estimate = Bootstrap::default().probability_of_improvement(&x, &y);
        let value = expected["value"].as_f64().unwrap();
        assert!((estimate.value - value).abs() <= 1e-9, "{pair}");
        assert!((probability_of_improvement(&y, &x) - (1.0 - value)).abs() <= 1e-9);
        let interval = numbers(&expected["ci95"]);
        assert_interval(pair, &estimate, interval[0], interval[1]);
    }
}
