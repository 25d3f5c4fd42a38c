//! The timeline of a session: a tree of steps, so that the player can go back and start a branch.

use std::collections::BTreeMap;

use rem::data::episode::Episode;
use rem::env::Outcome;
use rem::imagination::Dream;
use rem::model::actor_critic::ControllerState;

use crate::inference::Predictions;

/// Most nodes in memory, and most of them with a state.
const MAX_NODES: usize = 10_000;
const MAX_STATES: usize = 400;

/// An observation and the transition to it.
pub(crate) struct Node<'a> {
    pub parent: Option<u64>,
    /// Steps since the start of the session.
    pub step: usize,
    /// The action that led here, and its reward.
    pub action: Option<u8>,
    pub reward: f32,
    /// The sum of rewards up to here.
    pub total_reward: f32,
    /// Given by the environment, or predicted by the world model.
    pub outcome: Outcome,
    /// Whether the world model generated the observation.
    pub imagined: bool,
    pub frame: Vec<u8>,
    pub tokens: Vec<u16>,
    /// What the world model predicted, if the observation is imagined.
    pub predictions: Option<Predictions>,
    /// Needed to continue from here. Evicted from old nodes.
    pub state: Option<State<'a>>,
}

/// The state from which a step starts.
pub(crate) struct State<'a> {
    pub world: WorldState<'a>,
    /// The recurrent state after the observation.
    pub controller: ControllerState,
}

/// The state of the real environment or of a dream.
pub(crate) enum WorldState<'a> {
    /// A snapshot of the environment, if it has one.
    Real(Option<Vec<u8>>),
    /// A dream in progress.
    Dream {
        /// The world model's state.
        dream: Box<Dream<'a>>,
        /// Number of observations in its memory.
        memory: usize,
    },
}

/// A tree of nodes and the current one.
#[derive(Default)]
pub(crate) struct Timeline<'a> {
    nodes: BTreeMap<u64, Node<'a>>,
    current: Option<u64>,
    next_id: u64,
}

impl Node<'_> {
    /// Whether the episode ended here.
    pub fn is_over(&self) -> bool {
        self.outcome != Outcome::Running
    }

    /// Drops the state and the token probabilities, which are of similar size.
    fn evict_state(&mut self) {
        self.state = None;
        if let Some(predictions) = &mut self.predictions {
            predictions.tokens = Vec::new();
        }
    }
}

impl<'a> Timeline<'a> {
    /// Adds a node and makes it the current one. Drops the oldest nodes beyond the limits.
    pub fn push(&mut self, node: Node<'a>) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.nodes.insert(id, node);
        self.current = Some(id);
        while self.nodes.len() > MAX_NODES {
            self.nodes.pop_first();
        }
        if let Some(old) = id.checked_sub(MAX_STATES as u64)
            && let Some(node) = self.nodes.get_mut(&old)
        {
            node.evict_state();
        }
        id
    }

    /// The current node with its id.
    pub fn current(&self) -> Option<(u64, &Node<'a>)> {
        let id = self.current?;
        Some((id, self.nodes.get(&id)?))
    }

    /// A node, unless it was dropped.
    pub fn get(&self, id: u64) -> Option<&Node<'a>> {
        self.nodes.get(&id)
    }

    /// Moves to a node. Returns false if it does not exist.
    pub fn goto(&mut self, id: u64) -> bool {
        let exists = self.nodes.contains_key(&id);
        if exists {
            self.current = Some(id);
        }
        exists
    }

    /// The last `max` nodes on the path from the root to a node.
    pub fn path_to(&self, id: u64, max: usize) -> Vec<&Node<'a>> {
        let first = self.nodes.get(&id);
        let parent = |node: &&Node<'a>| self.nodes.get(&node.parent?);
        let mut path: Vec<_> = std::iter::successors(first, parent).take(max).collect();
        path.reverse();
        path
    }

    /// The path to a node as an episode, starting at the step of node `from`. `None` if that is a later step.
    pub fn episode(&self, to: u64, from: Option<u64>, info: EpisodeInfo) -> Option<Episode> {
        let start = from
            .and_then(|id| self.nodes.get(&id))
            .map_or(0, |node| node.step);
        let path = self.path_to(to, usize::MAX);
        let path: Vec<_> = path.into_iter().filter(|node| node.step >= start).collect();
        let (_, steps) = path.split_first()?;
        Some(Episode {
            game: info.game.to_owned(),
            action_names: info.action_names.to_vec(),
            size: info.frame_size,
            frames: path.iter().map(|node| node.frame.clone()).collect(),
            actions: steps.iter().map(|node| node.action.unwrap_or(0)).collect(),
            rewards: steps.iter().map(|node| node.reward).collect(),
            outcomes: steps.iter().map(|node| node.outcome).collect(),
            imagined: path.iter().map(|node| node.imagined).collect(),
        })
    }
}

/// The metadata of an episode file.
pub(crate) struct EpisodeInfo<'a> {
    pub game: &'a str,
    pub action_names: &'a [String],
    pub frame_size: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(parent: Option<u64>, step: usize) -> Node<'static> {
        Node {
            parent,
            step,
            action: parent.map(|_| step as u8),
            reward: step as f32,
            total_reward: 0.0,
            outcome: match step {
                3 => Outcome::Truncated,
                _ => Outcome::Running,
            },
            imagined: step > 1,
            frame: vec![step as u8; 12],
            tokens: vec![],
            predictions: Some(Predictions {
                tokens: vec![1.0],
                ..Predictions::default()
            }),
            state: None,
        }
    }

    #[test]
    fn branches_share_their_path_up_to_the_branching_node() {
        let mut timeline = Timeline::default();
        let a = timeline.push(node(None, 0));
        let b = timeline.push(node(Some(a), 1));
        let c = timeline.push(node(Some(b), 2));
        assert!(timeline.goto(b) && !timeline.goto(99));
        assert_eq!(timeline.current().unwrap().0, b);
        let other = timeline.push(node(Some(b), 2));
        let end = timeline.push(node(Some(other), 3));
        let steps = |id, max| -> Vec<usize> {
            let path = timeline.path_to(id, max);
            path.iter().map(|node| node.step).collect()
        };
        assert_eq!(steps(end, 9), [0, 1, 2, 3]);
        assert_eq!(steps(c, 2), [1, 2]);

        let saved = |to, from| {
            let info = EpisodeInfo {
                game: "catch",
                action_names: &[],
                frame_size: 2,
            };
            timeline.episode(to, Some(from), info)
        };
        assert_eq!(saved(a, b), None);
        assert_eq!(saved(b, b).unwrap().frames.len(), 1);
        let episode = saved(end, b).unwrap();
        assert_eq!(episode.actions, [2, 3]);
        assert_eq!(episode.frames.len(), 3);
        assert_eq!(episode.outcome(), Outcome::Truncated);
        assert_eq!(episode.imagined, [false, true, true]);
        let bytes = episode.to_npz();
        assert_eq!(Episode::from_npz(&bytes).unwrap(), episode);
    }

    #[test]
    fn the_oldest_nodes_and_states_are_evicted() {
        let mut timeline = Timeline::default();
        let mut last = None;
        for step in 0..MAX_NODES + 5 {
            last = Some(timeline.push(node(last, step)));
        }
        let path = timeline.path_to(last.unwrap(), usize::MAX);
        assert_eq!((path.len(), path[0].step), (MAX_NODES, 5));
        let with_tokens = path
            .iter()
            .filter(|node| !node.predictions.as_ref().unwrap().tokens.is_empty());
        assert_eq!(with_tokens.count(), MAX_STATES);
        assert!(!timeline.goto(0));
    }
}
