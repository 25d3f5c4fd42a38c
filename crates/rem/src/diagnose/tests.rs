use burn::module::Module;
use burn::tensor::{Tensor, TensorData};

use super::held_out::GameState;
use super::simulation::Simulator;
use super::*;
use crate::data::batch;
use crate::data::replay::StepId;
use crate::env::{
    Action, ActionSpace, Env, EnvError, Observation, ObservationSpace, Outcome, Spaces, Step,
};
use crate::host;
use crate::imagination::RolloutEnv;
use crate::seeds::Purpose;

#[test]
fn learned_rewards_are_those_of_the_world_model() {
    let device = Device::flex();
    let learned = |set: [&str; 2], reward| {
        let config = Config::load("debug", &set.map(String::from)).unwrap();
        let envs = EnvFactory::named(&config.env).unwrap();
        let agent = Agent::new(&config, 3, &Seeds::new(1), &device.clone().autodiff());
        let subject = Subject {
            agent: &agent,
            config: &config,
            envs: &envs,
            device: &device,
        };
        subject.learned_reward(reward)
    };
    let [raw, clip] = ["raw", "clip"].map(|name| format!("env.wrappers.rewards={name}"));
    let [sign, continuous] = ["sign", "continuous"].map(|r| format!("world_model.rewards={r}"));
    for (reward, expected) in [(7.0, 1.0), (-0.5, -1.0), (0.0, 0.0)] {
        assert_eq!(learned([&raw, &sign], reward), expected);
    }
    assert_eq!(learned([&clip, &continuous], 7.0), 1.0);
    assert_eq!(learned([&raw, &continuous], -0.5), -0.5);
}

#[test]
fn thinning_keeps_evenly_spaced_elements() {
    let all: Vec<usize> = (0..10).collect();
    assert_eq!(thinned(all.clone(), 4), [0, 3, 6, 9]);
    assert_eq!(thinned(all.clone(), 10), all);
    assert!(thinned(Vec::<u8>::new(), 4).is_empty());
}

/// Runs `work` with a new agent of the preset `debug` on a built-in game.
fn with_subject<T>(game: &str, work: impl FnOnce(&Subject) -> T) -> T {
    let config = Config::load("debug", &[format!("env.game={game}")]).unwrap();
    let envs = EnvFactory::named(&config.env).unwrap();
    let device = Device::flex();
    let agent = Agent::new(&config, 3, &Seeds::new(1), &device.clone().autodiff());
    work(&Subject {
        agent: &agent,
        config: &config,
        envs: &envs,
        device: &device,
    })
}

/// A world model without errors: with the recorded actions, simulations show the recorded frames, rewards and ends.
#[test]
fn simulations_with_recorded_actions_repeat_the_play() {
    with_subject("paddle", |subject| {
        let play = HeldOut::play(subject, 800, &mut |_, _| ()).unwrap();
        let player = subject.agent.valid();
        let states: Vec<GameState> = play.states().into_iter().cloned().collect();
        let states = thinned(states, 32);
        let mut simulator = Simulator::new(subject, states.len()).unwrap();
        let mut simulation = simulator.continued(subject, &player, &states).unwrap();
        let mut rng = subject.seeds().rng(0, Purpose::Diagnosis);
        let (mut compared, mut ended, mut rewarded) = (0, 0, 0);
        for ahead in 0..40 {
            let at = |state: &GameState| StepId {
                index: state.step.index + ahead,
                ..state.step
            };
            let is_recorded =
                |id: StepId| (id.index as usize) < play.replay.episode_steps(id.episode);
            let recorded: Vec<Option<StepId>> = states
                .iter()
                .map(at)
                .map(|id| is_recorded(id).then_some(id))
                .collect();
            let action = |id: &Option<StepId>| id.map_or(0, |id| i64::from(play.replay.action(id)));
            let actions: Vec<i64> = recorded.iter().map(action).collect();
            let actions = TensorData::new(actions, [states.len()]);
            for (i, id) in recorded.iter().enumerate() {
                if let Some(id) = id {
                    assert!(simulation.frame(i) == play.replay.frame(*id), "{id:?}");
                }
            }
            let actions = Tensor::from_data(actions, subject.device);
            let step = simulation.step(actions, &mut rng).unwrap();
            for (i, id) in recorded.iter().enumerate() {
                let Some(id) = id else { continue };
                assert_eq!(step.rewards[i], play.replay.reward(*id), "{id:?}");
                assert_eq!(step.ends[i], play.replay.terminated(*id), "{id:?}");
                compared += 1;
                ended += usize::from(step.ends[i]);
                rewarded += usize::from(step.rewards[i] != 0.0);
            }
        }
        assert!(
            compared > 200 && ended > 3 && rewarded > 3,
            "{compared} {ended} {rewarded}"
        );
    });
}

/// Snapshots are taken in all parts of episodes, and dreams start with the frames that led to them.
#[test]
fn dreams_start_from_the_observation_of_the_state() {
    with_subject("catch", |subject| {
        let mut play = HeldOut::play(subject, 3000, &mut |_, _| ()).unwrap();
        let tokenizer = subject.agent.tokenizer.valid();
        let states: Vec<GameState> = play.states().into_iter().cloned().collect();
        let different: std::collections::BTreeSet<u32> =
            states.iter().map(|state| state.step.index).collect();
        // Episodes of `catch` have seven steps; with a context of two observations, the first one starts no dream.
        assert_eq!(Vec::from_iter(different), [1, 2, 3, 4, 5, 6]);
        let starts = play.dream_starts(subject, &tokenizer, &states[..4]);
        let [_, length, k] = starts.tokens.dims();
        assert_eq!(length, subject.config.actor_critic.burn_in + 1);
        let last = host::ints(starts.tokens.narrow(1, length - 1, 1));
        for (state, tokens) in states.iter().zip(last.chunks(k)) {
            let frame = [play.replay.frame(state.step)].into_iter();
            let frame = batch::frames(frame, subject.config.env.frame_size, subject.device);
            assert_eq!(host::ints(tokenizer.encode(frame)), tokens);
        }
    });
}

#[test]
fn games_without_snapshots_are_an_error() {
    struct Blank;
    impl Env for Blank {
        fn spaces(&self) -> Spaces {
            Spaces {
                observation: ObservationSpace::rgb(32, 32),
                action: ActionSpace::discrete(3),
            }
        }
        fn reset(&mut self) -> Result<Observation, EnvError> {
            Ok(vec![0; 32 * 32 * 3].into())
        }
        fn step(&mut self, _: &Action) -> Result<Step, EnvError> {
            Ok(Step::new(vec![0; 32 * 32 * 3], 0.0, Outcome::Running))
        }
    }
    with_subject("catch", |subject| {
        let envs = EnvFactory::new(&subject.config.env, |_, _| Ok(Blank)).unwrap();
        let subject = Subject {
            envs: &envs,
            ..*subject
        };
        let error = HeldOut::play(&subject, 100, &mut |_, _| ()).err().unwrap();
        assert!(matches!(error, EnvError::NoSnapshots { .. }), "{error}");
    });
}
