//! The logs of a run by column: what charts draw. A tenth of the size of the lines in `metrics.jsonl`.

use rem_run::{MetricsLine, TimingLine};
use serde::{Serialize, Serializer};

/// Values by phase and name, in the order in which the log has them.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(crate) struct Columns(#[serde(serialize_with = "as_map")] Vec<(String, PhaseColumns)>);

/// The values of one phase. All columns have the same length.
#[derive(Debug, Default, PartialEq, Serialize)]
struct PhaseColumns {
    epoch: Vec<u32>,
    /// NaN, which is `null` in JSON, where a line has no such value. Single precision is more than a chart shows.
    #[serde(serialize_with = "as_map")]
    values: Vec<(String, Vec<f32>)>,
}

/// A note of `metrics.jsonl`.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Note {
    epoch: u32,
    text: String,
}

impl Columns {
    /// The columns of some lines of `metrics.jsonl`, and their notes.
    pub fn of_metrics(lines: Vec<MetricsLine>) -> (Self, Vec<Note>) {
        let (mut columns, mut notes) = (Self::default(), Vec::new());
        for line in lines {
            match line {
                MetricsLine::Scalars {
                    epoch,
                    phase,
                    values,
                } => columns.push(&phase, epoch, &values),
                MetricsLine::Note { epoch, text } => notes.push(Note { epoch, text }),
            }
        }
        (columns, notes)
    }

    /// The seconds of each phase, from some lines of `timing.jsonl`.
    pub fn of_timing(lines: &[TimingLine]) -> Self {
        let mut columns = Self::default();
        for line in lines {
            columns.push(&line.phase, line.epoch, &[("seconds".into(), line.seconds)]);
        }
        columns
    }

    fn push(&mut self, phase: &str, epoch: u32, values: &[(String, f64)]) {
        let phase = entry(&mut self.0, phase, PhaseColumns::default);
        let rows = phase.epoch.len();
        phase.epoch.push(epoch);
        for (name, value) in values {
            let column = entry(&mut phase.values, name, || vec![f32::NAN; rows]);
            // A line may repeat a key.
            column.resize(rows, f32::NAN);
            column.push(*value as f32);
        }
        for (_, column) in &mut phase.values {
            column.resize(rows + 1, f32::NAN);
        }
    }
}

/// The value of a key in a short list.
fn entry<'a, T>(list: &'a mut Vec<(String, T)>, key: &str, new: impl Fn() -> T) -> &'a mut T {
    let found = list.iter().position(|(k, _)| k == key);
    let index = found.unwrap_or_else(|| {
        list.push((key.to_owned(), new()));
        list.len() - 1
    });
    &mut list[index].1
}

fn as_map<T: Serialize, S: Serializer>(
    list: &[(String, T)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(list.iter().map(|(key, value)| (key, value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_a_phase_have_the_same_length() {
        let line =
            |epoch, phase: &str, values: &[(&str, f64)]| MetricsLine::scalars(epoch, phase, values);
        let (columns, notes) = Columns::of_metrics(vec![
            line(1, "collect", &[("steps", 10.0)]),
            line(1, "tokenizer", &[("loss", f64::INFINITY)]),
            MetricsLine::note(2, "repeated"),
            line(2, "collect", &[("steps", 20.0), ("mean_return", 0.1 + 0.2)]),
            line(3, "collect", &[("mean_return", -1.0), ("mean_return", 7.0)]),
        ]);
        assert_eq!(
            serde_json::to_string(&columns).unwrap(),
            r#"{"collect":{"epoch":[1,2,3],"values":{"steps":[10.0,20.0,null],"mean_return":[null,0.3,7.0]}},"#
                .to_owned()
                + r#""tokenizer":{"epoch":[1],"values":{"loss":[null]}}}"#
        );
        assert_eq!(
            notes,
            [Note {
                epoch: 2,
                text: "repeated".into()
            }]
        );
    }

    #[test]
    fn timing_has_the_seconds_of_each_phase() {
        let lines = [1, 2].map(|epoch| TimingLine::new(epoch, "collect", 0.5, 3));
        assert_eq!(
            serde_json::to_string(&Columns::of_timing(&lines)).unwrap(),
            r#"{"collect":{"epoch":[1,2],"values":{"seconds":[0.5,0.5]}}}"#
        );
    }
}
