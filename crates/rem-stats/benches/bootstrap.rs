//! The intervals that a report needs: `cargo bench -p rem-stats`.

use rem_stats::{Bootstrap, Matrix, baselines};

fn main() {
    divan::main();
}

/// The seven systems with 5 runs of all 26 games.
fn seven_systems() -> Vec<Matrix> {
    let systems = baselines::SYSTEMS.iter();
    let matrices = systems.map(|system| system.scores().normalized());
    let matrices: Vec<_> = matrices.filter(Matrix::has_repeats).collect();
    assert_eq!(matrices.len(), 7);
    matrices
}

/// 50,000 replicates of all metrics for each of the systems.
#[divan::bench(sample_count = 10, sample_size = 1, args = [1, 2])]
fn metrics_of_seven_systems(bencher: divan::Bencher, threads: usize) {
    let systems = seven_systems();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    let pool = pool.build().unwrap();
    let bootstrap = Bootstrap::default();
    bencher.bench_local(|| {
        pool.install(|| {
            systems
                .iter()
                .map(|system| bootstrap.metrics(system))
                .collect::<Vec<_>>()
        })
    });
}

/// 50,000 replicates of the probability that the first system improves on the second.
#[divan::bench(sample_count = 10, sample_size = 1)]
fn probability_of_improvement(bencher: divan::Bencher) {
    let systems = seven_systems();
    let bootstrap = Bootstrap::default();
    bencher.bench_local(|| bootstrap.probability_of_improvement(&systems[0], &systems[1]));
}

/// 2,000 replicates of a profile at 81 thresholds.
#[divan::bench(sample_count = 10, sample_size = 1)]
fn profile(bencher: divan::Bencher) {
    let systems = seven_systems();
    let thresholds: Vec<_> = (0..=80).map(|tenths| f64::from(tenths) / 10.0).collect();
    let bootstrap = Bootstrap {
        replicates: 2_000,
        ..Bootstrap::default()
    };
    bencher.bench_local(|| bootstrap.profile(&systems[0], &thresholds));
}
