//! Finds the config of a family that gives the same spec as an author's.
//!
//! Formulas of the family's spec are solved for its keys ([`crate::names::formula::solve`]), using the
//! values at the same places of the spec. Keys that only choose between alternatives are tried. The result
//! is imported again and compared, so an export is either equal to the spec or lists what the family cannot
//! express.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use indexmap::IndexMap;
use serde_json::{Map, Value as Json};

use super::config::Config;
use super::family::{Default, Family};
use super::import;
use super::knobs::{Knobs, differences};
use super::shelf::Families;
use super::template::{Leaf, constants, find, is_named, walk};
use crate::diag::Sink;
use crate::names::formula::{Formula, Scope, eval, same, solve};
use crate::names::json;
use crate::source::SourceMap;
use crate::spec::{ModelSpec, Parts, load};
use crate::syntax::merge::merge;
use crate::syntax::tree::Node;

/// A config of a family that gives the spec when it is imported.
#[derive(Clone, Debug)]
pub struct Exported {
    /// The family of the config.
    pub family: Family,
    /// The class of model, such as `LlamaForCausalLM`.
    pub architecture: String,
    /// The head of that class.
    pub head: String,
    /// A value for every key.
    pub values: IndexMap<String, Json>,
    /// Values that concern only training and that the family cannot express: `path: the spec's, the
    /// family's`.
    pub lost: Vec<String>,
}

/// Why a spec cannot be exported as any family: the closest one, and its differences.
#[derive(Clone, Debug)]
pub struct Obstacles {
    /// The family with the fewest differences, if any has the same stacks and head.
    pub family: Option<String>,
    /// The differences: `path: the spec's value, the family's`.
    pub knobs: Vec<String>,
    /// How much was done to find that out.
    pub work: Work,
}

/// How many specs a search had to do with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// The specs that were tried, each given by the values of a config.
    pub tried: usize,
    /// The different ones among those that were tried for the same class of a family.
    pub different: usize,
    /// Those that were decoded and compared with the wanted one, which is nearly all of the work.
    pub compared: usize,
}

impl Work {
    /// The sum of two searches.
    fn and(self, other: Self) -> Self {
        Self {
            tried: self.tried.saturating_add(other.tried),
            different: self.different.saturating_add(other.different),
            compared: self.compared.saturating_add(other.compared),
        }
    }
}

impl Scope for Exported {
    fn key(&self, name: &str) -> Option<&Json> {
        self.values.get(name)
    }
    fn table(&self, name: &str) -> Option<&Map<String, Json>> {
        self.family.tables.get(name)
    }
}

/// Finds a family that gives the spec: the preferred one, or the first that does.
///
/// # Errors
/// No family gives the spec.
pub fn export(
    spec: &ModelSpec,
    families: &Families,
    preferred: Option<&str>,
    sources: &mut SourceMap,
    sink: &mut Sink,
) -> Result<Exported, Obstacles> {
    let names: Vec<&str> = match preferred {
        Some(name) => vec![name],
        None => families.names(),
    };
    // `weights` says how other files name the tensors, which is not part of the model.
    let spec = &ModelSpec { weights: None, ..spec.clone() };
    let wanted = Knobs::of(spec);
    let tree = spec.encode();
    let mut nearest = Obstacles { family: None, knobs: Vec::new(), work: Work::default() };
    let mut work = Work::default();
    for name in names {
        let Some(family) = families.read(name, sources, sink) else { continue };
        for (class, head) in first_classes(&family) {
            let Some(attempt) = Attempt::new(&family, class, head, spec, &tree, &wanted, sources) else {
                continue;
            };
            let found = attempt.search();
            work = work.and(attempt.work());
            match found.difference {
                Some(knobs) if knobs.is_empty() => {
                    let Candidate { values, lost, .. } = found;
                    let (architecture, head) = (class.to_owned(), head.to_owned());
                    return Ok(Exported { architecture, head, values, lost, family });
                }
                Some(knobs) if nearest.family.is_none() || knobs.len() < nearest.knobs.len() => {
                    nearest = Obstacles { family: Some(family.name.clone()), knobs, work };
                }
                Some(_) | None => {}
            }
        }
    }
    Err(Obstacles { work, ..nearest })
}

/// The class that an export writes for each head: the first one of the family that has it.
fn first_classes(family: &Family) -> Vec<(&str, &str)> {
    let mut found: Vec<(&str, &str)> = Vec::new();
    for (class, head) in &family.architectures {
        // Several classes may have one head, and the first is the usual one.
        if found.iter().all(|(_, h)| h != head) {
            found.push((class, head));
        }
    }
    found
}

/// One family and head, tried for a spec.
struct Attempt<'a> {
    family: &'a Family,
    class: &'a str,
    name: &'a str,
    template: Node,
    tree: &'a Node,
    wanted: &'a Knobs,
    sources: &'a SourceMap,
    /// How each spec that was compared differs, by the digest of its tree: many values give the same spec.
    judged: RefCell<BTreeMap<u64, Judgement>>,
    /// How many specs were tried, and how many of them compared.
    counts: Cell<(usize, usize)>,
}

/// The differences of a spec that change the model, unless it has errors, and those that do not.
type Judgement = (Option<Vec<String>>, Vec<String>);

/// Values for the keys of a config, and how the spec that they give differs from the wanted one.
struct Candidate {
    values: IndexMap<String, Json>,
    /// How the result differs from the spec; `None` if the values do not give a spec.
    difference: Option<Vec<String>>,
    lost: Vec<String>,
}

impl Candidate {
    /// A number to minimize: the differences that change what the model computes count first, then those that
    /// matter only in training.
    fn distance(&self) -> usize {
        self.difference
            .as_ref()
            .map_or(usize::MAX, |d| d.len().saturating_mul(1000).saturating_add(self.lost.len()))
    }
}

/// The keys whose values are known so far.
struct Solved<'a> {
    family: &'a Family,
    values: IndexMap<String, Json>,
}

impl Scope for Solved<'_> {
    fn key(&self, name: &str) -> Option<&Json> {
        self.values.get(name)
    }
    fn table(&self, name: &str) -> Option<&Map<String, Json>> {
        self.family.tables.get(name)
    }
}

impl<'a> Attempt<'a> {
    /// Returns `None` if the family's spec has other stacks or another head.
    fn new(
        family: &'a Family,
        class: &'a str,
        head: &str,
        spec: &'a ModelSpec,
        tree: &'a Node,
        wanted: &'a Knobs,
        sources: &'a SourceMap,
    ) -> Option<Self> {
        let template =
            merge(&family.spec, &family.heads.get(head)?.spec, &Parts::default(), &mut Sink::new());
        // For most families these two comparisons make a search unnecessary.
        let same_stacks =
            ["encoder", "decoder"].iter().all(|key| template.get(key).is_some() == tree.get(key).is_some());
        let head_of = |node: &Node| {
            let head = node.get("head")?;
            head.text().map(str::to_owned).or_else(|| head.entries()?.first().map(|e| e.key.clone()))
        };
        let same_head = head_of(&template)? == head_of(tree)?;
        (same_stacks && same_head).then_some(Self {
            family,
            class,
            name: &spec.name,
            template,
            tree,
            wanted,
            sources,
            judged: RefCell::default(),
            counts: Cell::default(),
        })
    }

    /// How much was done so far.
    fn work(&self) -> Work {
        let (tried, compared) = self.counts.get();
        Work { tried, different: self.judged.borrow().len(), compared }
    }

    /// The values whose spec is closest to the wanted one. First come those that follow from the spec; then
    /// alternatives are tried greedily, because trying all combinations would take exponentially long.
    fn search(&self) -> Candidate {
        let mut places = Vec::new();
        let mut switches: IndexMap<String, Vec<Json>> = IndexMap::new();
        walk(&self.template, &mut Vec::new(), &mut places, &mut switches);
        // What the spec has at a place does not depend on the keys that are tried, so it is looked up once.
        let mut leaves: Vec<(Formula, Json)> = Vec::new();
        for (path, formula) in places {
            match (self.value_at(&path), formula) {
                // What the library needs keeps its default, and the difference is found and said.
                (Some(Json::Null) | None, Formula::Key(key))
                    if self.family.keys.get(&key).is_some_and(|key| key.needed) => {}
                (Some(value), formula) => leaves.push((formula, value)),
                // The spec has nothing there, so `null` is one of the values to try.
                (None, Formula::Key(key)) => {
                    switches.entry(key).or_insert_with(|| vec![Json::Null]);
                }
                (None, _) => {}
            }
        }
        let mut best = self.judge(self.solved(&leaves, IndexMap::new()));
        // Different choices may lead to the same values, which were no better the first time.
        let mut judged: BTreeSet<String> = BTreeSet::new();
        // Keys that choose between alternatives are tried one after the other, as long as the result gets
        // closer.
        let mut chosen: IndexMap<String, Json> = IndexMap::new();
        loop {
            let before = best.distance();
            // Nothing can come closer, but choices on the way may not have been needed.
            if before == 0 {
                return self.pruned(&leaves, chosen, best);
            }
            for (key, values) in &switches {
                for value in values {
                    let is_known = best.values.get(key).is_some_and(|v| same(v, value));
                    if is_known || self.is_of_other_kind(key, value) {
                        continue;
                    }
                    let mut tried = chosen.clone();
                    tried.insert(key.clone(), value.clone());
                    let values = self.solved(&leaves, tried.clone());
                    if !judged.insert(format!("{values:?}")) {
                        continue;
                    }
                    let found = self.judge(values);
                    if found.distance() < best.distance() {
                        best = found;
                        chosen = tried;
                    }
                }
            }
            if best.distance() >= before {
                return best;
            }
        }
    }

    /// Whether a truth value is tried for a key that is a number in every config.
    fn is_of_other_kind(&self, key: &str, value: &Json) -> bool {
        let default = self.family.keys.get(key).map(|k| &k.default);
        value.is_boolean() && matches!(default, Some(Default::Value(Json::Number(_))))
    }

    /// The result without those choices that turned out to have no effect.
    fn pruned(
        &self,
        leaves: &[(Formula, Json)],
        mut chosen: IndexMap<String, Json>,
        mut best: Candidate,
    ) -> Candidate {
        for key in chosen.keys().cloned().collect::<Vec<_>>() {
            let mut fewer = chosen.clone();
            fewer.shift_remove(&key);
            let found = self.judge(self.solved(leaves, fewer.clone()));
            // A key that was set on the way and turned out not to matter would be in the config for no
            // reason.
            if found.distance() == best.distance() {
                best = found;
                chosen = fewer;
            }
        }
        best
    }

    /// The keys that follow from the spec, given some others. `leaves` are the formulas of the family's spec, each
    /// with the author's value at its place.
    fn solved(&self, leaves: &[(Formula, Json)], given: IndexMap<String, Json>) -> IndexMap<String, Json> {
        let mut known = Solved { family: self.family, values: given };
        // A key that has been solved can make another formula solvable, so this is repeated until a pass adds
        // none.
        loop {
            let before = known.values.len();
            for (formula, value) in leaves {
                let mut found = Vec::new();
                solve(formula, value, &known, &mut |key, value| found.push((key.to_owned(), value)));
                for (key, value) in found {
                    let value = self.whole(&key, value);
                    // The first solution stays: later formulas for the same key are checked when the result
                    // is imported again.
                    known.values.entry(key).or_insert(value);
                }
            }
            if known.values.len() == before {
                break;
            }
        }
        // After the others were solved, because a formula of `write` may use them.
        for (name, key) in &self.family.keys {
            if let Some(write) = key.write.as_ref().filter(|_| !known.values.contains_key(name))
                && let Ok(value) = eval(write, &known)
                // A `null` that is computed means the default, and one that is written out means `null`.
                && (!value.is_null() || matches!(write, Formula::Literal(Json::Null)))
            {
                known.values.insert(name.clone(), value);
            }
        }
        known.values
    }

    /// A number in the type that the library expects for a key: if the default is a whole number, rounding
    /// errors are removed.
    fn whole(&self, key: &str, value: Json) -> Json {
        let default = self.family.keys.get(key).map(|k| &k.default);
        let is_whole = matches!(default, Some(Default::Value(Json::Number(n))) if !n.is_f64());
        match value.as_f64().filter(|n| is_whole && n.fract() != 0.0) {
            Some(n) => crate::names::formula::number(n.floor()),
            None => value,
        }
    }

    /// The value of the spec at a place where the family's spec has a formula.
    fn value_at(&self, path: &[String]) -> Option<Json> {
        let (stack, rest) = path.split_first()?;
        let place = match (stack.as_str(), rest) {
            // An encoded spec has `runs` of blocks, and a config an entry for each layer.
            ("encoder" | "decoder", [pattern]) if pattern == "pattern" => {
                return self.pattern(stack);
            }
            // The family's names of its blocks are not the author's, so the block that is most alike is
            // taken.
            ("encoder" | "decoder", [blocks, name, inner @ ..]) if blocks == "blocks" => {
                let kinds = self.kinds(stack);
                let index = kinds.iter().position(|kind| kind.as_ref() == Some(name))?;
                let (_, block) = *self.blocks(stack).get(index)?;
                find(block, inner)?
            }
            // A setting that all blocks share is the stack's own, or the same in each of them.
            ("encoder" | "decoder", _) => {
                let tree = self.tree.get(stack)?;
                find(tree, rest)
                    .or_else(|| self.blocks(stack).iter().find_map(|(_, block)| find(block, rest)))?
            }
            // Of a name from `let` an encoded spec has only the number, in its equation.
            ("let", [name]) => return self.factor(name),
            // An encoded spec has embeddings in each stack, and a family has them once.
            ("embed", _) => {
                let stacks = ["encoder", "decoder"].iter().filter_map(|s| self.tree.get(s));
                stacks.filter_map(|s| s.get("embed")).find_map(|embed| find(embed, rest))?
            }
            ("norm", _) => {
                // The final norm first: it is the stack's own, whereas a block's may have been changed for
                // some layers.
                let stacks = ["decoder", "encoder"];
                let block = |s: &&str| self.blocks(s).iter().find_map(|(_, block)| find(block, path));
                let last = |s: &&str| self.tree.get(s)?.get("final_norm").and_then(|norm| find(norm, rest));
                stacks.iter().find_map(last).or_else(|| stacks.iter().find_map(block))?
            }
            _ => find(self.tree, path)?,
        };
        Some(match json::of(place) {
            // What a spec leaves out on purpose is `none` there and `null` in a config.
            Json::String(word) if word == "none" => Json::Null,
            value => value,
        })
    }

    /// The number in the spec's equation at the place where the family's equation has a name.
    fn factor(&self, name: &str) -> Option<Json> {
        let in_equation = |ours: &Node, theirs: &Node| {
            let (ours, theirs) = (ours.get("block")?.text()?, theirs.get("block")?.text()?);
            let mut words = ours.split_whitespace().zip(theirs.split_whitespace());
            let (_, number) = words.find(|(word, _)| *word == name)?;
            number.parse().ok().map(crate::names::formula::number)
        };
        ["encoder", "decoder"].iter().find_map(|stack| {
            let ours = self.template.get(stack)?;
            let blocks = self.blocks(stack);
            let (_, first) = *blocks.first()?;
            // A block that a family names may have an equation of its own.
            let named = ours.get("blocks").and_then(Node::entries).unwrap_or(&[]);
            let kinds = if named.is_empty() { Vec::new() } else { self.kinds(stack) };
            let of_kind = kinds.iter().zip(&blocks).filter_map(|(kind, (_, theirs))| {
                let ours = named.iter().find(|e| Some(&e.key) == kind.as_ref())?;
                in_equation(&ours.value, theirs)
            });
            in_equation(ours, first).or_else(|| of_kind.into_iter().next())
        })
    }

    /// Whether an equation of the family is one of the spec, which has numbers in the place of the names under `let`.
    fn same_words(&self, ours: &str, theirs: &str) -> bool {
        let numbers = self.template.get("let").and_then(Node::entries).unwrap_or(&[]);
        let same = |(ours, theirs): (&str, &str)| {
            ours == theirs || numbers.iter().any(|e| e.key == ours) && theirs.parse::<f64>().is_ok()
        };
        // Word by word, so that a line break at the end of an equation makes no difference.
        let (ours, theirs) = (ours.split_whitespace(), theirs.split_whitespace());
        ours.clone().count() == theirs.clone().count() && ours.zip(theirs).all(same)
    }

    /// Whether a formula translates a word of the library into `none`, as that of an activation does.
    fn gives_none(&self, formula: &Formula) -> bool {
        let Formula::Entry(table, _) = formula else { return false };
        self.family.tables.get(table).is_some_and(|words| words.values().any(|ours| ours == "none"))
    }

    /// The kinds of blocks in the spec's stack, by name.
    fn blocks(&self, stack: &str) -> Vec<(&str, &'a Node)> {
        let Some(tree) = self.tree.get(stack) else { return Vec::new() };
        match tree.get("blocks").and_then(Node::entries) {
            Some(entries) => entries.iter().map(|e| (e.key.as_str(), &e.value)).collect(),
            None => vec![("", tree)],
        }
    }

    /// For every kind of block of the spec, the family's block that is most similar.
    fn kinds(&self, stack: &str) -> Vec<Option<String>> {
        let named =
            self.template.get(stack).and_then(|s| s.get("blocks")).and_then(Node::entries).unwrap_or(&[]);
        let score = |block: &Node, overlay: &Node| {
            let mut leaves = Vec::new();
            constants(overlay, &mut Vec::new(), &mut leaves);
            let fits = leaves.iter().all(|(path, leaf)| {
                let Some(found) = find(block, path) else { return false };
                let text = found.text().unwrap_or_default();
                match leaf {
                    Leaf::Constant(constant) => self.same_words(constant, text) || is_named(found, constant),
                    // A formula may give any value, but is left out where the config has none.
                    Leaf::Formula(formula) => text != "none" || self.gives_none(formula),
                }
            });
            fits.then_some(leaves.len())
        };
        // Among the blocks that fit, the one with the most settings says most about the spec's block.
        let kind = |block: &Node| {
            let mut best: Option<(usize, &str)> = None;
            for e in named {
                if let Some(score) = score(block, &e.value)
                    && best.is_none_or(|(known, _)| score > known)
                {
                    best = Some((score, &e.key));
                }
            }
            best.map(|(_, name)| name.to_owned())
        };
        self.blocks(stack).iter().map(|(_, block)| kind(block)).collect()
    }

    /// The name of the family's block for every layer of a stack, as a list; `None` if a block has no
    /// counterpart.
    fn pattern(&self, stack: &str) -> Option<Json> {
        let tree = self.tree.get(stack)?;
        // The list has an entry for every layer, and a spec may have any number of layers.
        let layers = json::of(tree.get("layers")?).as_u64().filter(|n| *n <= 10_000)? as usize;
        let kinds = self.kinds(stack);
        let blocks = self.blocks(stack);
        let kind_of = |name: &str| {
            let index = blocks.iter().position(|(n, _)| *n == name)?;
            kinds.get(index)?.clone().map(Json::from)
        };
        let Some(Json::Array(runs)) = tree.get("runs").map(json::of) else {
            // A stack without kinds of blocks has a single one, without a name.
            let only = kind_of("")?;
            return Some(Json::Array(vec![only; layers]));
        };
        let mut all = Vec::new();
        for run in &runs {
            let cycle = run.get("cycle")?.as_array()?;
            let count = run.get("count")?.as_u64().filter(|n| *n <= 10_000)? as usize;
            let kinds = cycle.iter().map(|name| kind_of(name.as_str()?)).collect::<Option<Vec<_>>>()?;
            // A run may end in the middle of its cycle.
            all.extend(kinds.iter().cycle().take(count).cloned());
        }
        Some(Json::Array(all))
    }

    /// Imports a config with these values and compares its spec with the wanted one.
    fn judge(&self, values: IndexMap<String, Json>) -> Candidate {
        let mut sink = Sink::new();
        let nothing = |values| Candidate { values, difference: None, lost: Vec::new() };
        let Some(config) = Config::of(self.family, self.class, values.clone(), &mut sink) else {
            return nothing(values);
        };
        if sink.has_errors() {
            return nothing(values);
        }
        let tree = import::tree(&config, self.name, &mut sink).filter(|_| !sink.has_errors());
        let values = config.values;
        let Some(tree) = tree else { return nothing(values) };
        let digest = tree.digest();
        let (tried, compared) = self.counts.get();
        self.counts.set((tried.saturating_add(1), compared));
        if let Some((difference, lost)) = self.judged.borrow().get(&digest).cloned() {
            return Candidate { values, difference, lost };
        }
        self.counts.set((tried.saturating_add(1), compared.saturating_add(1)));
        // Decoded like an author's file, so that defaults and derived sizes take part in the comparison.
        let knobs = load::decode(self.sources, &tree, &mut sink).map(|spec| Knobs::of(&spec));
        let difference = knobs.as_ref().map(|knobs| differences(&self.wanted.model, &knobs.model));
        let lost = knobs.map_or(Vec::new(), |knobs| differences(&self.wanted.training, &knobs.training));
        self.judged.borrow_mut().insert(digest, (difference.clone(), lost.clone()));
        Candidate { values, difference, lost }
    }
}
