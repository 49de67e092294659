//! Finds the tensor of a file that each parameter of a graph is read from, and reports what does not fit.
//! Only names, shapes and element types are compared; no numbers are read.

use indexmap::{IndexMap, IndexSet};
use schemars::JsonSchema;
use serde::Serialize;

use super::arrange::Layout;
use super::mismatch::{Fault, Mismatch, Unlike, unlike};
use crate::diag::count::counted;
use crate::diag::paths::{self, most_path_hints, nearest_paths};
use crate::ir::Graph;
use crate::ir::paths::expanded;
use crate::names::formula::{Scope, eval};
use crate::names::{Bindings, Names, Pattern, Row};
use crate::tensor_file::is_float;

/// The shape of every parameter by its path, in the order in which files list them.
pub type Parameters = IndexMap<String, Vec<usize>>;

/// The path and shape of every parameter of a graph.
///
/// # Errors
/// There are more parameters than a file may have, or a size does not fit into a `usize`. The error is one
/// sentence without a full stop.
pub fn parameters(graph: &Graph) -> Result<Parameters, String> {
    let shape =
        |shape: &[u64]| shape.iter().map(|n| usize::try_from(*n).ok()).collect::<Option<Vec<usize>>>();
    let all = expanded(graph).map_err(|e| e.to_string())?;
    let all = all.into_iter().map(|(path, p)| Some((path, shape(&p.shape)?))).collect::<Option<_>>();
    all.ok_or_else(|| "the model is too large for any memory".to_owned())
}

/// The tensors that a file declares.
pub trait Header {
    /// The names of all tensors, in the order of the file.
    fn names(&self) -> Vec<&str>;
    /// The element type of a tensor as the file spells it, and its shape. `None` if there is no such tensor.
    fn tensor(&self, name: &str) -> Option<(&str, &[usize])>;
}

impl Header for super::checkpoint::Checkpoint {
    fn names(&self) -> Vec<&str> {
        self.names().collect()
    }
    fn tensor(&self, name: &str) -> Option<(&str, &[usize])> {
        self.entry(name).map(|e| (e.dtype.as_str(), e.shape.as_slice()))
    }
}

/// A tensor that a parameter may be read from, whether or not the file has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The name in the file, such as `h.0.attn.c_attn.weight`.
    pub tensor: String,
    /// The shape that the tensor should have.
    pub shape: Vec<usize>,
    /// Which rows and columns of the tensor are the parameter's.
    pub layout: Layout,
    /// The number that fills the parameter if the file does not have the tensor.
    pub absent: Option<f32>,
    /// For a parameter that is concatenated from several tensors, numbered from 0, along its first axis: the
    /// pattern of their names, and the variable in it that is the number.
    pub joined: Option<(Pattern, String)>,
    /// The shape of each of these tensors, if each is a single row of the parameter.
    pub row: Option<Vec<usize>>,
}

/// The source of a parameter's numbers.
#[derive(Clone, Debug, PartialEq)]
pub enum Origin {
    /// A tensor by name, and which of its rows and columns are the parameter's.
    Tensor(String, Layout),
    /// Several tensors, concatenated along the first axis.
    Joined(Vec<(String, Layout)>),
    /// The same number for every element, because no tensor of the file has the parameter.
    Constant(f32),
}

/// One tensor of the file, or several that differ in their indices alone.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, JsonSchema)]
pub struct TensorGroup {
    /// The name, `*` where it has an index.
    pub tensor: String,
    /// How many tensors of the file there are, 1 or more.
    pub count: usize,
    /// The element type as the file spells it: `F32`, `BF16`.
    pub dtype: String,
    /// The length of each axis.
    pub shape: Vec<usize>,
    /// The paths of its parameters, with `*` for indices; empty if it is not read.
    pub parameters: Vec<String>,
    /// How it becomes the parameters: `transposed`, `split in 3, 12 groups`; empty if it is read as it is.
    pub how: String,
}

/// The result of [`map`].
#[derive(Clone, Debug, Default)]
pub struct Mapping {
    /// The source of every parameter, by path. Parameters that are missing from the file are not in it.
    pub origins: IndexMap<String, Origin>,
    /// Tensors that are copies of a parameter, with its path. Their numbers must be equal to it.
    pub repeats: Vec<(String, String)>,
    /// Buffers that must hold this number.
    pub constants: Vec<(String, f32)>,
    /// The tensors of the file and the parameters they are read into, to be printed.
    pub tensors: Vec<TensorGroup>,
    /// Everything that does not fit, without repetition.
    pub mismatches: IndexSet<Mismatch>,
    /// The tensors that do not fit, of which mismatches are made at the end.
    unlike: Vec<Unlike>,
    /// The paths of parameters whose tensors do not fit: of another shape, or not of floats.
    pub unfit: IndexSet<String>,
}

/// All tensors that a parameter may be read from. The first one is the one that an export writes.
pub fn candidates(
    path: &str,
    shape: &[usize],
    names: &Names,
    parameters: &Parameters,
    scope: &dyn Scope,
) -> Result<Vec<Candidate>, Mismatch> {
    let mut found = Vec::new();
    for row in &names.rows {
        for (which, pattern) in row.parameters.iter().enumerate() {
            let Some((bindings, last)) = pattern.matches(path) else { continue };
            if !holds(row, scope) {
                continue;
            }
            found.push(candidate(row, which, &bindings, last, shape, parameters, scope)?);
        }
    }
    for (end, older) in &names.older {
        let renamed = found.iter().filter_map(|c| {
            let tensor = c.tensor.strip_suffix(end.as_str())?.to_owned() + older;
            Some(Candidate { tensor, ..c.clone() })
        });
        // Collected first, because it borrows what it is added to. After all newer names, which an export
        // writes.
        let renamed: Vec<Candidate> = renamed.collect();
        found.extend(renamed);
    }
    // Last, so that a row for a parameter comes before the path that all have.
    if let Some(prefix) = &names.paths {
        let (rows, rest) = shape.split_first().unwrap_or((&1, &[]));
        let layout = Layout::whole(*rows, rest.iter().product());
        found.push(Candidate {
            tensor: format!("{prefix}{path}"),
            shape: shape.to_vec(),
            layout,
            absent: None,
            joined: None,
            row: None,
        });
    }
    Ok(found)
}

/// Whether a row's condition holds, if it has one.
pub(super) fn holds(row: &Row, scope: &dyn Scope) -> bool {
    row.when.as_ref().is_none_or(|w| eval(w, scope).ok() == Some(serde_json::Value::Bool(true)))
}

fn candidate(
    row: &Row,
    which: usize,
    bindings: &Bindings,
    last: &str,
    shape: &[usize],
    parameters: &Parameters,
    scope: &dyn Scope,
) -> Result<Candidate, Mismatch> {
    // `last` is `.weight`, `.bias`, or empty if the row's pattern matches the whole path.
    // If several tensors are joined, messages name the first.
    let first = row.join.iter().map(|name| (name.clone(), 0)).chain(bindings.iter().cloned()).collect();
    let tensor = row.tensor.fill(&first) + last;
    let joined = row.join.as_ref().map(|name| (row.tensor.bound(bindings).followed(last), name.clone()));
    let mismatch = |message: String| Mismatch::one("layout", message);
    let (rows, rest) = shape.split_first().unwrap_or((&1, &[]));
    let columns: usize = rest.iter().product();
    let mut parts = Vec::new();
    for (i, pattern) in row.parameters.iter().enumerate() {
        let sibling = pattern.fill(bindings) + last;
        match parameters.get(&sibling) {
            _ if i == which => parts.push(*rows),
            // A scalar counts as one row.
            Some(shape) => parts.push(shape.first().copied().unwrap_or(1)),
            None => {
                return Err(mismatch(format!("`{tensor}` holds {sibling}, which the model does not have")));
            }
        }
    }
    let groups = match &row.groups {
        Some(formula) => {
            let value =
                eval(formula, scope).ok().and_then(|v| v.as_u64()).and_then(|n| usize::try_from(n).ok());
            value.filter(|n| *n > 0).ok_or_else(|| mismatch(format!("`{tensor}` has no number of groups")))?
        }
        None => 1,
    };
    let stack = match &row.stack {
        Some(variable) => {
            let index = bindings.iter().find(|(n, _)| n == variable).map_or(0, |(_, i)| *i);
            let of = |n: usize| -> Bindings {
                let other = bindings.iter().filter(|(name, _)| name != variable).cloned();
                other.chain([(variable.clone(), n)]).collect()
            };
            let exists = |n: &usize| {
                let path = row.parameters.get(which).map(|p| p.fill(&of(*n)) + last);
                path.is_some_and(|path| parameters.contains_key(&path))
            };
            // Experts are numbered without gaps, so their count is the first number that does not exist. It
            // is found by doubling the step and then halving it.
            let mut last = index;
            let mut step = 1usize;
            while exists(&last.saturating_add(step)) {
                last = last.saturating_add(step);
                step = step.saturating_mul(2);
            }
            while step > 0 {
                if exists(&last.saturating_add(step)) {
                    last = last.saturating_add(step);
                } else {
                    step /= 2;
                }
            }
            Some((last.saturating_add(1), index))
        }
        None => None,
    };
    let layout =
        // A row is for a weight and its bias together, and a bias has nothing to transpose.
        Layout { stack, parts, which, groups, columns, transpose: row.transpose && shape.len() == 2 };
    if let Some(why) = layout.fault() {
        return Err(mismatch(format!("`{tensor}`: {why}")));
    }
    let rows = layout.rows().ok_or_else(|| mismatch(format!("`{tensor}` is too large")))?;
    let mut sizes = vec![1; row.lead];
    sizes.extend(layout.stack.map(|(count, _)| count));
    let rest: Vec<usize> = rest.iter().copied().filter(|n| !row.flat || *n != 1).collect();
    if layout.transpose {
        sizes.extend([columns, rows]);
    } else {
        sizes.push(rows);
        sizes.extend(&rest);
    }
    let of_row = row.flat.then_some(rest).filter(|_| joined.is_some());
    Ok(Candidate { tensor, shape: sizes, layout, absent: row.absent, joined, row: of_row })
}

/// Maps every parameter of a graph to tensors of a file, or to a number if it may be absent.
pub fn map(parameters: &Parameters, names: &Names, scope: &dyn Scope, header: &dyn Header) -> Mapping {
    // Conditions are evaluated once, and not again for every tensor.
    let mut names = names.clone();
    names.ties.retain(|row| holds(row, scope));
    let names = &names;
    let mut mapping = Mapping::default();
    let mut taken: IndexMap<String, Vec<(String, Layout)>> = IndexMap::new();
    let mut missing: Vec<(String, Vec<usize>, Option<String>)> = Vec::new();
    for (path, shape) in parameters {
        let all = match candidates(path, shape, names, parameters, scope) {
            Ok(all) => all,
            Err(mismatch) => {
                mapping.mismatches.insert(mismatch);
                continue;
            }
        };
        // Several names are usual: older versions of the library wrote other names for the same tensor.
        let mut there = all.iter().filter(|c| header.tensor(&c.tensor).is_some());
        let Some(chosen) = there.next() else {
            match tied(path, names, header) {
                Some(tensor) => {
                    let (rows, rest) = shape.split_first().unwrap_or((&1, &[]));
                    let layout = Layout::whole(*rows, rest.iter().product());
                    check(&mut mapping, &tensor, shape, path, header);
                    taken.entry(tensor.clone()).or_default().push((path.clone(), layout.clone()));
                    mapping.origins.insert(path.clone(), Origin::Tensor(tensor, layout));
                }
                // A constant is the last resort: a copy in the file has trained numbers.
                None => match all.iter().find_map(|c| c.absent) {
                    Some(value) => {
                        mapping.origins.insert(path.clone(), Origin::Constant(value));
                    }
                    // The first name is the one that an export would write, so the message says it.
                    None => {
                        missing.push((path.clone(), shape.clone(), all.first().map(|c| c.tensor.clone())))
                    }
                },
            }
            continue;
        };
        if let Some((pattern, variable)) = &chosen.joined {
            let parts = parts(&mut mapping, chosen, (pattern, variable), shape, path, header);
            for (tensor, layout) in &parts {
                taken.entry(tensor.clone()).or_default().push((path.clone(), layout.clone()));
            }
            mapping.origins.insert(path.clone(), Origin::Joined(parts));
            continue;
        }
        check(&mut mapping, &chosen.tensor, &chosen.shape, path, header);
        taken.entry(chosen.tensor.clone()).or_default().push((path.clone(), chosen.layout.clone()));
        mapping.origins.insert(path.clone(), Origin::Tensor(chosen.tensor.clone(), chosen.layout.clone()));
        // A file may have a parameter under several of its names. Only one is read, so they must agree.
        for other in there {
            // Fused tensors are not compared, because the other one may contain other parameters, too.
            if other.layout.is_whole() && chosen.layout.is_whole() && other.tensor != chosen.tensor {
                mapping.repeats.push((other.tensor.clone(), path.clone()));
            }
        }
    }
    let used: IndexSet<&str> = mapping.repeats.iter().map(|(t, _)| t.as_str()).collect();
    let left: Vec<&str> =
        header.names().into_iter().filter(|n| !taken.contains_key(*n) && !used.contains(n)).collect();
    let mut ignored = Vec::new();
    let mut repeats = Vec::new();
    let mut extra = Vec::new();
    for name in left {
        if names.ignore.iter().any(|p| p.matches(name).is_some()) {
            ignored.push(name.to_owned());
        } else if let Some(value) = constant(name, names, parameters) {
            check(&mut mapping, name, &[], name, header);
            mapping.constants.push((name.to_owned(), value));
            ignored.push(name.to_owned());
        // A tied head is often saved next to the embedding. It may be there, but must have the same
        // numbers.
        } else if let Some(path) = repeated(name, names, parameters) {
            repeats.push((name.to_owned(), path));
        } else {
            extra.push(name.to_owned());
        }
    }
    mapping.repeats.extend(repeats);
    mapping.mismatches.extend(unlike(&mapping.unlike));
    let is_missing = |(path, shape, wanted): &'_ (String, Vec<usize>, Option<String>)| {
        let wanted = wanted.as_ref().filter(|w| *w != path);
        (shape.clone(), wanted.map(|w| paths::folded(w)))
    };
    let wanted: IndexMap<&str, &str> =
        missing.iter().filter_map(|(path, _, wanted)| Some((path.as_str(), wanted.as_deref()?))).collect();
    let groups = paths::groups(missing.iter().map(|one| (one.0.as_str(), is_missing(one))));
    for (i, group) in groups.iter().enumerate() {
        let (shape, other) = &group.key;
        let wanted = other.as_ref().and_then(|_| wanted.get(group.first()));
        let wanted = wanted.map_or(String::new(), |w| format!(" (`{}`)", group.of(w)));
        let mut message = format!("{} {shape:?}{wanted} is missing{}", group.name(), group.times());
        // A hint compares the name with every other one, so only the first missing parameters get one.
        if i < most_path_hints(extra.len())
            && let Some(like) = nearest_paths(group.first(), extra.iter().map(String::as_str), 1).first()
        {
            message += &format!("; the file has `{}`", group.of(like));
        }
        mapping.mismatches.insert(Mismatch { kind: "missing", message, count: group.paths.len() });
    }
    // The first missing parameter of each shape, to suggest it for an unknown tensor of that shape: of the same layer and kind, if
    // there is one.
    let mut likes: IndexMap<Likeness<'_>, &str> = IndexMap::new();
    for (path, shape, _) in &missing {
        for likeness in likenesses(path, shape) {
            likes.entry(likeness).or_insert(path);
        }
    }
    let shape = |name: &'_ str| header.tensor(name).map(|(_, s)| s.to_vec()).unwrap_or_default();
    for group in paths::groups(extra.iter().map(|name| (name.as_str(), shape(name)))) {
        let (name, shape) = (group.first(), &group.key);
        let mut message =
            format!("`{}` {shape:?} is no parameter of the model{}", group.name(), group.times());
        if let Some(like) = likenesses(name, shape).iter().find_map(|likeness| likes.get(likeness)) {
            message += &format!("; {}, which is missing, has that shape", group.of(like));
        }
        mapping.mismatches.insert(Mismatch { kind: "extra", message, count: group.paths.len() });
    }
    mapping.tensors = lines(header, &mapping.origins, &taken, &mapping.repeats, &ignored);
    mapping
}

/// What two tensors have in common: the shape, the last word of the name and the numbers in it.
type Likeness<'n> = (&'n [usize], Option<&'n str>, Vec<&'n str>);

/// In what a tensor may be like another one, the most first.
fn likenesses<'n>(name: &'n str, shape: &'n [usize]) -> [Likeness<'n>; 3] {
    let words = || name.split('.');
    let last = words().next_back();
    let numbers = words().filter(|word| word.bytes().all(|b| b.is_ascii_digit())).collect();
    [(shape, last, numbers), (shape, last, Vec::new()), (shape, None, Vec::new())]
}

/// The tensors that a parameter is concatenated from: all those in the file, numbered from 0 without gaps.
/// Reports a mismatch if their rows do not add up to those of the parameter.
fn parts(
    mapping: &mut Mapping,
    chosen: &Candidate,
    (pattern, variable): (&Pattern, &str),
    shape: &[usize],
    path: &str,
    header: &dyn Header,
) -> Vec<(String, Layout)> {
    let transpose = chosen.layout.transpose;
    let (rows, rest) = shape.split_first().unwrap_or((&1, &[]));
    let mut parts = Vec::new();
    let mut total = 0usize;
    // Each tensor has a row at least, so there are at most as many as rows.
    for index in 0..*rows {
        let tensor = pattern.fill(&vec![(variable.to_owned(), index)]);
        // The first gap ends them: a number after it is left over and reported as an unknown tensor.
        let Some((_, found)) = header.tensor(&tensor) else { break };
        if let Some(row) = &chosen.row {
            check(mapping, &tensor, row, path, header);
            total = total.saturating_add(1);
            parts.push((tensor, Layout::whole(1, rest.iter().product())));
            continue;
        }
        // In a transposed file the rows of the parameter are the last axis.
        let own = if transpose { found.last() } else { found.first() }.copied().unwrap_or(0);
        // The length of the axis that is joined may be any; only the others must fit.
        let mut wanted = vec![own];
        wanted.extend(rest);
        if transpose {
            wanted.reverse();
        }
        check(mapping, &tensor, &wanted, path, header);
        total = total.saturating_add(own);
        parts.push((tensor, Layout { transpose, ..Layout::whole(own, rest.iter().product()) }));
    }
    if total != *rows {
        let count = parts.len();
        let have = match count {
            1 => format!("the only tensor `{pattern}` has"),
            _ => format!("the {count} tensors `{pattern}` together have"),
        };
        let message = format!("{have} {}, but {path} has {rows}", counted(total, "row"));
        mapping.mismatches.insert(Mismatch::one("shape", message));
        mapping.unfit.insert(path.to_owned());
    }
    parts
}

/// Notes a tensor that does not have the given shape, or whose elements are not floats.
fn check(mapping: &mut Mapping, tensor: &str, shape: &[usize], path: &str, header: &dyn Header) {
    let Some((dtype, found)) = header.tensor(tensor) else { return };
    let mut unlike = |what| {
        mapping.unlike.push(Unlike { tensor: tensor.to_owned(), path: path.to_owned(), what });
        mapping.unfit.insert(path.to_owned());
    };
    if found != shape {
        unlike(Fault::Shape(found.to_vec(), shape.to_vec()));
    }
    if !is_float(dtype) {
        unlike(Fault::Type(dtype.to_owned()));
    }
}

/// A tensor of the file that is a copy of the parameter, to be read when the parameter's own is missing.
fn tied(path: &str, names: &Names, header: &dyn Header) -> Option<String> {
    names.ties.iter().find_map(|row| {
        let (bindings, last) = row.parameters.first()?.matches(path)?;
        Some(row.tensor.fill(&bindings) + last).filter(|name| header.tensor(name).is_some())
    })
}

/// The path of the parameter that a tensor is a copy of.
fn repeated(name: &str, names: &Names, parameters: &Parameters) -> Option<String> {
    names.ties.iter().find_map(|row| {
        let (bindings, last) = row.tensor.matches(name)?;
        Some(row.parameters.first()?.fill(&bindings) + last).filter(|path| parameters.contains_key(path))
    })
}

/// The number that a buffer of the file must hold; `None` if it is no such buffer.
fn constant(name: &str, names: &Names, parameters: &Parameters) -> Option<f32> {
    let is_there = |path: String| parameters.contains_key(&path);
    let found = names.constants.iter().find(|own| own.neighbour(name).is_some_and(is_there));
    found.map(|own| own.value)
}

/// Groups the tensors of the file by their names without indices, for printing.
fn lines(
    header: &dyn Header,
    origins: &IndexMap<String, Origin>,
    taken: &IndexMap<String, Vec<(String, Layout)>>,
    repeats: &[(String, String)],
    ignored: &[String],
) -> Vec<TensorGroup> {
    let copies: IndexMap<&str, &str> =
        repeats.iter().rev().map(|(n, path)| (n.as_str(), path.as_str())).collect();
    let ignored: IndexSet<&str> = ignored.iter().map(String::as_str).collect();
    // The keys have a count of 1, so that tensors which differ only in their indices have the same key.
    let mut lines: IndexMap<TensorGroup, usize> = IndexMap::new();
    for name in header.names() {
        let Some((dtype, shape)) = header.tensor(name) else { continue };
        let (parameters, how) = if let Some(all) = taken.get(name) {
            let mut parameters: Vec<String> = Vec::new();
            for (path, _) in all {
                let path = paths::folded(path);
                if !parameters.contains(&path) {
                    parameters.push(path);
                }
            }
            let joined = all.iter().any(|(path, _)| matches!(origins.get(path), Some(Origin::Joined(_))));
            let mut how = all.first().map(|(_, layout)| how(layout)).unwrap_or_default();
            if joined {
                how = if how.is_empty() { "joined".to_owned() } else { format!("{how}, joined") };
            }
            (parameters, how)
        } else if let Some(path) = copies.get(name) {
            (vec![paths::folded(path)], "a copy, which must agree".to_owned())
        } else if ignored.contains(name) {
            (Vec::new(), "passed over".to_owned())
        } else {
            (Vec::new(), "not known".to_owned())
        };
        let line = TensorGroup {
            tensor: paths::folded(name),
            count: 1,
            dtype: dtype.into(),
            shape: shape.into(),
            parameters,
            how,
        };
        let count: &mut usize = lines.entry(line).or_insert(0);
        *count = count.saturating_add(1);
    }
    lines.into_iter().map(|(line, count)| TensorGroup { count, ..line }).collect()
}

/// How a tensor is rearranged to become a parameter, in words; empty if it is not.
fn how(layout: &Layout) -> String {
    let mut words = Vec::new();
    if let Some((count, _)) = layout.stack {
        words.push(format!("{count} stacked"));
    }
    if layout.transpose {
        words.push("transposed".to_owned());
    }
    if layout.parts.len() > 1 {
        words.push(match layout.groups {
            1 => format!("split in {}", layout.parts.len()),
            n => format!("split in {}, {}", layout.parts.len(), counted(n, "group")),
        });
    }
    words.join(", ")
}
