//! The lines of `metrics.jsonl` and `timing.jsonl`.

use std::fmt;

use serde::de::{DeserializeOwned, Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The `phase` of a note.
const NOTE: &str = "note";

/// A line of `metrics.jsonl`. Keys keep their order, so that equal runs write equal bytes.
///
/// ```
/// use rem_run::MetricsLine;
///
/// let line = MetricsLine::scalars(12, "tokenizer", &[("loss", 0.5), ("grad_norm", f64::NAN)]);
/// let bytes = line.to_json_line();
/// assert_eq!(bytes, b"{\"epoch\":12,\"phase\":\"tokenizer\",\"loss\":0.5,\"grad_norm\":null}\n");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum MetricsLine {
    /// The metrics of one phase of one epoch.
    Scalars {
        /// The epoch, from 1.
        epoch: u32,
        /// The name of a [`Phase`](crate::Phase).
        phase: String,
        /// Names and values of [`metrics::METRICS`](crate::metrics::METRICS), in the order of the line. A value that is
        /// not finite is `null` in the file and NaN when read back.
        values: Vec<(String, f64)>,
    },
    /// A message that affects how to read the scores, such as a warning.
    Note {
        /// The epoch, from 1.
        epoch: u32,
        /// The message.
        text: String,
    },
}

impl MetricsLine {
    /// The metrics of one phase of one epoch.
    pub fn scalars(epoch: u32, phase: &str, values: &[(&str, f64)]) -> Self {
        let values = values.iter().map(|&(name, value)| (name.into(), value));
        Self::Scalars {
            epoch,
            phase: phase.into(),
            values: values.collect(),
        }
    }

    /// A note with this text.
    pub fn note(epoch: u32, text: impl Into<String>) -> Self {
        Self::Note {
            epoch,
            text: text.into(),
        }
    }

    /// The epoch of the line.
    pub fn epoch(&self) -> u32 {
        match self {
            Self::Scalars { epoch, .. } | Self::Note { epoch, .. } => *epoch,
        }
    }

    /// The line as bytes of the file, with its newline.
    pub fn to_json_line(&self) -> Vec<u8> {
        json_line(self)
    }
}

impl Serialize for MetricsLine {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("epoch", &self.epoch())?;
        match self {
            Self::Scalars { phase, values, .. } => {
                map.serialize_entry("phase", phase)?;
                for (name, value) in values {
                    map.serialize_entry(name, value)?;
                }
            }
            Self::Note { text, .. } => {
                map.serialize_entry("phase", NOTE)?;
                map.serialize_entry("text", text)?;
            }
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for MetricsLine {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MetricsLineVisitor)
    }
}

struct MetricsLineVisitor;

impl<'de> Visitor<'de> for MetricsLineVisitor {
    type Value = MetricsLine;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object with `epoch`, `phase`, and numbers or a `text`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<MetricsLine, A::Error> {
        let (mut epoch, mut phase, mut text) = (None, None, None);
        let mut values = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "epoch" => epoch = Some(map.next_value::<u32>()?),
                "phase" => phase = Some(map.next_value::<String>()?),
                "text" => text = Some(map.next_value::<String>()?),
                _ => {
                    let value = map.next_value::<Option<f64>>()?;
                    values.push((key, value.unwrap_or(f64::NAN)));
                }
            }
        }
        let epoch = epoch.ok_or_else(|| A::Error::missing_field("epoch"))?;
        let phase = phase.ok_or_else(|| A::Error::missing_field("phase"))?;
        match (phase == NOTE, text) {
            (true, Some(text)) => Ok(MetricsLine::Note { epoch, text }),
            (true, None) => Err(A::Error::missing_field("text")),
            (false, _) => Ok(MetricsLine::Scalars {
                epoch,
                phase,
                values,
            }),
        }
    }
}

/// A line of `timing.jsonl`: the duration of one phase of one epoch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimingLine {
    /// The epoch, from 1.
    pub epoch: u32,
    /// The name of a [`Phase`](crate::Phase).
    pub phase: String,
    /// Wall-clock time in seconds.
    pub seconds: f64,
    /// Environment steps, training steps or episodes.
    pub steps: usize,
    /// `steps / seconds`; NaN if that is not finite.
    #[serde(deserialize_with = "nullable")]
    pub steps_per_second: f64,
}

impl TimingLine {
    /// A line for `steps` steps in `seconds` seconds.
    pub fn new(epoch: u32, phase: &str, seconds: f64, steps: usize) -> Self {
        Self {
            epoch,
            phase: phase.into(),
            seconds,
            steps,
            steps_per_second: steps as f64 / seconds,
        }
    }

    /// The line as bytes of the file, with its newline.
    pub fn to_json_line(&self) -> Vec<u8> {
        json_line(self)
    }
}

fn nullable<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

/// Parses the lines of a log, in order. Skips invalid lines: a log that is being written, or of which only a part was
/// read, begins or ends with part of a line.
pub fn parse_lines<T: DeserializeOwned>(log: &[u8]) -> impl Iterator<Item = T> {
    let lines = log.split(|byte| *byte == b'\n');
    lines.filter_map(|line| serde_json::from_slice(line).ok())
}

fn json_line(line: &impl Serialize) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(line).expect("strings and numbers are valid JSON");
    bytes.push(b'\n');
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn metrics_keep_the_order_of_keys() {
        let values = [
            ("z_first", 0.1),
            ("a_second", f64::NAN),
            ("third", f64::INFINITY),
            ("whole", 3.0),
        ];
        assert_eq!(
            text(MetricsLine::scalars(12, "tokenizer", &values).to_json_line()),
            "{\"epoch\":12,\"phase\":\"tokenizer\",\"z_first\":0.1,\"a_second\":null,\"third\":null,\"whole\":3.0}\n"
        );
    }

    #[test]
    fn notes_are_escaped() {
        assert_eq!(
            text(MetricsLine::note(3, "a \"note\"\n").to_json_line()),
            "{\"epoch\":3,\"phase\":\"note\",\"text\":\"a \\\"note\\\"\\n\"}\n"
        );
    }

    #[test]
    fn timing_keys_have_a_fixed_order() {
        assert_eq!(
            text(TimingLine::new(4, "collect", 2.0, 5).to_json_line()),
            "{\"epoch\":4,\"phase\":\"collect\",\"seconds\":2.0,\"steps\":5,\"steps_per_second\":2.5}\n"
        );
    }

    #[test]
    fn lines_parse_back_to_the_last_bit() {
        let line = MetricsLine::scalars(1, "collect", &[("x", 0.1 + 0.2), ("y", -0.0)]);
        let mut log = line.to_json_line();
        log.extend(MetricsLine::note(2, "text").to_json_line());
        let parsed: Vec<MetricsLine> = parse_lines(&log).collect();
        assert_eq!(parsed, [line, MetricsLine::note(2, "text")]);

        let timing = TimingLine::new(1, "collect", 0.3, 7);
        let parsed: Vec<TimingLine> = parse_lines(&timing.to_json_line()).collect();
        assert_eq!(parsed, [timing]);
    }

    #[test]
    fn null_is_read_as_not_a_number() {
        let bytes = MetricsLine::scalars(1, "collect", &[("x", f64::INFINITY)]).to_json_line();
        let parsed: Vec<MetricsLine> = parse_lines(&bytes).collect();
        let MetricsLine::Scalars { values, .. } = &parsed[0] else {
            panic!("{parsed:?}");
        };
        assert!(values[0].1.is_nan());
        let bytes = TimingLine::new(1, "collect", 0.0, 5).to_json_line();
        let parsed: Vec<TimingLine> = parse_lines(&bytes).collect();
        assert!(parsed[0].steps_per_second.is_nan());
    }

    #[test]
    fn partial_lines_are_skipped() {
        let log = b"ase\":\"x\"}\n{\"epoch\":3,\"phase\":\"collect\"}\n{\"epoch\":4";
        let parsed: Vec<MetricsLine> = parse_lines(log).collect();
        assert_eq!(parsed, [MetricsLine::scalars(3, "collect", &[])]);
    }
}
