//! Departures of runs from the protocol of the Atari 100K benchmark and from the paper.

/// A value of a run that differs from the prescribed one, or is not known.
#[derive(Clone, Debug, PartialEq)]
pub struct Departure {
    /// What the value is, such as `frame skip`, or its config key.
    pub subject: String,
    /// The value of the run.
    pub value: String,
    /// The prescribed value. `None` if the value of the run is not known.
    pub prescribed: Option<String>,
    /// What prescribes it.
    pub standard: Standard,
}

/// What prescribes a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standard {
    /// The Atari 100K benchmark.
    Benchmark,
    /// The paper's evaluation.
    Paper,
    /// The preset `atari100k`, which has the paper's settings.
    Preset,
}

impl Standard {
    /// Its name after "as in".
    pub fn name(self) -> &'static str {
        match self {
            Self::Benchmark => "the benchmark",
            Self::Paper => "the paper",
            Self::Preset => "atari100k",
        }
    }
}

impl Departure {
    /// Such as `frame skip 1, not 4`.
    pub fn text(&self) -> String {
        match &self.prescribed {
            Some(prescribed) => format!("{} {}, not {prescribed}", self.subject, self.value),
            None => format!("{} {}", self.subject, self.value),
        }
    }
}

/// Number of settings of training that a summary names.
const NAMED: usize = 3;

/// All departures in one line. Of many settings of training, it names the first ones and counts the others.
pub fn summary(departures: &[Departure]) -> String {
    let is_setting = |departure: &&Departure| departure.standard == Standard::Preset;
    let (settings, protocol): (Vec<_>, Vec<_>) = departures.iter().partition(is_setting);
    let mut parts: Vec<_> = protocol.iter().map(|departure| departure.text()).collect();
    parts.extend(settings.iter().take(NAMED).map(|setting| setting.text()));
    if settings.len() > NAMED {
        parts.push(format!(
            "{} more settings differ from the preset atari100k",
            settings.len() - NAMED
        ));
    }
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn departure(subject: &str, standard: Standard) -> Departure {
        Departure {
            subject: subject.into(),
            value: "1".into(),
            prescribed: Some("4".into()),
            standard,
        }
    }

    #[test]
    fn a_summary_has_all_of_the_protocol_and_some_settings() {
        let mut all: Vec<_> = ["a.x", "a.y", "b.z", "c.w", "c.v"]
            .map(|key| departure(key, Standard::Preset))
            .into();
        all.push(departure("frame skip", Standard::Benchmark));
        assert_eq!(
            summary(&all),
            "frame skip 1, not 4; a.x 1, not 4; a.y 1, not 4; b.z 1, not 4; 2 more settings differ from the preset atari100k"
        );
        assert_eq!(summary(&all[..1]), "a.x 1, not 4");
        assert_eq!(summary(&[]), "");
    }
}
