//! Configs as differences to a common one, so that a manifest says what varies.

use toml::{Table, Value};

/// In a table of variants: the name of the variant.
const TYPE: &str = "type";

/// What `table` has other than `common`. A table of another variant is there as a whole.
pub(crate) fn difference(common: &Table, table: &Table) -> Table {
    let mut found = Table::new();
    for (key, value) in table {
        match (common.get(key), value) {
            (Some(same), value) if same == value => {}
            (Some(Value::Table(common)), Value::Table(table))
                if common.get(TYPE) == table.get(TYPE) =>
            {
                found.insert(key.clone(), Value::Table(difference(common, table)));
            }
            _ => {
                found.insert(key.clone(), value.clone());
            }
        }
    }
    found
}

/// The inverse of [`difference`].
pub(crate) fn merged(common: &Table, difference: &Table) -> Table {
    let mut table = common.clone();
    for (key, value) in difference {
        let value = match (table.get(key), value) {
            (Some(Value::Table(common)), Value::Table(difference))
                if difference
                    .get(TYPE)
                    .is_none_or(|t| common.get(TYPE) == Some(t)) =>
            {
                Value::Table(merged(common, difference))
            }
            _ => value.clone(),
        };
        table.insert(key.clone(), value);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use rem::config::{Config, PRESETS};

    fn table(preset: &str) -> Table {
        let config = Config::load(preset, &[]).unwrap();
        config.to_toml().parse().unwrap()
    }

    /// Presets differ in values and in variants, in both directions.
    #[test]
    fn merging_a_difference_gives_the_table_for_every_pair_of_presets() {
        for (common, _) in PRESETS {
            for (other, _) in PRESETS {
                let (common, other) = (table(common), table(other));
                let found = difference(&common, &other);
                assert_eq!(merged(&common, &found), other, "{found}");
                assert_eq!(found.is_empty(), common == other);
            }
        }
    }

    #[test]
    fn a_difference_has_only_what_differs() {
        let common: Table = "a = 1\nb = { type = \"x\", c = 2, d = 3 }\n"
            .parse()
            .unwrap();
        let same: Table = "a = 1\nb = { type = \"x\", c = 2, d = 4 }\n"
            .parse()
            .unwrap();
        assert_eq!(
            difference(&common, &same),
            "b = { d = 4 }\n".parse().unwrap()
        );
        let other: Table = "a = 1\nb = { type = \"y\", d = 3 }\n".parse().unwrap();
        let expected: Table = "b = { type = \"y\", d = 3 }\n".parse().unwrap();
        assert_eq!(difference(&common, &other), expected);
    }
}
