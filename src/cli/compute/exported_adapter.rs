//! The adapter of a run, which is what it added to a trained body: a directory as the library peft writes it,
//! with the tensors named as in the body's own library.

use std::io;
use std::path::Path;

use indexmap::IndexMap;
use serde_json::{Value as Json, json};

use crate::cli::file;
use crate::cli::outcome::{Exit, Failure};
use crate::hub::arrange::Layout;
use crate::hub::peft;
use crate::hub::written::{Part, Written};
use crate::learn::adapt::{CONFIG, MODEL, PREFIX};
use crate::read::{self, limit};
use crate::tensor_file::{self, Saved, TensorFile};

/// The ends of the names of what is added to a projection.
const ENDS: [&str; 2] = [".lora_A.weight", ".lora_B.weight"];

/// A projection of the model's own library, with the changes of all parameters in its tensor.
struct Fused<'r> {
    /// The parameters that are changed, with the matrices that the run added to each: `[rank, in]` and
    /// `[out, rank]`.
    changed: Vec<(&'r Part, [String; 2])>,
    /// The rank of each change in the run.
    rank: usize,
    columns: usize,
    rows: usize,
}

impl Fused<'_> {
    /// The rank of a single change of the whole tensor. The matrices `B` of parameters that share a tensor
    /// are the blocks of its `B`, in the parameters' own rows, because each has an `A` of its own.
    fn rank(&self) -> usize {
        self.rank.saturating_mul(self.changed.len())
    }

    /// The numbers of `A` `[rank, in]`: those of all parameters, one below the other.
    fn down(&self, from: &mut TensorFile) -> io::Result<Saved> {
        let mut all = Vec::new();
        for (_, [down, _]) in &self.changed {
            all.extend(from.floats(down).map_err(io::Error::other)?);
        }
        Ok(Saved::floats(vec![self.rank(), self.columns], all))
    }

    /// The numbers of `B` `[out, rank]`, which are 0 where a parameter's rows meet another one's columns.
    fn up(&self, from: &mut TensorFile) -> io::Result<Saved> {
        let rank = self.rank();
        let mut all = vec![0.0; self.rows.saturating_mul(rank)];
        for (i, (part, [_, up])) in self.changed.iter().enumerate() {
            let own = from.floats(up).map_err(io::Error::other)?;
            // The parameter's rows, each with its numbers in the columns of this change alone.
            let mut rows = vec![0.0; own.len().saturating_mul(self.changed.len())];
            let starts = (0..).map(|row: usize| row.saturating_mul(rank) + i.saturating_mul(self.rank));
            for (start, own) in starts.zip(own.chunks(self.rank.max(1))) {
                let to = rows.get_mut(start..start.saturating_add(own.len()));
                to.ok_or_else(|| io::Error::other("a matrix has another size"))?.copy_from_slice(own);
            }
            // peft has `B` as `[out, rank]` even where the weight itself is transposed.
            let layout = Layout { columns: rank, transpose: false, ..part.layout.clone() };
            if !layout.put(&rows, &mut all) {
                return Err(io::Error::other("a matrix has another size"));
            }
        }
        Ok(Saved::floats(vec![self.rows, rank], all))
    }
}

/// The tensor of a parameter, and the parameter's place in it.
fn found<'t>(
    path: &str,
    tensors: &'t IndexMap<String, Written>,
) -> Result<(&'t str, &'t Written, &'t Part), Failure> {
    let part = |(name, written): (&'t String, &'t Written)| {
        let part = written.parts.iter().find(|part| part.path == path)?;
        Some((name.as_str(), written, part))
    };
    tensors.iter().find_map(part).ok_or_else(|| Failure::bug(format!("{path} has no tensor")))
}

/// The tensor that contains this parameter and no other, in the parameter's own layout.
fn alone<'t>(path: &str, tensors: &'t IndexMap<String, Written>) -> Result<&'t str, Failure> {
    let (name, written, part) = found(path, tensors)?;
    match written.parts.len() == 1 && part.layout.is_whole() {
        true => Ok(name),
        false => Err(refused(format!(
            "`{name}` contains more than {path}, or contains it in another layout, so peft cannot save it alone"
        ))),
    }
}

fn refused(message: String) -> Failure {
    Failure::new(Exit::Refused, message)
        .help("without `--adapter` the whole model is exported, with the changes added")
}

/// The module of a tensor, which is its name without the last word: `h.0.attn` of `h.0.attn.weight`.
fn module(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(module, _)| module)
}

/// Writes the adapter of a checkpoint into a directory, under these names of the model's tensors. Changes of
/// parameters that share a tensor become one change of that tensor. `head` is that of the model, with the names
/// of its classes. Returns the number of tensors.
///
/// # Errors
/// The checkpoint has no adapter, or a projection that it changes is one of a stack of matrices.
pub fn write(
    checkpoint: &Path,
    tensors: &IndexMap<String, Written>,
    (head, classes): (&str, &[String]),
    to: &Path,
) -> Result<usize, Failure> {
    let path = checkpoint.join(MODEL);
    if !read::is_there(&path) {
        return Err(Failure::usage("the run adds nothing to a body, so it has no adapter")
            .help("`adapt: {lora: {on: [\"*.query\"]}}` in a recipe trains one"));
    }
    let failed = |why: String| Failure::new(Exit::File, format!("cannot use `{}`: {why}", path.display()));
    let mut from = TensorFile::open(&path).map_err(|error| failed(error.to_string()))?;
    let mut adapted: IndexMap<&str, Fused<'_>> = IndexMap::new();
    let mut saved: Vec<(String, String, Vec<usize>)> = Vec::new();
    let mut is_transposed = false;
    for (name, entry) in from.entries() {
        let own = name.strip_prefix(PREFIX).unwrap_or(name);
        let [down, up] = ENDS;
        // Handled together with its `A`.
        if own.ends_with(up) {
            continue;
        }
        // Any other tensor was trained as a whole, such as those of a new head, and peft saves it as it is.
        let Some(layer) = own.strip_suffix(down) else {
            saved.push((name.clone(), alone(own, tensors)?.to_owned(), entry.shape.clone()));
            continue;
        };
        let path = format!("{layer}.weight");
        let (tensor, written, part) = found(&path, tensors)?;
        let layout = &part.layout;
        // One matrix of a stack, or one of several joined tensors, is no module of its own.
        let rows = layout.rows().filter(|_| layout.stack.is_none() && part.before == 0);
        let Some(rows) =
            rows.filter(|_| written.parts.iter().all(|p| p.layout.transpose == layout.transpose))
        else {
            return Err(refused(format!(
                "peft cannot add to {path}, which is a part of the stack `{tensor}`"
            )));
        };
        // peft has one setting for all modules, and a family has all its projections one way round.
        is_transposed |= layout.transpose;
        let rank = entry.shape.first().copied().unwrap_or(0);
        // By the module of the library's tensor, in which query, key and value can be one.
        let fused = adapted.entry(module(tensor)).or_insert(Fused {
            changed: Vec::new(),
            rank,
            columns: layout.columns,
            rows,
        });
        fused.changed.push((part, ENDS.map(|end| format!("{PREFIX}{layer}{end}"))));
    }
    let named = |module: &str, end: &str| format!("{PREFIX}{module}{end}");
    let mut shapes: Vec<(String, &'static str, Vec<usize>)> = Vec::new();
    for (module, fused) in &adapted {
        let [down, up] = ENDS;
        shapes.push((named(module, down), "F32", vec![fused.rank(), fused.columns]));
        shapes.push((named(module, up), "F32", vec![fused.rows, fused.rank()]));
    }
    shapes.extend(saved.iter().map(|(_, new, shape)| (named(new, ""), "F32", shape.clone())));
    // Many versions of the library refuse a file of weights without this entry.
    let mut metadata = IndexMap::from([("format".to_owned(), "pt".to_owned())]);
    if !saved.is_empty() && !classes.is_empty() {
        metadata.insert(peft::CLASSES.to_owned(), json!(classes).to_string());
    }
    tensor_file::write(&to.join(MODEL), &shapes, &metadata, |i| {
        let lost = || io::Error::other("a tensor is gone");
        // In the order of `shapes`: `A` and `B` of each module, then what is saved as it is.
        match adapted.get_index(i / 2) {
            Some((_, fused)) if i % 2 == 0 => fused.down(&mut from),
            Some((_, fused)) => fused.up(&mut from),
            None => {
                let at = i.checked_sub(adapted.len().saturating_mul(2)).ok_or_else(lost)?;
                let (name, _, shape) = saved.get(at).ok_or_else(lost)?;
                Ok(Saved::floats(shape.clone(), from.floats(name).map_err(io::Error::other)?))
            }
        }
    })
    .map_err(|error| Failure::new(Exit::File, format!("cannot write the adapter: {error}")))?;
    let path = checkpoint.join(CONFIG);
    let failed = |why: String| Failure::new(Exit::File, format!("cannot use `{}`: {why}", path.display()));
    let bytes = read::bounded(&path, limit::SPEC).map_err(|error| failed(file::reason(&error)))?;
    let mut config: Json = read::json(&bytes).map_err(failed)?;
    // The config of the run names paths of trafoc's; peft looks for modules of the other library.
    config["target_modules"] = adapted.keys().copied().collect();
    let mut modules: Vec<&str> = saved.iter().map(|(_, new, _)| module(new)).collect();
    // The weight and the bias of a module follow each other.
    modules.dedup();
    config["modules_to_save"] = json!(modules);
    // The class of model on which peft puts a new head.
    config["task_type"] = json!(peft::task_of(head).filter(|_| !modules.is_empty()));
    // The weights of GPT-2's projections have their inputs first.
    config["fan_in_fan_out"] = json!(is_transposed);
    // A change of several parameters in one tensor has as many times the rank, and the same factor.
    let alpha = config["lora_alpha"].as_f64().unwrap_or(1.0);
    let (mut ranks, mut alphas) = (serde_json::Map::new(), serde_json::Map::new());
    for (module, fused) in adapted.iter().filter(|(_, fused)| fused.changed.len() > 1) {
        ranks.insert((*module).to_owned(), json!(fused.rank()));
        alphas.insert((*module).to_owned(), json!(alpha * fused.changed.len() as f64));
    }
    config["rank_pattern"] = Json::Object(ranks);
    config["alpha_pattern"] = Json::Object(alphas);
    let text = serde_json::to_string_pretty(&config).map_err(|error| Failure::bug(error.to_string()))?;
    file::write(&to.join(CONFIG), &(text + "\n"))?;
    Ok(shapes.len())
}
