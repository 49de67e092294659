//! The files of an export: the config that a family reads, and the tensors that contain a spec's parameters.

use indexmap::IndexMap;
use serde_json::{Map, Value as Json};

use super::arrange::Layout;
use super::export::Exported;
use super::family::{Default, Key};
use super::mapping::{Candidate, Parameters, candidates, holds};
use super::mismatch::Mismatch;
use super::shelf::Families;
use crate::diag::Sink;
use crate::names::Names;
use crate::names::formula::{Scope, same};

impl Exported {
    /// The config as JSON, as Hugging Face's library reads it.
    pub fn config(&self, name: &str) -> Json {
        let mut all = Map::new();
        all.insert("architectures".into(), Json::from(vec![self.architecture.clone()]));
        let model = self.family.models.first().cloned().unwrap_or_default();
        all.insert("model_type".into(), Json::from(model));
        for (key, value) in &self.values {
            // A `null` must be written if the library's own default may be different.
            let is_inner = key.contains('.') || key == "id2label";
            let is_computed =
                self.family.keys.get(key).is_some_and(|k| matches!(k.default, Default::Formula(_)));
            let is_map = self.values.keys().any(|k| k.strip_prefix(key).is_some_and(|k| k.starts_with('.')));
            let is_absent = is_map || value.is_null() && (is_inner || is_computed);
            // The library checks the types of numbers: for it, `4` is not a float.
            let is_float = self.family.keys.get(key).is_some_and(|k| k.real);
            if is_absent {
                continue;
            }
            let value = if is_float { floats(value) } else { value.clone() };
            // Written under both names, so that older and newer versions of the library read the same.
            if let Some(older) = self.older(key) {
                put(&mut all, older, value.clone());
            }
            put(&mut all, key, value);
        }
        // The older name of `dtype`, which newer versions of the library read as well.
        all.insert("torch_dtype".into(), Json::from("float32"));
        all.insert("trafo_name".into(), Json::from(name));
        Json::Object(all)
    }

    /// The name by which an older reader knows a value inside of a map, the first of its aliases:
    /// `rope_theta` for `rope_parameters.rope_theta`.
    fn older(&self, key: &str) -> Option<&str> {
        let first = self.family.keys.get(key).filter(|_| key.contains('.'))?.also.first()?;
        // A map is read instead of the newer one, not next to it, so it has all of its values or is not written.
        first.rsplit_once('.').is_none_or(|(map, _)| self.has_older(map)).then_some(first.as_str())
    }

    /// Whether a map by its older name is written: if it is needed, because it has a value that is not the usual
    /// one, and if it has a place for each value of the map by its newer name.
    fn has_older(&self, map: &str) -> bool {
        let inside = |name: &str, map: &str| name.rsplit_once('.').is_some_and(|(outer, _)| outer == map);
        let is_in_older = |key: &Key| key.also.first().is_some_and(|first| inside(first, map));
        let given = || {
            self.family.keys.iter().filter(|(name, _)| self.values.get(*name).is_some_and(|v| !v.is_null()))
        };
        let mut newer =
            given().filter(|(_, key)| is_in_older(key)).filter_map(|(name, _)| name.rsplit_once('.'));
        let Some((newer, _)) = newer.next() else { return false };
        let all = || given().filter(|(name, _)| inside(name, newer));
        let is_usual = |(name, key): (&String, &Key)| matches!(&key.default, Default::Value(v) if self.values.get(name).is_some_and(|own| same(v, own)));
        // A value outside of the map, such as `rope_theta`, is read next to it.
        let has_place = |(name, key): (&String, &Key)| {
            let last = name.rsplit_once('.').map_or("", |(_, last)| last);
            self.family.keys.contains_key(last)
                || key.also.first().is_some_and(|first| !first.contains('.') || inside(first, map))
        };
        all().all(has_place) && !all().filter(|(_, key)| is_in_older(key)).all(is_usual)
    }

    /// The names of the model's tensors, with the family's prefix unless its class saves the body without
    /// it.
    pub fn names(&self) -> Names {
        let bare = self.family.heads.get(&self.head).is_some_and(|h| h.bare);
        self.family.tensor_names(&self.head, !bare)
    }
}

/// The keys of a config that an export never takes from the imported config.
const OWN: &[&str] = &["architectures", "model_type", "torch_dtype", "dtype", "trafo_name"];

/// Adds keys of `own`, the config that was imported, to the config of an export: the names of classes, the
/// ids of special tokens, settings for running the model. A key is added only if the config with it still
/// gives the same spec, and names of classes only if the number of classes is the same.
pub fn keep(config: &mut Json, own: &Json, families: &Families) {
    let (Json::Object(all), Json::Object(own)) = (&*config, own) else { return };
    // `id2label` and `label2id` both name the classes, whose number may have changed.
    let classes = own.get("id2label").and_then(Json::as_object).map(|labels| labels.len() as u64);
    let are_others =
        all.get("num_labels").and_then(Json::as_u64).zip(classes).is_some_and(|(n, own)| n != own);
    let is_new = |key: &str| {
        let is_free = all.get(key).is_none_or(Json::is_null);
        is_free && !OWN.contains(&key) && !(are_others && matches!(key, "id2label" | "label2id"))
    };
    let more: Vec<(&String, &Json)> =
        own.iter().filter(|(key, value)| is_new(key) && !value.is_null()).collect();
    let wanted = text_of(all, families);
    let with = |config: &Map<String, Json>, more: &[(&String, &Json)]| -> Map<String, Json> {
        let more = more.iter().map(|(key, value)| ((*key).clone(), (*value).clone()));
        // Later keys replace earlier ones, so a `null` of the export is filled.
        config.clone().into_iter().chain(more).collect()
    };
    // Each attempt imports a config, so all keys are first tried together.
    let mut kept = with(all, &more);
    // One of them changes the model, so each is tried by itself.
    if text_of(&kept, families) != wanted {
        kept = all.clone();
        for one in more {
            let tried = with(&kept, &[one]);
            if text_of(&tried, families) == wanted {
                kept = tried;
            }
        }
    }
    *config = Json::Object(kept);
}

/// The text of the spec that a config gives.
fn text_of(config: &Map<String, Json>, families: &Families) -> Option<String> {
    let mut sources = crate::spec::load::sources();
    let id = sources.add("config.json", serde_json::to_string(config).ok()?);
    super::import(families, "model", id, &mut sources, &mut Sink::new()).map(|imported| imported.text)
}

/// A number, or a list of numbers, with a decimal point.
fn floats(value: &Json) -> Json {
    match value {
        Json::Array(items) => items.iter().map(floats).collect(),
        other => {
            let float = other.as_f64().and_then(serde_json::Number::from_f64);
            float.map_or_else(|| other.clone(), Json::Number)
        }
    }
}

fn put(map: &mut Map<String, Json>, key: &str, value: Json) {
    match key.split_once('.') {
        None => {
            map.insert(key.to_owned(), value);
        }
        Some((group, rest)) => {
            let inner = map.entry(group).or_insert_with(|| Json::Object(Map::new()));
            if let Json::Object(inner) = inner {
                put(inner, rest, value);
            }
        }
    }
}

/// A tensor that is written: its shape, and the parameters in it.
#[derive(Clone, Debug)]
pub struct Written {
    /// The length of each axis in the file, outermost first.
    pub shape: Vec<usize>,
    /// The parameters in it, each with its rows and columns.
    pub parts: Vec<Part>,
    /// The number of what no parameter fills.
    pub rest: f32,
}

/// A parameter, or a row of one, in a tensor that is written.
#[derive(Clone, Debug)]
pub struct Part {
    /// The path of the parameter.
    pub path: String,
    /// Which rows and columns of the tensor are the parameter's.
    pub layout: Layout,
    /// How many of the parameter's numbers are in the tensors before this one, if it has several.
    pub before: usize,
}

impl Part {
    /// Puts this part of the parameter's numbers into the tensor's; `false` if the sizes do not fit.
    pub fn put(&self, numbers: &[f32], tensor: &mut [f32]) -> bool {
        let own = numbers.get(self.before..).and_then(|rest| rest.get(..self.count()));
        own.is_some_and(|own| self.layout.put(own, tensor))
    }

    /// How many numbers this part has.
    pub fn count(&self) -> usize {
        let rows = self.layout.parts.get(self.layout.which).copied().unwrap_or(0);
        rows.saturating_mul(self.layout.columns)
    }
}

/// The tensors of a file with all parameters under these names.
///
/// # Errors
/// A parameter has no name in the family.
pub fn tensors(
    parameters: &Parameters,
    names: &Names,
    scope: &dyn Scope,
) -> Result<IndexMap<String, Written>, Vec<Mismatch>> {
    let mut all: IndexMap<String, Written> = IndexMap::new();
    let mut mismatches = Vec::new();
    for (path, shape) in parameters {
        match candidates(path, shape, names, parameters, scope) {
            // The first candidate is the name that the newest version of the library writes.
            Ok(found) => match found.into_iter().next() {
                // Only rows of length 1 can be divided again: how long each of several longer ones was is
                // not known.
                Some(Candidate { joined: Some((pattern, variable)), row: Some(row), layout, .. }) => {
                    for index in 0..shape.first().copied().unwrap_or(0) {
                        let tensor = pattern.fill(&vec![(variable.clone(), index)]);
                        let before = index.saturating_mul(layout.columns);
                        let layout = Layout::whole(1, layout.columns);
                        let parts = vec![Part { path: path.clone(), layout, before }];
                        all.insert(tensor, Written { shape: row.clone(), parts, rest: 0.0 });
                    }
                }
                Some(c) => {
                    let new = Written { shape: c.shape, parts: Vec::new(), rest: 0.0 };
                    let tensor = all.entry(c.tensor).or_insert(new);
                    tensor.parts.push(Part { path: path.clone(), layout: c.layout, before: 0 });
                }
                None => {
                    mismatches.push(Mismatch::one("missing", format!("{path} has no name in this family")));
                }
            },
            Err(mismatch) => mismatches.push(mismatch),
        }
    }
    // A parameter of the library's class that it does not use: it has the numbers of the one that it uses, and
    // without it the library would report that it is missing.
    for row in names.ties.iter().filter(|row| holds(row, scope)) {
        for (path, shape) in parameters {
            let Some((bindings, last)) = row.parameters.first().and_then(|own| own.matches(path)) else {
                continue;
            };
            let tensor = row.tensor.fill(&bindings) + last;
            if all.contains_key(&tensor) || !names.ignore.iter().any(|own| own.matches(&tensor).is_some()) {
                continue;
            }
            let rows = shape.first().copied().unwrap_or(1);
            let layout = Layout::whole(rows, shape.iter().skip(1).product());
            let parts = vec![Part { path: path.clone(), layout, before: 0 }];
            all.insert(tensor, Written { shape: shape.clone(), parts, rest: 0.0 });
        }
    }
    for own in &names.constants {
        for tensor in parameters.keys().filter_map(|path| own.beside(path)) {
            all.insert(tensor, Written { shape: Vec::new(), parts: Vec::new(), rest: own.value });
        }
    }
    if mismatches.is_empty() { Ok(all) } else { Err(mismatches) }
}
