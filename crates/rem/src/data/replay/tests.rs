use super::frames::FRAMES_PER_BLOCK;
use super::*;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// Bytes of host memory that a replay has allocated.
fn allocated_bytes(replay: &Replay) -> usize {
    size_of::<Replay>()
        + replay.frames.allocated_bytes()
        + replay.actions.capacity()
        + replay.rewards.capacity() * size_of::<f32>()
        + replay.outcomes.capacity() * size_of::<Outcome>()
        + replay.episodes.allocated_bytes()
        + replay.token_cache.allocated_bytes()
}

/// Upper bound of [`allocated_bytes`] for `steps` steps in episodes of any length, all tokens cached.
fn allocation_bound(steps: usize, frame_bytes: usize, tokens_per_obs: usize) -> usize {
    let blocks = steps.div_ceil(FRAMES_PER_BLOCK);
    let frames = blocks * FRAMES_PER_BLOCK * frame_bytes;
    // Action, reward, outcome, at most one episode, and the cached tokens with their flag.
    let per_step = 1
        + size_of::<f32>()
        + size_of::<Outcome>()
        + episodes::BYTES_PER_EPISODE
        + 2 * tokens_per_obs
        + 1;
    // Vectors at most double. The constant covers `Replay` and the smallest capacities of a few vectors.
    frames + 2 * (steps * per_step + blocks * size_of::<Vec<u8>>()) + 1024
}

/// A replay of 3-byte frames with episodes of these lengths, the last one open. Actions count the steps of the
/// episode, rewards those of the replay.
pub(super) fn replay_of(lengths: &[usize]) -> Replay {
    let mut replay = Replay::new(3, 2);
    for (episode, &length) in lengths.iter().enumerate() {
        for index in 0..length {
            let outcome = match index + 1 == length && episode + 1 < lengths.len() {
                false => Outcome::Running,
                true if episode % 2 == 0 => Outcome::Terminated,
                true => Outcome::Truncated,
            };
            let reward = replay.steps() as f32;
            replay.push(
                &[episode as u8, index as u8, 7],
                index as u8,
                reward,
                outcome,
            );
        }
    }
    replay
}

/// Chi-square test that `counts` come from a uniform distribution: at most 5 standard deviations above the mean.
pub(super) fn assert_uniform(counts: &[usize]) {
    let expected = counts.iter().sum::<usize>() as f64 / counts.len() as f64;
    let chi_square: f64 = counts
        .iter()
        .map(|&c| (c as f64 - expected).powi(2) / expected)
        .sum();
    let freedom = (counts.len() - 1) as f64;
    let limit = freedom + 5.0 * (2.0 * freedom).sqrt();
    assert!(
        chi_square < limit,
        "chi-square {chi_square} exceeds {limit}"
    );
}

pub(super) fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

#[test]
fn steps_are_accessible_by_id() {
    let replay = replay_of(&[2, 1, 600, 5]);
    assert_eq!((replay.steps(), replay.episodes()), (608, 4));
    assert!(replay.has_open_episode());
    let id = StepId {
        episode: 2,
        index: 599,
    };
    assert_eq!(replay.frame(id), [2, (599 % 256) as u8, 7]);
    assert_eq!(
        (replay.action(id), replay.reward(id)),
        ((599 % 256) as u8, 602.0)
    );
    assert!(
        (0..replay.steps()).all(|position| replay.position(replay.id(position as u32)) == position)
    );
}

#[test]
fn a_truncated_episode_is_closed_but_not_terminated() {
    let replay = replay_of(&[2, 1, 1]);
    assert!(replay.terminated(StepId {
        episode: 0,
        index: 1
    }));
    let truncated = StepId {
        episode: 1,
        index: 0,
    };
    assert!(replay.outcome(truncated) == Outcome::Truncated);
    assert!(!replay.terminated(truncated));
}

#[test]
fn episodes_of_several_streams_are_separate() {
    let mut replay = Replay::new(3, 2);
    // Two streams in turns of two steps; the episode of stream 1 is closed by its fourth step.
    for turn in 0..4u8 {
        for stream in 0..2 {
            for i in 0..2 {
                let step = turn * 2 + i;
                let outcome = match (stream, step) {
                    (1, 3) => Outcome::Terminated,
                    _ => Outcome::Running,
                };
                replay.push_to(stream, &[stream as u8, step, 0], step, 0.0, outcome);
            }
        }
    }
    let lengths = [0, 1, 2].map(|episode| replay.episode_steps(episode));
    assert_eq!((replay.episodes(), lengths), (3, [8, 4, 4]));
    assert_eq!(
        [0, 1, 2].map(|s| replay.open_episode(s)),
        [Some(0), Some(2), None]
    );
    for episode in 0..3 {
        let first = if episode == 2 { 4 } else { 0 };
        for index in 0..replay.episode_steps(episode) as u32 {
            let id = StepId { episode, index };
            assert_eq!(replay.id(replay.position(id) as u32), id);
            let stream = u8::from(episode > 0);
            assert_eq!(replay.frame(id), [stream, first + index as u8, 0]);
        }
    }
    let starts = |first| -> Vec<(u32, i64)> {
        let segments = replay.segments_since(first, 3, 1);
        segments.iter().map(|w| (w.episode, w.start)).collect()
    };
    // Position 9 is the sixth step of episode 0; positions 12 and 14 begin the last turns.
    assert_eq!(starts(9), [(0, 5), (2, 0), (2, 3)]);
    assert_eq!(starts(14), [(2, 2)]);
}

#[test]
fn an_abandoned_episode_is_not_continued() {
    let mut replay = replay_of(&[2, 3]);
    assert_eq!(replay.open_episode(0), Some(1));
    replay.abandon_episode(0);
    assert!(!replay.has_open_episode());
    replay.push(&[9; 3], 0, 0.0, Outcome::Running);
    assert_eq!((replay.episodes(), replay.episode_steps(1)), (3, 3));
    let last = StepId {
        episode: 1,
        index: 2,
    };
    assert!(!replay.terminated(last));
}

#[test]
#[should_panic(expected = "beyond the end of its episode")]
fn an_index_beyond_the_end_of_an_episode_panics() {
    replay_of(&[2, 5]).frame(StepId {
        episode: 0,
        index: 2,
    });
}

#[test]
fn frames_are_sampled_uniformly_and_reproducibly() {
    let replay = replay_of(&[1, 3, 40, 200, 2]);
    let drawn = replay.sample_frames(100_000, &mut rng(1));
    let mut counts = vec![0; replay.steps()];
    for &id in &drawn {
        counts[replay.position(id)] += 1;
    }
    assert_uniform(&counts);
    assert_eq!(drawn, replay.sample_frames(100_000, &mut rng(1)));
    assert_ne!(drawn, replay.sample_frames(100_000, &mut rng(2)));
}

#[test]
fn uncached_returns_each_missing_step_once_in_order() {
    let mut replay = replay_of(&[2, 3]);
    let ids: Vec<_> = [4, 0, 4, 2, 0, 1]
        .map(|position| replay.id(position))
        .into();
    replay.cache_tokens(1, replay.id(2), &[5, 6]);
    let missing = replay.uncached(1, ids.iter().copied());
    assert_eq!(missing, [4, 0, 1].map(|position| replay.id(position)));
    assert_eq!(replay.uncached(2, ids.into_iter()).len(), 4);
}

#[test]
fn allocated_memory_stays_within_the_bound() {
    // A doubling vector wastes most at one past a power of two; episodes of one step have the most starts.
    for (steps, outcome) in [
        (1, Outcome::Running),
        (257, Outcome::Terminated),
        (4096, Outcome::Running),
        (65_537, Outcome::Terminated),
        (65_537, Outcome::Running),
    ] {
        let mut replay = Replay::new(48, 4);
        for _ in 0..steps {
            replay.push(&[1; 48], 0, 0.0, outcome);
            replay.cache_tokens(1, replay.id(replay.steps() as u32 - 1), &[9; 4]);
        }
        let filled = steps * (48 + 1 + 4 + 1 + 8 + 1);
        let allocated = allocated_bytes(&replay);
        let bound = allocation_bound(steps, 48, 4);
        assert!(
            (filled..=bound).contains(&allocated),
            "{steps} steps: {filled} <= {allocated} <= {bound}"
        );
    }
}

#[test]
fn a_hundred_thousand_frames_fit_into_1_3_gigabytes() {
    assert!(allocation_bound(100_000, 64 * 64 * 3, 64) <= 1_300_000_000);
}
