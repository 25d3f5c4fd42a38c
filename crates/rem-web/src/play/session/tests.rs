//! What going back and branching must not change. At temperature 0 a dream depends on its start and the actions alone.

use super::super::command::FileKind;
use super::*;
use crate::mind::tests::newborn;

fn begun(mind: &Mind, world: Kind) -> Session<'_> {
    let mut session = Session::new(mind, Path::new("/nowhere/of/rem/tests"));
    let place = Place::Game { seed: 1 };
    session.obey(Command::Start { place, world }).unwrap();
    session
}

/// Takes an action and tells what came of it: tokens, frame and all chances.
fn step(session: &mut Session, action: usize) -> (Vec<u16>, Vec<u8>, Vec<f32>) {
    let action = Some(action);
    let temperature = 0.0;
    session
        .obey(Command::Step {
            action,
            temperature,
        })
        .unwrap();
    let (_, moment) = session.timeline.here().unwrap();
    let chances = moment.odds.as_ref().map(|odds| odds.tokens.clone());
    (
        moment.tokens.clone(),
        moment.frame.clone(),
        chances.unwrap_or_default(),
    )
}

fn here(session: &Session) -> u64 {
    session.timeline.here().unwrap().0
}

#[test]
fn a_dream_that_is_continued_equals_an_unbroken_one() {
    let mind = newborn();
    let mut unbroken = begun(&mind, Kind::Dream);
    let expected: Vec<_> = [1, 2, 0, 1, 2]
        .map(|action| step(&mut unbroken, action))
        .into();

    let mut broken = begun(&mind, Kind::Dream);
    let start = here(&broken);
    let mut found: Vec<_> = [1, 2].map(|action| step(&mut broken, action)).into();
    let stopped = here(&broken);
    broken.obey(Command::Go { moment: start }).unwrap();
    step(&mut broken, 2);
    broken.obey(Command::Go { moment: stopped }).unwrap();
    broken.obey(Command::Token { place: 0 }).unwrap();
    found.extend([0, 1, 2].map(|action| step(&mut broken, action)));
    assert!(found == expected, "the dream went another way");
}

#[test]
fn a_branch_leaves_its_parent_as_it_was() {
    let mind = newborn();
    for world in [Kind::Dream, Kind::Real] {
        let mut session = begun(&mind, world);
        step(&mut session, 1);
        let parent = here(&session);
        let shown = session.show().unwrap();
        let first = [1, 1].map(|action| step(&mut session, action));
        assert!(session.obey(Command::Go { moment: parent }).unwrap() == shown);
        let other = [2, 2].map(|action| step(&mut session, action));
        assert!(first != other, "the actions do not matter");
        assert!(session.obey(Command::Go { moment: parent }).unwrap() == shown);
        assert!(first == [1, 1].map(|action| step(&mut session, action)));
    }
}

#[test]
fn what_was_before_a_recording_is_not_saved_as_one() {
    let mind = newborn();
    let mut session = begun(&mind, Kind::Real);
    let start = here(&session);
    step(&mut session, 1);
    let recording = Some(here(&session));
    step(&mut session, 1);
    let save = |kind| Command::Save {
        kind,
        from: recording,
        frame_ms: 100,
    };
    assert!(session.obey(save(FileKind::Npz)).is_ok());
    session.obey(Command::Go { moment: start }).unwrap();
    for kind in [FileKind::Npz, FileKind::Gif] {
        let refused = session.obey(save(kind)).unwrap_err().to_string();
        assert!(refused.contains("before the recording"), "{refused}");
    }
}

#[test]
fn a_real_game_that_is_cut_short_has_not_ended() {
    let mut mind = newborn();
    mind.config.env.max_steps.test = 2;
    let mut session = begun(&mind, Kind::Real);
    step(&mut session, 0);
    step(&mut session, 0);
    let (_, moment) = session.timeline.here().unwrap();
    assert_eq!(moment.outcome, Outcome::Truncated);
    let step = Command::Step {
        action: Some(0),
        temperature: 1.0,
    };
    assert!(session.obey(step).is_err());
}
