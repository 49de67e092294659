//! Pieces of schemas.

use serde_json::{Value as Json, json};

/// A map with these keys.
pub fn has(keys: &[&str]) -> Json {
    json!({ "required": keys })
}

/// What is not like that.
pub fn not(what: Json) -> Json {
    json!({ "not": what })
}

/// A map whose key, if it has it, has a value like that.
pub fn within(key: &str, what: Json) -> Json {
    json!({ "properties": { key: what } })
}
