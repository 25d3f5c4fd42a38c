use super::*;
use crate::config::EnvMode;
use crate::env::EnvFactory;
use crate::model::agent::Agent;
use crate::seeds::Seeds;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

fn player(changes: &[&str]) -> Player {
    let changes: Vec<String> = changes.iter().map(|c| (*c).into()).collect();
    let config = Config::load("debug", &changes).unwrap();
    let envs = EnvFactory::named(&config.env).unwrap();
    let actions = envs.spaces().unwrap().action.count();
    Agent::new(&config, actions, &Seeds::new(1), &Device::flex()).valid()
}

/// The replay after a number of collections.
fn collected(changes: &[&str], collections: usize) -> Replay {
    collected_by(&player(changes), changes, collections)
}

/// Initial weights come from the device's generator, which tests share: those that compare share the player.
fn collected_by(player: &Player, changes: &[&str], collections: usize) -> Replay {
    let changes: Vec<String> = changes.iter().map(|c| (*c).into()).collect();
    let config = Config::load("debug", &changes).unwrap();
    let factory = EnvFactory::named(&config.env).unwrap();
    let mut envs: Vec<CollectEnv> = (1..=config.collect.envs as u64)
        .map(|seed| CollectEnv::new(factory.make(EnvMode::Train, seed).unwrap()))
        .collect();
    let device = Device::flex();
    let bytes = 3 * config.env.frame_size.pow(2);
    let mut replay = Replay::new(bytes, config.tokens_per_obs());
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for _ in 0..collections {
        collect(
            &mut envs,
            player,
            &mut replay,
            &config,
            &device,
            &mut rng,
            |_| (),
        )
        .unwrap();
    }
    replay
}

/// Every step of a replay: its frame, action and reward.
fn steps(replay: &Replay) -> Vec<(StepId, Vec<u8>, u8, f32)> {
    let ids = (0..replay.episodes() as u32).flat_map(|episode| {
        (0..replay.episode_steps(episode) as u32).map(move |index| StepId { episode, index })
    });
    ids.map(|id| {
        (
            id,
            replay.frame(id).to_vec(),
            replay.action(id),
            replay.reward(id),
        )
    })
    .collect()
}

#[test]
fn several_environments_collect_equal_shares_and_reproducibly() {
    let set = [
        "env.game=paddle",
        "collect.steps_per_epoch=30",
        "collect.envs=3",
    ];
    let player = player(&set);
    let replay = collected_by(&player, &set, 4);
    assert_eq!(replay.steps(), 120);
    // Each of the three environments has an open episode or has just finished one.
    let shares: Vec<usize> = (0..replay.episodes() as u32)
        .map(|episode| replay.episode_steps(episode))
        .collect();
    assert_eq!(shares.iter().sum::<usize>(), 120);
    assert!(replay.open_episode(2).is_some() && replay.open_episode(3).is_none());
    assert!(steps(&replay) == steps(&collected_by(&player, &set, 4)));
    let other = collected_by(&player, &set[..2], 4);
    assert!(steps(&replay) != steps(&other));
}

#[test]
fn an_environment_that_plays_beside_others_collects_what_it_does_alone() {
    // With random actions only, from the same generator: environment 0 of one.
    let of = |set: &[&str]| {
        let game = ["env.game=catch", "collect.steps_per_epoch=14"];
        collected(&[&game[..], set].concat(), 1)
    };
    // `catch` lasts seven steps: two episodes of one environment, or one of each of two.
    let (alone, beside) = (of(&[]), of(&["collect.envs=2"]));
    assert_eq!((alone.episodes(), beside.episodes()), (2, 2));
    let first = |replay: &Replay| {
        let id = StepId {
            episode: 0,
            index: 0,
        };
        replay.frame(id).to_vec()
    };
    assert_eq!(first(&alone), first(&beside));
    assert!(!alone.has_open_episode() && !beside.has_open_episode());
}

#[test]
fn learned_rewards_are_transformed() {
    let set = ["env.game=paddle", "collect.steps_per_epoch=60"];
    let player = player(&set);
    let rewards = |transform| -> Vec<f32> {
        let replay = collected_by(&player, &[&set[..], &[transform]].concat(), 1);
        steps(&replay).iter().map(|step| step.3).collect()
    };
    let raw = rewards("env.wrappers.rewards=raw");
    assert!(raw.contains(&1.0), "{raw:?}");
    let compressed: Vec<f32> = raw.iter().map(|r| r.abs().ln_1p().copysign(*r)).collect();
    assert_eq!(rewards("env.wrappers.rewards=symlog"), compressed);
}

fn actions_taken(changes: &[&str]) -> Vec<u8> {
    let replay = collected(changes, 1);
    (0..replay.episodes() as u32)
        .flat_map(|episode| {
            (0..replay.episode_steps(episode) as u32).map(move |index| StepId { episode, index })
        })
        .map(|id| replay.action(id))
        .collect()
}

#[test]
fn an_epoch_starts_with_a_new_episode_if_asked() {
    let set = ["env.game=paddle", "collect.steps_per_epoch=7"];
    // Positions in the replay where an episode ends, and whether the last one is open.
    let ends = |reset: &str| {
        let replay = collected(&[&set[..], &[reset]].concat(), 3);
        let mut position = 0;
        let ends: Vec<usize> = (0..replay.episodes() as u32)
            .map(|episode| {
                position += replay.episode_steps(episode);
                position
            })
            .collect();
        (
            [7, 14, 21].map(|end| ends.contains(&end)),
            replay.has_open_episode(),
        )
    };
    assert_eq!(ends("collect.reset_per_epoch=true"), ([true; 3], false));
    let (at, open) = ends("collect.reset_per_epoch=false");
    assert!(!(at[0] && at[1]) && open);
}

#[test]
fn random_actions_are_repeated() {
    let long = ["collect.epsilon=1.0", "collect.steps_per_epoch=60"];
    let repeated = actions_taken(&[&long[..], &["collect.random_action_repeat=20"]].concat());
    assert!(
        repeated
            .chunks(20)
            .all(|block| block.iter().all(|a| *a == block[0]))
    );
    let single = actions_taken(&long);
    assert!(
        single
            .chunks(20)
            .any(|block| block.iter().any(|a| *a != block[0]))
    );
}

#[test]
fn zeta_repeats_random_actions_for_many_steps_now_and_then() {
    let zeta = "collect.random_action_repeat=\"zeta\"";
    let set = ["collect.epsilon=1.0", "collect.steps_per_epoch=4000", zeta];
    let mut explorer = Explorer::default();
    let set: Vec<String> = set.map(String::from).into();
    let settings = Config::load("debug", &set).unwrap().collect;
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut lengths = Vec::new();
    while lengths.len() < 20_000 {
        assert!(explorer.next(&settings, 3, &mut rng).is_some());
        lengths.push(explorer.remaining + 1);
        explorer.remaining = 0;
    }
    // P(n = 1) = 6/π² and P(n > 10) = 1 - 6/π² (1 + 1/4 + … + 1/100) = 0.0579.
    let share = |of: fn(&usize) -> bool| lengths.iter().filter(|n| of(n)).count() as f64 / 20_000.0;
    assert!((share(|n| *n == 1) - 0.6079).abs() < 0.01);
    assert!((share(|n| *n > 10) - 0.0579).abs() < 0.005);
}

#[test]
fn the_policy_acts_in_single_steps_between_random_actions() {
    let set = [
        "collect.epsilon=0.0",
        "collect.random_action_repeat=\"zeta\"",
    ]
    .map(String::from);
    let settings = Config::load("debug", &set).unwrap().collect;
    let mut explorer = Explorer::default();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    assert!((0..100).all(|_| explorer.next(&settings, 3, &mut rng).is_none()));
    assert_eq!(explorer.remaining, 0);
}
