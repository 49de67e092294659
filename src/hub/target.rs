//! The target that Hugging Face's library derives from the source if none is given: the source shifted by
//! one position, after a first token (BART) or after its own last token (mBART). The result is read at the
//! position of the source's last end token.

use serde_json::Value as Json;

/// How a target is derived from a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The first token; `None` if it is the source's last token that is not padding.
    pub begin: Option<i64>,
    /// The token of the source at whose position the result is read.
    pub end: i64,
    /// The padding token of the source, whose positions at the end are not read; `None` if the config has
    /// none.
    pub padding: Option<i64>,
}

impl Target {
    /// The target of a source, and a mask of the same length: 1 up to the position at which the result is
    /// read.
    pub fn of(&self, source: &[i64]) -> (Vec<i64>, Vec<i64>) {
        let end = source.iter().rposition(|id| *id == self.end);
        let last = source.iter().rposition(|id| Some(*id) != self.padding);
        let own = last.and_then(|last| source.get(last)).copied().unwrap_or(self.end);
        let begin = self.begin.unwrap_or(own);
        // Shifted by one position, so the source's last token has no place in the target.
        let target = std::iter::once(begin).chain(source.iter().copied()).take(source.len()).collect();
        let read = end.or(last).unwrap_or(source.len());
        (target, (0..source.len()).map(|at| i64::from(at <= read)).collect())
    }

    /// Adds the target and its mask to inputs by name, for every row of `source`, unless a target is given.
    pub fn completed(&self, mut inputs: Json) -> Json {
        let ids = |row: &Json| row.as_array()?.iter().map(Json::as_i64).collect::<Option<Vec<i64>>>();
        let rows = inputs.get("source").and_then(Json::as_array);
        let rows: Option<Vec<Vec<i64>>> = rows.and_then(|rows| rows.iter().map(ids).collect());
        if let (Some(rows), Some(all)) = (rows, inputs.as_object_mut())
            && !all.contains_key("target")
        {
            let (target, mask): (Vec<_>, Vec<_>) = rows.iter().map(|row| self.of(row)).unzip();
            all.insert("target".to_owned(), Json::from(target));
            // A mask that the user gives is kept.
            all.entry("mask").or_insert(Json::from(mask));
        }
        inputs
    }
}
