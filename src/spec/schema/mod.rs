//! The JSON schema of a spec (draft-07, the newest version that YAML editors support), generated from the
//! field tables.
//!
//! The schema accepts everything that the decoder accepts, including short forms; its descriptions are the
//! documentation of the fields. It says what a schema can: shapes and the patterns of `texts`, the `rules` of
//! the tables, and the `conditions` between parts of a spec. Names that an author chooses and arithmetic
//! beyond small numbers are left, so a spec that it accepts may still fail `trafoc check`.

mod conditions;
mod definitions;
mod pieces;
mod rules;
mod texts;

use serde_json::Value as Json;

use super::model;
use crate::field::value::Field;
use definitions::Definitions;

/// The schema of a whole spec.
pub fn schema() -> Json {
    let mut definitions = Definitions::default();
    let mut root = definitions.record("spec", &model::fields());
    // A spec that extends another one does not have to repeat required keys; the conditions say which has to.
    root.remove("required");
    root.insert("allOf".to_owned(), Json::Array(conditions::conditions(&mut definitions)));
    if let Some(Json::Object(properties)) = root.get_mut("properties") {
        conditions::narrow(properties);
    }
    // `texts::tensors` refers to this definition by its name.
    definitions.shared("tensor", |_| texts::tensor());
    definitions.finish("spec", "A transformer, as trafoc compiles it.", root)
}

/// The schema of a document with these fields, which extends no other.
pub fn document(title: &str, doc: &str, fields: &[Field]) -> Json {
    let mut definitions = Definitions::default();
    let mut root = definitions.record(title, fields);
    let scopes = [rules::Scope::Given, rules::Scope::Whole];
    let rules: Vec<Json> =
        scopes.into_iter().filter_map(|scope| definitions.record_rules(fields, scope)).collect();
    root.insert("allOf".to_owned(), Json::Array(rules));
    definitions.finish(title, doc, root)
}
