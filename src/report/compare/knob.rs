//! The differences between normal forms: one [`Knob`] for each place in which they differ.
//!
//! Forms are compared field by field. Where all have the same part or a record, the comparison continues
//! inside. Where the parts differ, their names are one knob, and each field that several of them have is
//! another. A knob describes in a few words what every spec has there, and contains the forms themselves, so
//! that one can be put in another's place. Fields of one record that have equal values in every spec are
//! one knob.

use schemars::JsonSchema;
use serde::Serialize;

use super::form::{Fields, Form, part};
use crate::field::value::{DefaultDoc, Field};
use crate::report::number;
use crate::spec::phase::Phase;
use crate::syntax::tree::{Kind, Node};

/// What a table shows instead of a number that is derived, where another spec gives the same number.
pub const FOLLOWS: &str = "follows";

/// A place in which specs differ.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Knob {
    /// `decoder.attention.kv_heads`, as `--set` takes it; `decoder.attention.bias.{key,value}` for several
    /// fields of a record. If the parts differ, the path of a field does not name them.
    pub path: String,
    /// Whether the knob changes outputs, only training, or only where training starts.
    pub class: Phase,
    /// Whether each value is derived from other fields.
    pub follows: bool,
    /// What each spec has, in the order of the specs; `None` if a spec has no such field.
    pub values: Vec<Option<String>>,
    /// The same with plain numbers, for programs.
    #[serde(skip)]
    pub plain: Vec<Option<String>>,
    /// The place of the field, or of each field if the knob covers several.
    #[serde(skip)]
    pub places: Vec<Occurrence>,
    /// Whether only the part's name is meant, because the fields that the parts share have knobs of their
    /// own.
    #[serde(skip)]
    pub is_part: bool,
}

/// A path, and what each spec has there.
#[derive(Clone, Debug)]
pub struct Occurrence {
    /// The keys on the path from the root, without the names of parts; where blocks differ, the name of one of them.
    pub keys: Vec<String>,
    /// What each spec has there, in the order of the specs.
    pub forms: Vec<Option<Form>>,
}

/// Every place in which the forms differ, in reading order.
pub fn knobs(forms: &[Form]) -> Vec<Knob> {
    let mut found = Vec::new();
    let all: Vec<Option<&Form>> = forms.iter().map(Some).collect();
    differ(&mut Vec::new(), &all, false, &mut found);
    let mut joined: Vec<Knob> = Vec::new();
    // The name is no property of the model.
    for knob in found.into_iter().filter(|knob| knob.path != "name") {
        match joined.iter_mut().find(|old| turns_with(old, &knob)) {
            Some(old) => old.join(knob),
            None => joined.push(knob),
        }
    }
    for knob in &mut joined {
        knob.spell(forms);
    }
    joined
}

/// Whether two knobs are fields of one record (not of a part) with the same values.
fn turns_with(a: &Knob, b: &Knob) -> bool {
    // All fields of a knob are in the same record, so the first one is enough.
    let (Some(x), Some(y)) = (a.places.first(), b.places.first()) else { return false };
    let (Some((_, above)), Some((_, other))) = (x.keys.split_last(), y.keys.split_last()) else {
        return false;
    };
    let in_record = above.last().is_some_and(|key| RECORDS.contains(&key.as_str()));
    in_record && above == other && a.values == b.values && a.class == b.class && a.follows == b.follows
}

/// Records whose fields are the same setting for several places. Elsewhere, two numbers that happen to be
/// equal are still two differences.
const RECORDS: &[&str] = &["bias", "dropout"];

impl Knob {
    fn join(&mut self, other: Knob) {
        self.places.extend(other.places);
    }

    /// Finds the path as it is written in a spec.
    fn spell(&mut self, forms: &[Form]) {
        let one = |keys: &[String]| {
            let mut spelled =
                forms.iter().filter(|form| form.get(keys).is_some()).map(|form| form.spelled(keys));
            let first = spelled.next().unwrap_or_else(|| keys.join("."));
            // If specs spell the path differently, because their parts differ, it is shown without parts.
            if spelled.all(|other| other == first) { first } else { keys.join(".") }
        };
        let Some((last, above)) = self.places.first().and_then(|p| p.keys.split_last()) else { return };
        let siblings = forms.iter().filter_map(|form| form.get(above)?.fields()).map(Fields::len).max();
        self.path = match self.places.as_slice() {
            [only] => one(&only.keys),
            // All fields of the record differ alike, so the record is named.
            all if siblings == Some(all.len()) => one(above),
            all => {
                let fields: Vec<&str> =
                    all.iter().filter_map(|p| p.keys.last()).map(String::as_str).collect();
                let path = one(&[above, std::slice::from_ref(last)].concat());
                let parent = path.strip_suffix(last.as_str()).unwrap_or(&path);
                format!("{parent}{{{}}}", fields.join(","))
            }
        };
    }
}

/// Compares what is at one path. If `some` is set, only some specs have the field's parent, and only those
/// that have the field are compared.
fn differ(keys: &mut Vec<String>, forms: &[Option<&Form>], some: bool, found: &mut Vec<Knob>) {
    let present: Vec<&Form> = forms.iter().flatten().copied().collect();
    let whole = some || present.len() == forms.len();
    let Some(first) = present.first() else { return };
    if whole && present.iter().all(|form| form == first) {
        return;
    }
    let is_record = |form: &&Form| matches!(form, Form::Record(_));
    let name = |form: &&Form| match form {
        Form::Part(name, _) => Some(name.clone()),
        Form::Word { .. } | Form::Record(_) | Form::Each(_) => None,
    };
    if present.iter().all(is_record) {
        if !whole {
            // That only some specs have the field is a knob; the specs that have it may differ too.
            found.push(knob(keys, forms, &[], false));
        }
        within(keys, forms, some || !whole, found);
    } else if whole && present.iter().all(|form| name(form).is_some()) {
        let same = present.iter().all(|form| name(form) == name(first));
        if !same {
            found.push(knob(keys, forms, &shared(forms), true));
        }
        within(keys, forms, some || !same, found);
    } else if whole && are_of_blocks(&present) {
        within(keys, forms, some, found);
    } else {
        found.push(knob(keys, forms, &[], false));
    }
}

/// Whether these are values for the same blocks that are compared block by block: not where they are words that all
/// differ, which are few enough for one line.
fn are_of_blocks(forms: &[&Form]) -> bool {
    let blocks = |form: &&Form| match form {
        Form::Each(values) => Some(values.clone()),
        Form::Word { .. } | Form::Part(..) | Form::Record(_) => None,
    };
    let Some(all) = forms.iter().map(blocks).collect::<Option<Vec<Fields>>>() else { return false };
    let Some((first, others)) = all.split_first() else { return false };
    let are_same =
        others.iter().all(|o| o.len() == first.len() && o.keys().all(|name| first.contains_key(name)));
    let is_word = |form: &Form| matches!(form, Form::Word { .. });
    let are_words = all.iter().flat_map(Fields::values).all(is_word);
    let is_everywhere = |(name, form): (&String, &Form)| others.iter().all(|o| o.get(name) == Some(form));
    are_same && (!are_words || first.iter().any(is_everywhere))
}

/// Compares every field, or every block; if `some` is set, those that several forms have.
fn within(keys: &mut Vec<String>, forms: &[Option<&Form>], some: bool, found: &mut Vec<Knob>) {
    let mut names: Vec<&String> = Vec::new();
    for name in forms.iter().flatten().filter_map(|form| form.inside()).flat_map(Fields::keys) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    for name in names {
        let values: Vec<Option<&Form>> =
            forms.iter().map(|form| form.and_then(|f| f.inside()?.get(name))).collect();
        keys.push(name.clone());
        differ(keys, &values, some, found);
        keys.pop();
    }
}

/// Fields that more than one of the parts has.
fn shared(forms: &[Option<&Form>]) -> Vec<String> {
    let fields = || forms.iter().flatten().filter_map(|form| form.fields());
    let count = |key: &String| fields().filter(|f| f.contains_key(key)).count();
    fields().flat_map(Fields::keys).filter(|key| count(key) > 1).cloned().collect()
}

/// The knob at a path. Of parts, the fields in `elsewhere` are not named.
fn knob(keys: &[String], forms: &[Option<&Form>], elsewhere: &[String], is_part: bool) -> Knob {
    let texts = |numbers: Numbers| -> Vec<Option<String>> {
        let text = |form: &Option<&Form>| form.map(|form| brief(form, elsewhere, numbers));
        lines_that_differ(forms).unwrap_or_else(|| forms.iter().map(text).collect())
    };
    let (mut values, mut plain) = (texts(Numbers::Short), texts(Numbers::Plain));
    let follows = forms.iter().flatten().all(|form| form.follows());
    if values.iter().all(|value| value.is_some() && Some(value) == values.first()) {
        // The texts can be equal although the forms differ: the same number may be written in one spec and
        // derived in another, or numbers may differ only in digits that were rounded off. These are written
        // in full.
        let is_mixed = !follows && forms.iter().flatten().any(|form| form.follows());
        let full = |form: &Form, numbers: Numbers| match form {
            Form::Word { follows: true, .. } if is_mixed => FOLLOWS.to_owned(),
            Form::Word { node, .. } => node.text().map_or_else(|| brief(form, &[], numbers), str::to_owned),
            Form::Part(..) | Form::Record(_) | Form::Each(_) => brief(form, &[], numbers),
        };
        let all = |numbers| forms.iter().map(|form| form.map(|form| full(form, numbers))).collect();
        (values, plain) = (all(Numbers::Short), all(Numbers::Plain));
    }
    Knob {
        path: keys.join("."),
        class: Phase::of(keys),
        follows,
        values,
        plain,
        places: vec![Occurrence {
            keys: keys.to_vec(),
            forms: forms.iter().map(|form| form.cloned()).collect(),
        }],
        is_part,
    }
}

/// Of texts with several lines, such as the equation of a part, the lines that not all of them have; `None` if these are
/// no such texts, or if no line tells one of them from the others.
fn lines_that_differ(forms: &[Option<&Form>]) -> Option<Vec<Option<String>>> {
    let lines = |form: &Form| match form {
        Form::Word { node, .. } => {
            Some(node.text()?.lines().map(|line| line.trim().to_owned()).filter(|l| !l.is_empty()).collect())
        }
        Form::Part(..) | Form::Record(_) | Form::Each(_) => None,
    };
    let texts: Vec<Vec<String>> =
        forms.iter().map(|form| lines((*form)?)).collect::<Option<Vec<Vec<String>>>>()?;
    if texts.iter().any(|text| text.len() < 2) {
        return None;
    }
    let is_everywhere = |line: &String| texts.iter().all(|text| text.contains(line));
    let own = |text: &Vec<String>| {
        let own: Vec<&str> = text.iter().filter(|line| !is_everywhere(line)).map(String::as_str).collect();
        if own.is_empty() { "none".to_owned() } else { own.join("; ") }
    };
    let is_told = texts.iter().flatten().any(|line| !is_everywhere(line));
    is_told.then(|| texts.iter().map(|text| Some(own(text))).collect())
}

/// How numbers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// For people: `50,257`, and four digits of a long fraction.
    Short,
    /// For programs: `50257`, and all digits.
    Plain,
}

/// A value in a few words. Of a part's fields, only those are named that are neither the default nor in
/// `elsewhere`.
pub fn brief(form: &Form, elsewhere: &[String], numbers: Numbers) -> String {
    match form {
        Form::Word { node, .. } => words(node, numbers),
        Form::Part(name, fields) => {
            let known = part(name).map(|p| (p.fields)()).unwrap_or_default();
            let fields_text = fields_text(fields, &known, elsewhere, numbers);
            if fields_text.is_empty() { name.clone() } else { format!("{name}({fields_text})") }
        }
        Form::Record(fields) => match fields.get("layers") {
            // A stack has too many fields for a line.
            Some(layers) => crate::diag::count::counted(brief(layers, &[], numbers), "layer"),
            None => {
                let fields_text = fields_text(fields, &[], elsewhere, numbers);
                format!("{{{fields_text}}}")
            }
        },
        Form::Each(values) => {
            let all: Vec<String> =
                values.iter().map(|(name, form)| format!("{name} {}", brief(form, &[], numbers))).collect();
            all.join(", ")
        }
    }
}

fn fields_text(fields: &Fields, known: &[Field], elsewhere: &[String], numbers: Numbers) -> String {
    let is_default = |key: &str, form: &Form| {
        let Form::Word { node, follows } = form else { return false };
        let default = known.iter().find(|f| f.name == key).map(|f| f.default);
        *follows
            || match default {
                Some(DefaultDoc::Value(default)) => default() == *node,
                Some(DefaultDoc::Absent) => node.text() == Some("none"),
                Some(DefaultDoc::Required | DefaultDoc::Formula(_)) | None => false,
            }
    };
    let shown = fields.iter().filter(|(key, form)| !elsewhere.contains(key) && !is_default(key, form));
    shown.map(|(key, form)| format!("{key} {}", brief(form, &[], numbers))).collect::<Vec<_>>().join(", ")
}

/// A node in one line.
fn words(node: &Node, numbers: Numbers) -> String {
    match &node.kind {
        Kind::Scalar(scalar) => {
            let text = scalar.text.trim();
            match (text.parse::<u64>(), text.parse::<f64>()) {
                (_, Ok(_)) if numbers == Numbers::Plain => text.to_owned(),
                (Ok(n), _) => number::exact(u128::from(n)),
                // Long fractions come from formulas such as `1/sqrt(head_dim)`; four digits are enough for
                // readers.
                (Err(_), Ok(n)) if text.len() > 8 && (1e-4..1e4).contains(&n.abs()) => {
                    let digits = 3i32.saturating_sub(n.abs().log10().floor() as i32);
                    format!("{n:.*}", digits.max(0).unsigned_abs() as usize)
                }
                (Err(_), _) => text.lines().map(str::trim).collect::<Vec<_>>().join("; "),
            }
        }
        // A value without text would make the line look broken.
        Kind::List(items) if items.is_empty() => "none".to_owned(),
        Kind::List(items) => items.iter().map(|item| words(item, numbers)).collect::<Vec<_>>().join(", "),
        Kind::Map(entries) => {
            let one = |e: &crate::syntax::tree::Entry| match e.value.entries() {
                Some([only]) => format!("{}({})", e.key, words(&only.value, numbers)),
                Some(_) => format!("{}({})", e.key, words(&e.value, numbers)),
                None => format!("{} {}", e.key, words(&e.value, numbers)),
            };
            entries.iter().map(one).collect::<Vec<_>>().join(", ")
        }
        Kind::Null | Kind::Delete => "none".to_owned(),
    }
}
