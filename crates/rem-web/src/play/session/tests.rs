//! Going back and branching do not affect a session. At temperature 0 a dream depends only on its start and the actions.

use super::super::command::FileFormat;
use super::*;
use crate::inference::tests::untrained_agent;

fn started(agent: &InferenceAgent, world: World) -> Session<'_> {
    let mut session = Session::new(agent, Path::new("/nowhere/of/rem/tests"));
    let from = StartFrom::Reset { seed: 1 };
    session.handle(Command::Start { from, world }).unwrap();
    session
}

/// Takes an action. Returns tokens, frame and token probabilities.
fn step(session: &mut Session, action: usize) -> (Vec<u16>, Vec<u8>, Vec<f32>) {
    let action = Some(action);
    let temperature = 0.0;
    session
        .handle(Command::Step {
            action,
            temperature,
        })
        .unwrap();
    let (_, node) = session.timeline.current().unwrap();
    let probabilities = node.predictions.as_ref().map(|p| p.tokens.clone());
    (
        node.tokens.clone(),
        node.frame.clone(),
        probabilities.unwrap_or_default(),
    )
}

fn current(session: &Session) -> u64 {
    session.timeline.current().unwrap().0
}

#[test]
fn a_dream_continued_after_a_branch_equals_an_uninterrupted_one() {
    let agent = untrained_agent();
    let mut uninterrupted = started(&agent, World::Dream);
    let expected: Vec<_> = [1, 2, 0, 1, 2]
        .map(|action| step(&mut uninterrupted, action))
        .into();

    let mut interrupted = started(&agent, World::Dream);
    let start = current(&interrupted);
    let mut found: Vec<_> = [1, 2].map(|action| step(&mut interrupted, action)).into();
    let node = current(&interrupted);
    interrupted.handle(Command::Goto { node: start }).unwrap();
    step(&mut interrupted, 2);
    interrupted.handle(Command::Goto { node }).unwrap();
    interrupted.handle(Command::Token { position: 0 }).unwrap();
    found.extend([0, 1, 2].map(|action| step(&mut interrupted, action)));
    assert!(found == expected, "the dreams differ");
}

#[test]
fn a_branch_does_not_change_its_parent() {
    let agent = untrained_agent();
    for world in [World::Dream, World::Real] {
        let mut session = started(&agent, world);
        step(&mut session, 1);
        let parent = current(&session);
        let shown = session.current_state().unwrap();
        let first = [1, 1].map(|action| step(&mut session, action));
        assert!(session.handle(Command::Goto { node: parent }).unwrap() == shown);
        let other = [2, 2].map(|action| step(&mut session, action));
        assert!(first != other, "the actions have no effect");
        assert!(session.handle(Command::Goto { node: parent }).unwrap() == shown);
        assert!(first == [1, 1].map(|action| step(&mut session, action)));
    }
}

#[test]
fn steps_before_the_start_of_a_recording_are_not_saved() {
    let agent = untrained_agent();
    let mut session = started(&agent, World::Real);
    let start = current(&session);
    step(&mut session, 1);
    let recording = Some(current(&session));
    step(&mut session, 1);
    let save = |format| Command::Save {
        format,
        from: recording,
        frame_ms: 100,
    };
    assert!(session.handle(save(FileFormat::Npz)).is_ok());
    session.handle(Command::Goto { node: start }).unwrap();
    for format in [FileFormat::Npz, FileFormat::Gif] {
        let error = session.handle(save(format)).unwrap_err().to_string();
        assert!(
            error.contains("before the start of the recording"),
            "{error}"
        );
    }
}

#[test]
fn a_real_episode_at_the_step_limit_is_truncated_and_cannot_continue() {
    let mut agent = untrained_agent();
    agent.config.env.max_steps.test = 2;
    let mut session = started(&agent, World::Real);
    step(&mut session, 0);
    step(&mut session, 0);
    let (_, node) = session.timeline.current().unwrap();
    assert_eq!(node.outcome, Outcome::Truncated);
    let step = Command::Step {
        action: Some(0),
        temperature: 1.0,
    };
    assert!(session.handle(step).is_err());
}
