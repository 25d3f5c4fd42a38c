//! What happened in a session: moments that know where they came from, so that one can go back and try something else.

use std::collections::BTreeMap;

use rem::actor_critic::ControllerState;
use rem::env::Outcome;
use rem::episode::Episode;
use rem::imagination::Dream;

use crate::mind::Odds;

/// Moments that are remembered, and of them those that one can go on from.
const MOMENTS: usize = 10_000;
const LIVE_MOMENTS: usize = 400;

/// An observation, and how it came about.
pub struct Moment<'m> {
    pub parent: Option<u64>,
    /// Steps since the session's start.
    pub step: usize,
    /// The action that led here, with its reward.
    pub action: Option<u8>,
    pub reward: f32,
    /// Of all rewards on the way here.
    pub total: f32,
    /// What the game says of it, or the dream.
    pub outcome: Outcome,
    pub dreamt: bool,
    pub frame: Vec<u8>,
    pub tokens: Vec<u16>,
    /// What the world model held to be how likely, where it made this moment up.
    pub odds: Option<Odds>,
    /// What it takes to go on from here, as long as it is kept.
    pub live: Option<Live<'m>>,
}

/// What it takes to go on from a moment.
pub struct Live<'m> {
    pub world: World<'m>,
    /// After it has taken the observation in.
    pub controller: ControllerState,
}

pub enum World<'m> {
    /// A snapshot of the environment.
    Real(Vec<u8>),
    Dream {
        dream: Box<Dream<'m>>,
        /// Observations in its memory.
        seen: usize,
    },
}

/// A tree of moments and the place in it where one is.
#[derive(Default)]
pub struct Timeline<'m> {
    moments: BTreeMap<u64, Moment<'m>>,
    here: Option<u64>,
    next: u64,
}

impl Moment<'_> {
    pub fn is_over(&self) -> bool {
        self.outcome != Outcome::Continues
    }

    /// What it takes to go on from here, and the chances of all tokens, which are as large, are forgotten.
    fn fade(&mut self) {
        self.live = None;
        if let Some(odds) = &mut self.odds {
            odds.tokens = Vec::new();
        }
    }
}

impl<'m> Timeline<'m> {
    /// Adds a moment and goes there. The oldest ones are forgotten.
    pub fn push(&mut self, moment: Moment<'m>) -> u64 {
        let id = self.next;
        self.next += 1;
        self.moments.insert(id, moment);
        self.here = Some(id);
        while self.moments.len() > MOMENTS {
            self.moments.pop_first();
        }
        if let Some(old) = id.checked_sub(LIVE_MOMENTS as u64)
            && let Some(moment) = self.moments.get_mut(&old)
        {
            moment.fade();
        }
        id
    }

    pub fn here(&self) -> Option<(u64, &Moment<'m>)> {
        let id = self.here?;
        Some((id, self.moments.get(&id)?))
    }

    pub fn get(&self, id: u64) -> Option<&Moment<'m>> {
        self.moments.get(&id)
    }

    /// Goes to a moment; false if it is forgotten.
    pub fn go(&mut self, id: u64) -> bool {
        let known = self.moments.contains_key(&id);
        if known {
            self.here = Some(id);
        }
        known
    }

    /// The way to a moment, at most so many moments of it.
    pub fn way_to(&self, id: u64, most: usize) -> Vec<&Moment<'m>> {
        let first = self.moments.get(&id);
        let back = |moment: &&Moment<'m>| self.moments.get(&moment.parent?);
        let mut way: Vec<_> = std::iter::successors(first, back).take(most).collect();
        way.reverse();
        way
    }

    /// The way to a moment as an episode, from the step of moment `from` on; none if that is a later one.
    pub fn episode(&self, to: u64, from: Option<u64>, about: About) -> Option<Episode> {
        let start = from
            .and_then(|id| self.moments.get(&id))
            .map_or(0, |moment| moment.step);
        let way = self.way_to(to, usize::MAX);
        let way: Vec<_> = way
            .into_iter()
            .filter(|moment| moment.step >= start)
            .collect();
        let (_, steps) = way.split_first()?;
        Some(Episode {
            game: about.game.to_owned(),
            action_names: about.action_names.to_vec(),
            size: about.size,
            frames: way.iter().map(|moment| moment.frame.clone()).collect(),
            actions: steps
                .iter()
                .map(|moment| moment.action.unwrap_or(0))
                .collect(),
            rewards: steps.iter().map(|moment| moment.reward).collect(),
            outcomes: steps.iter().map(|moment| moment.outcome).collect(),
            dreamt: way.iter().map(|moment| moment.dreamt).collect(),
        })
    }
}

/// What an episode is of.
pub struct About<'a> {
    pub game: &'a str,
    pub action_names: &'a [String],
    pub size: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(parent: Option<u64>, step: usize) -> Moment<'static> {
        Moment {
            parent,
            step,
            action: parent.map(|_| step as u8),
            reward: step as f32,
            total: 0.0,
            outcome: match step {
                3 => Outcome::Truncated,
                _ => Outcome::Continues,
            },
            dreamt: step > 1,
            frame: vec![step as u8; 12],
            tokens: vec![],
            odds: Some(Odds {
                tokens: vec![1.0],
                ..Odds::default()
            }),
            live: None,
        }
    }

    #[test]
    fn one_can_go_back_and_branch() {
        let mut timeline = Timeline::default();
        let a = timeline.push(moment(None, 0));
        let b = timeline.push(moment(Some(a), 1));
        let c = timeline.push(moment(Some(b), 2));
        assert!(timeline.go(b) && !timeline.go(99));
        assert_eq!(timeline.here().unwrap().0, b);
        let other = timeline.push(moment(Some(b), 2));
        let end = timeline.push(moment(Some(other), 3));
        let steps = |id, most| -> Vec<usize> {
            timeline
                .way_to(id, most)
                .iter()
                .map(|moment| moment.step)
                .collect()
        };
        assert_eq!(steps(end, 9), [0, 1, 2, 3]);
        assert_eq!(steps(c, 2), [1, 2]);

        let saved = |to, from| {
            let about = About {
                game: "catch",
                action_names: &[],
                size: 2,
            };
            timeline.episode(to, Some(from), about)
        };
        assert_eq!(saved(a, b), None);
        assert_eq!(saved(b, b).unwrap().frames.len(), 1);
        let episode = saved(end, b).unwrap();
        assert_eq!(episode.actions, [2, 3]);
        assert_eq!(episode.frames.len(), 3);
        assert_eq!(episode.outcome(), Outcome::Truncated);
        assert_eq!(episode.dreamt, [false, true, true]);
        let bytes = episode.to_npz();
        assert_eq!(Episode::from_npz(&bytes).unwrap(), episode);
    }

    #[test]
    fn the_oldest_moments_are_forgotten() {
        let mut timeline = Timeline::default();
        let mut last = None;
        for step in 0..MOMENTS + 5 {
            last = Some(timeline.push(moment(last, step)));
        }
        let way = timeline.way_to(last.unwrap(), usize::MAX);
        assert_eq!((way.len(), way[0].step), (MOMENTS, 5));
        let large = way
            .iter()
            .filter(|moment| !moment.odds.as_ref().unwrap().tokens.is_empty());
        assert_eq!(large.count(), LIVE_MOMENTS);
        assert!(!timeline.go(0));
    }
}
