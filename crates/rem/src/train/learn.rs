//! The training phases of an epoch: one after the other or, with `train.overlap_phases`, the controller's at the same time
//! as the others.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::learners::{ControllerLearner, Epoch, WorldLearner};
use super::phase::{Phase, PhaseReport};
use super::trainer::{EpochError, Trainer};
use super::{Event, Listener};
use crate::data::batch::HostStarts;
use crate::error::{Error, Result};
use crate::model::tokenizer::Tokenizer;
use crate::run::metrics::Metrics;
use crate::seeds::Purpose;
use crate::threads;

impl Trainer {
    /// Trains the three components for an epoch. `first_new` is the position of the first replay step of the epoch.
    pub(super) fn learn(
        &mut self,
        epoch: u32,
        first_new: usize,
        listener: Listener,
    ) -> Result<(), EpochError> {
        let overlaps = self.config.overlaps_in(epoch);
        let (world, controller, metrics) = self.learners(epoch, first_new);
        let events = Events(Mutex::new(listener));
        if overlaps {
            overlapped(world, controller, metrics, &events)
        } else {
            one_after_the_other(world, controller, metrics, &events)
        }
    }
}

/// The order of Algorithm 3: each component learns with the ones that have just learned.
fn one_after_the_other(
    mut world: WorldLearner,
    mut controller: ControllerLearner,
    metrics: &mut Metrics,
    events: &Events,
) -> Result<(), EpochError> {
    let epoch = world.epoch;
    world.learn(metrics, events)?;
    if epoch.learns(Phase::ActorCritic) {
        let started = events.start(epoch, Phase::ActorCritic);
        let (tokenizer, world_model) = world.for_dreams();
        let starts = world.dream_starts(&tokenizer);
        let on_step = events.steps_of(Phase::ActorCritic);
        let report = controller.train(&tokenizer, &world_model, starts, on_step)?;
        events.done(
            metrics,
            epoch,
            Phase::ActorCritic,
            started.elapsed(),
            &report,
        )?;
    }
    Ok(())
}

/// The controller learns in the world model of the epoch before, while the others learn. The two sides exchange nothing
/// before both are done, so results depend neither on time nor on the number of threads.
fn overlapped(
    mut world: WorldLearner,
    mut controller: ControllerLearner,
    metrics: &mut Metrics,
    events: &Events,
) -> Result<(), EpochError> {
    let epoch = world.epoch;
    let started = events.start(epoch, Phase::ActorCritic);
    let (tokenizer, world_model) = world.for_dreams();
    // From here on the replay and its token cache belong to the other side.
    let mut starts = world.dream_starts_ahead(&tokenizer).into_iter();
    let mut learn_world = || world.learn(metrics, events);
    let mut learn_controller = || {
        let next = |_: &mut _| starts.next();
        let on_step = events.steps_of(Phase::ActorCritic);
        let report = controller.train(&tokenizer, &world_model, next, on_step)?;
        Ok::<_, EpochError>((report, started.elapsed()))
    };
    let (of_world, of_controller) = match &epoch.config.device[..] {
        "flex" => threads::both(learn_world, learn_controller),
        // One side keeps any other device busy.
        _ => (learn_world(), learn_controller()),
    };
    of_world?;
    let (report, elapsed) = of_controller?;
    events.done(metrics, epoch, Phase::ActorCritic, elapsed, &report)?;
    Ok(())
}

impl WorldLearner<'_> {
    /// Trains tokenizer and world model for an epoch, and logs both.
    fn learn(&mut self, metrics: &mut Metrics, events: &Events) -> Result<(), EpochError> {
        let epoch = self.epoch;
        if epoch.learns(Phase::Tokenizer) {
            let started = events.start(epoch, Phase::Tokenizer);
            let report = self.train_tokenizer(events.steps_of(Phase::Tokenizer))?;
            events.done(metrics, epoch, Phase::Tokenizer, started.elapsed(), &report)?;
        }
        if epoch.learns(Phase::WorldModel) {
            let started = events.start(epoch, Phase::WorldModel);
            let report = self.train_world_model(events.steps_of(Phase::WorldModel))?;
            events.done(
                metrics,
                epoch,
                Phase::WorldModel,
                started.elapsed(),
                &report,
            )?;
        }
        Ok(())
    }

    /// What all rollouts of the epoch start from, drawn and encoded before they are imagined. Empty if no episode is long
    /// enough.
    fn dream_starts_ahead(&mut self, tokenizer: &Tokenizer) -> Vec<HostStarts> {
        let epoch = self.epoch;
        let mut rng = (epoch.seeds).rng_ahead(epoch.number, Purpose::ActorCritic);
        let steps = epoch.config.actor_critic.optimizer.steps_per_epoch;
        let mut starts = self.dream_starts(tokenizer);
        (0..steps).map_while(|_| starts(&mut rng)).collect()
    }
}

/// Reports phases to the listener, which may run on several threads.
struct Events<'a>(Mutex<Listener<'a>>);

impl Events<'_> {
    fn send(&self, event: Event) {
        // A listener that panicked ends the run; until then the other side may still report.
        (self.0.lock().unwrap_or_else(PoisonError::into_inner))(event);
    }

    fn start(&self, epoch: Epoch, phase: Phase) -> Instant {
        self.send(Event::Phase {
            epoch: epoch.number,
            phase: phase.name(),
            steps: phase.settings(epoch.config).steps_per_epoch,
        });
        Instant::now()
    }

    fn steps_of(&self, phase: Phase) -> impl FnMut(usize) {
        let phase = phase.name();
        move |done| self.send(Event::Step { phase, done })
    }

    /// Logs a phase and its warnings.
    fn done(
        &self,
        metrics: &mut Metrics,
        epoch: Epoch,
        phase: Phase,
        elapsed: Duration,
        report: &PhaseReport,
    ) -> Result<()> {
        for warning in &report.warnings {
            self.send(Event::Note(warning));
            metrics.note(epoch.number, warning).map_err(Error::Logs)?;
        }
        let (epoch, steps) = (epoch.number, phase.settings(epoch.config).steps_per_epoch);
        let (phase, seconds) = (phase.name(), elapsed.as_secs_f64());
        let values = &report.values[..];
        (metrics.phase(epoch, phase, steps, seconds, values)).map_err(Error::Logs)?;
        self.send(Event::PhaseDone {
            epoch,
            phase,
            steps,
            seconds,
            values,
        });
        Ok(())
    }
}
