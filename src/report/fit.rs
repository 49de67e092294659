//! Finds sizes that give a model a wanted cost: `d_model` and `layers` for 124 million parameters.
//!
//! Sizes are numbers of a spec's normal form. All but one are tried value by value, from an eighth of to
//! eight times their present value. Costs grow with a size, or fall with it (of more heads, each is narrower), so the remaining
//! one is found by a search for the wanted cost. A combination counts only if it compiles, which takes care of divisibility. Of
//! combinations that are about as close to the wanted cost, those come first that keep the spec's
//! proportions.

use schemars::JsonSchema;
use serde::Serialize;

use super::compare::form::Form;
use super::compare::normal::Wirings;
use super::cost::cost;
use super::costs::{Costs, Name};
use super::scene::Scene;
use crate::diag::Sink;
use crate::lower::lower;
use crate::source::{SourceMap, Span};
use crate::spec::{ModelSpec, Parts, load};
use crate::syntax::set::{self, Setting};
use crate::syntax::tree::Node;

/// The cost that is wanted.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// The name of the cost.
    pub cost: Name,
    /// The value it should have.
    pub value: u128,
    /// The lengths and the element type for which it is computed.
    pub scene: Scene,
}

/// A size that may change.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Size {
    /// The path, such as `decoder.layers`.
    pub path: String,
    /// Its value in the spec, from which candidates are derived.
    pub now: u64,
    /// The value changes in multiples of this.
    pub step: u64,
    /// The paths of the number; an encoder-decoder may have it in both stacks.
    pub paths: Vec<String>,
}

/// The number of layers of a stack, and the field that counts them.
const LISTED: (&str, &str) = ("layers", "runs");

/// Sizes that come close to the wanted cost.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Fit {
    /// The sizes, in the order in which they were asked for.
    pub sizes: Vec<u64>,
    /// The cost with these sizes, in the unit of the wanted one.
    #[serde(serialize_with = "super::serialize_count")]
    pub value: u128,
    /// The difference from the wanted cost, relative to it; negative if below.
    pub off: f64,
}

/// Why a name is not a size that can change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// No number of the spec has this name; these exist.
    Unknown(Vec<String>),
    /// Several numbers have this name; these are their paths.
    Several(Vec<String>),
    /// It is the number of layers of this stack, whose `runs` list them.
    Listed(String),
}

/// The most combinations that are tried, of all sizes except the one that is searched.
const MOST: usize = 600;

/// How many combinations of sizes that are not valid are tried with other values of the size that is searched before
/// these are taken to be without effect.
const VAIN: usize = 3;

/// How often the best combinations are followed to better ones next to them, and how many of them are.
const PASSES: usize = 4;
const STARTS: usize = 6;

/// How many candidates on each side of a value are next to it.
const NEXT: usize = 2;

/// How many values in a row are tried in search of a valid one.
const LOOKED_AT: usize = 16;

/// Costs within one part in a hundred of each other count as equally close.
const CLOSE: f64 = 0.01;

/// From this width on, a size remains a multiple of a power of two.
const WIDE: u64 = 128;

/// A spec whose sizes are varied.
pub struct Fitter {
    form: Form,
    tree: Node,
    sources: SourceMap,
}

impl Fitter {
    /// Brings a spec into its normal form, whose numbers are the sizes that can vary. They vary in `tree`, from which the
    /// spec was decoded, as `--set` changes them; `sources` has its texts.
    pub fn new(spec: &ModelSpec, tree: &Node, sources: &SourceMap) -> Self {
        let form = Wirings::default().normal(spec);
        Self { form, tree: tree.clone(), sources: sources.clone() }
    }

    /// The size with this name: a path, or the end of one if only one path ends so.
    ///
    /// # Errors
    /// There is no such size, or there are several.
    pub fn size(&self, name: &str) -> Result<Size, Unfit> {
        let mut all = Vec::new();
        numbers(&self.form, &mut Vec::new(), &mut all);
        let ends = |(keys, _): &&(Vec<String>, u64)| {
            let matches = |path: &str| path == name || path.ends_with(&format!(".{name}"));
            matches(&keys.join(".")) || matches(&self.form.spelled(keys))
        };
        let found: Vec<&(Vec<String>, u64)> = all.iter().filter(ends).collect();
        let paths: Vec<String> = found.iter().map(|(keys, _)| self.form.spelled(keys)).collect();
        let Some((_, now)) = found.first() else { return Err(Unfit::Unknown(self.names(&all))) };
        if found.iter().any(|(_, n)| n != now) {
            return Err(Unfit::Several(paths));
        }
        // With more or fewer layers, what is listed would not be the layers.
        let listed = |(keys, _): &&(Vec<String>, u64)| match keys.as_slice() {
            [stack, last] if last == LISTED.0 => self.tree.get(stack)?.get(LISTED.1).map(|_| stack.clone()),
            _ => None,
        };
        if let Some(stack) = found.iter().find_map(listed) {
            return Err(Unfit::Listed(stack));
        }
        let path = if let [only] = paths.as_slice() { only.clone() } else { name.to_owned() };
        let mut size = Size { path, now: *now, step: 1, paths };
        size.step = self.step(&size);
        Ok(size)
    }

    /// The paths of those numbers on which a cost depends.
    fn names(&self, all: &[(Vec<String>, u64)]) -> Vec<String> {
        // Every size of a tensor is part of the memory of training, so a number matters if that changes. One
        // that cannot be doubled on its own, such as a number of heads, counts too: the two results are not
        // equal.
        let scene = Scene { batch: 1, tokens: 1, element: super::scene::Element::F32 };
        let wanted = Wanted { cost: Name::TrainMemory, value: 1, scene };
        let counts = |(keys, now): &&(Vec<String>, u64)| {
            let path = self.form.spelled(keys);
            let size = Size { path: path.clone(), now: *now, step: 1, paths: vec![path] };
            let of = |n: u64| self.measure(&[&size], &[n], Some(&wanted));
            of(*now) != of(now.saturating_mul(2))
        };
        all.iter().filter(counts).map(|(keys, _)| self.form.spelled(keys)).collect()
    }

    /// The largest power of two up to 64 that divides a width (1 for smaller sizes), times the least factor
    /// for which the next two larger values give a valid spec.
    fn step(&self, size: &Size) -> u64 {
        let grain = if size.now < WIDE { 1 } else { 1u64 << size.now.trailing_zeros().min(6) };
        // Two values, because a single one may be valid by chance: of 12 heads, 4 key/value heads can become
        // 6, but not 8.
        let works = |step: u64| {
            let above = [size.now.saturating_add(step), size.now.saturating_add(step.saturating_mul(2))];
            above.iter().all(|n| self.measure(&[size], &[*n], None).is_some())
        };
        (1..=64).map(|k| grain.saturating_mul(k)).find(|step| works(*step)).unwrap_or(grain)
    }

    /// The cost with these sizes (0 if no cost is wanted); `None` if they do not give a valid spec.
    fn measure(&self, sizes: &[&Size], values: &[u64], wanted: Option<&Wanted>) -> Option<u128> {
        let given =
            sizes.iter().zip(values).flat_map(|(size, n)| size.paths.iter().map(move |path| (path, n)));
        let nowhere = Span::default();
        let settings = given.map(|(path, n)| Setting {
            path: path.split('.').map(|key| (key.to_owned(), nowhere)).collect(),
            value: Node::plain(n.to_string(), nowhere),
        });
        let settings: Vec<Setting> = settings.collect();
        // A combination that is not valid is skipped by the search, so why it is not is not reported.
        let mut sink = Sink::new();
        let tree = set::apply(self.tree.clone(), &settings, &Parts::of(&[&self.tree]), &mut sink);
        let spec = load::decode(&self.sources, &tree, &mut sink)?;
        let Some(wanted) = wanted else { return Some(0) };
        let graph = lower(&spec, &mut Sink::new()).ok().flatten()?;
        // A model without this cost, such as an encoder without a cache, is no better with any size.
        Some(Costs::one(wanted.cost, &graph, &cost(&graph), &wanted.scene).unwrap_or(0))
    }

    /// Whether the cost falls when a size grows and the others stay.
    fn falls(&self, size: &Size, wanted: &Wanted) -> bool {
        let values = candidates(size);
        let of = |n: &u64| self.measure(&[size], &[*n], Some(wanted));
        // An end that is not valid says nothing, and the values next to it are as good.
        let least = values.iter().take(LOOKED_AT).find_map(of);
        let most = values.iter().rev().take(LOOKED_AT).find_map(of);
        least.zip(most).is_some_and(|(least, most)| most < least)
    }

    /// At most `most` combinations of sizes, those closest to the wanted cost first.
    pub fn fit(&self, sizes: &[Size], wanted: &Wanted, most: usize) -> Vec<Fit> {
        // The size with the smallest step that matters is the one that is searched, so that few combinations
        // remain. A cost such as the parameters does not depend on every size; searching one of these finds
        // nothing.
        let matters = |size: &Size| {
            let at = |n: u64| self.measure(&[size], &[n], Some(wanted));
            at(size.now) != at(size.now.saturating_mul(2))
        };
        let count = |i: &usize| sizes.get(*i).filter(|s| matters(s)).map_or(0, |s| candidates(s).len());
        // `max_by_key` returns the last of equal ones, so in reverse order the first size.
        let Some(fine) = (0..sizes.len()).rev().max_by_key(count) else { return Vec::new() };
        let others: Vec<&Size> =
            sizes.iter().enumerate().filter(|(i, _)| *i != fine).map(|(_, s)| s).collect();
        let Some(last) = sizes.get(fine) else { return Vec::new() };
        let falls = self.falls(last, wanted);
        let last = (fine, last);
        let mut search = Search {
            fitter: self,
            others,
            last,
            falls,
            wanted,
            near: None,
            vain: 0,
            helps: false,
            found: Vec::new(),
        };
        let mut tried = combinations(&search.others);
        tried.iter().for_each(|fixed| search.take(fixed));
        // The combinations are far apart where many sizes vary, so the best ones are followed to better ones next to them.
        for _ in 0..PASSES {
            search.found.sort_by(|a, b| a.off.abs().total_cmp(&b.off.abs()));
            if search.found.first().is_some_and(|best| best.off.abs() < CLOSE) {
                break;
            }
            let mut starts: Vec<Vec<u64>> = Vec::new();
            for fit in &search.found {
                let mut fixed = fit.sizes.clone();
                fixed.remove(fine);
                if starts.len() < STARTS && !starts.contains(&fixed) {
                    starts.push(fixed);
                }
            }
            let mut next: Vec<Vec<u64>> = Vec::new();
            for near in starts.iter().flat_map(|start| neighbours(&search.others, start)) {
                if !tried.contains(&near) && !next.contains(&near) {
                    next.push(near);
                }
            }
            next.iter().for_each(|fixed| search.take(fixed));
            tried.extend(next);
        }
        let mut found = search.found;
        let order = |fit: &Fit| ((fit.off.abs() / CLOSE).floor(), skew(sizes, fit), fit.off.abs());
        found.sort_by(|a, b| {
            let ((a1, a2, a3), (b1, b2, b3)) = (order(a), order(b));
            // Values that are about as close are ordered by proportions before the exact distance counts.
            let by = a1.total_cmp(&b1).then(a2.total_cmp(&b2)).then(a3.total_cmp(&b3));
            by.then_with(|| a.sizes.cmp(&b.sizes))
        });
        // Combinations that differ only in sizes without influence on the cost would fill the list.
        let mut seen = Vec::new();
        found.retain(|fit| {
            !seen.contains(&fit.value) && {
                seen.push(fit.value);
                true
            }
        });
        found.truncate(most);
        found
    }
}

/// A search for sizes that give the wanted cost.
struct Search<'a> {
    fitter: &'a Fitter,
    /// The sizes that a combination fixes.
    others: Vec<&'a Size>,
    /// The size that is searched, and its place among all sizes.
    last: (usize, &'a Size),
    /// Whether the cost falls when it grows.
    falls: bool,
    wanted: &'a Wanted,
    /// Successive combinations often differ in one candidate, so the search starts where the last one ended.
    near: Option<u64>,
    /// How many combinations that are not valid have been tried with other values of the last size in vain.
    vain: usize,
    /// Whether another value of the last size has made one valid.
    helps: bool,
    found: Vec<Fit>,
}

impl Search<'_> {
    /// Searches the last size for the wanted cost, with these values of the others.
    fn take(&mut self, fixed: &[u64]) {
        let (fine, last) = self.last;
        let all: Vec<&Size> = self.others.iter().copied().chain([last]).collect();
        let with = |n: u64| fixed.iter().copied().chain([n]).collect::<Vec<u64>>();
        let is_valid = self.fitter.measure(&all, &with(last.now), None).is_some();
        // A width can make another number of heads valid, and a vocabulary cannot. A search that finds nothing valid takes
        // the longest of all, so where a few have found nothing, there are no more for combinations of that kind.
        if !is_valid && !self.helps && self.vain >= VAIN {
            return;
        }
        let of = |n: u64| self.fitter.measure(&all, &with(n), Some(self.wanted));
        let around = around(&candidates(last), self.wanted.value, self.falls, self.near, of);
        if !is_valid {
            self.vain = usize::from(around.is_empty()).saturating_add(self.vain);
            self.helps |= !around.is_empty();
        }
        for (n, value) in around {
            self.near = Some(n);
            let mut sizes = fixed.to_vec();
            sizes.insert(fine, n);
            // A wanted cost of 0 is a valid request, and its distance must be a number.
            let off = (value as f64 - self.wanted.value as f64) / (self.wanted.value as f64).max(1.0);
            self.found.push(Fit { sizes, value, off });
        }
    }
}

/// How unevenly sizes have grown: the logarithm of the largest growth factor over the smallest.
fn skew(sizes: &[Size], fit: &Fit) -> f64 {
    let grown = sizes.iter().zip(&fit.sizes).map(|(size, n)| (*n as f64 / size.now as f64).ln());
    let (least, most) = grown.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), g| (a.min(g), b.max(g)));
    most - least
}

/// The whole numbers of a form, with their paths.
fn numbers(form: &Form, path: &mut Vec<String>, found: &mut Vec<(Vec<String>, u64)>) {
    if let Form::Word { node, .. } = form
        && let Some(n) = whole(node)
    {
        found.push((path.clone(), n));
    }
    for (key, value) in form.fields().into_iter().flatten() {
        path.push(key.clone());
        numbers(value, path, found);
        path.pop();
    }
}

fn whole(node: &Node) -> Option<u64> {
    node.text()?.trim().parse().ok().filter(|n| *n > 0)
}

/// Values from about an eighth of a size to eight times it.
fn candidates(size: &Size) -> Vec<u64> {
    let step = size.step.max(1);
    let steps = |n: u64| n.checked_div(step).unwrap_or(n);
    // A value that is no multiple of the step keeps its remainder, so that it is itself a candidate.
    let offset = size.now.saturating_sub(steps(size.now).saturating_mul(step));
    // Without a remainder, zero steps would be a size of 0.
    let first = steps(size.now / 8).max(u64::from(offset == 0));
    let last = steps(size.now.saturating_mul(8));
    // A vocabulary of 50,257, an odd number, would have almost 400,000 candidates.
    let every = (last.saturating_sub(first) / 512).max(1);
    (first..=last)
        .step_by(usize::try_from(every).unwrap_or(1))
        .map(|k| k.saturating_mul(step).saturating_add(offset))
        .filter(|n| *n > 0)
        .collect()
}

/// Every combination of candidates; if there are too many, those of chosen ones that cover the whole range, and those in
/// which all sizes grow by the same factor.
fn combinations(sizes: &[&Size]) -> Vec<Vec<u64>> {
    let each = (MOST as f64).powf(1.0 / sizes.len().max(1) as f64).floor() as usize;
    let all: Vec<Vec<u64>> = sizes.iter().map(|size| candidates(size)).collect();
    let grid = sizes.iter().zip(&all).fold(vec![Vec::new()], |found: Vec<Vec<u64>>, (size, values)| {
        let chosen: Vec<u64> = match values.len() <= each {
            true => values.clone(),
            false => {
                let mut chosen: Vec<u64> =
                    growths(each).iter().filter_map(|growth| nearest(values, size.now, *growth)).collect();
                chosen.dedup();
                chosen
            }
        };
        let longer = |found: &Vec<u64>, n: u64| found.iter().copied().chain([n]).collect();
        found.iter().flat_map(|found| chosen.iter().map(move |n| longer(found, *n))).collect()
    });
    let together = (-24..=24).filter_map(|eighths: i32| {
        let growth = f64::from(eighths) / 8.0;
        sizes.iter().zip(&all).map(|(size, values)| nearest(values, size.now, growth)).collect()
    });
    let mut found = grid;
    for combination in together.collect::<Vec<Vec<u64>>>() {
        if !found.contains(&combination) {
            found.push(combination);
        }
    }
    found
}

/// Binary logarithms of at most `most` growth factors from an eighth to eight, which are halves and doubles as far as
/// possible: such a number of heads most often divides such a width.
fn growths(most: usize) -> Vec<f64> {
    match most {
        0..=2 => vec![0.0],
        3..=4 => vec![-3.0, 0.0, 3.0],
        5..=6 => vec![-3.0, -1.0, 0.0, 1.0, 3.0],
        _ => {
            let parts = i32::try_from(most.saturating_sub(1) / 6).unwrap_or(1).max(1);
            let last = parts.saturating_mul(3);
            (last.saturating_neg()..=last).map(|i| f64::from(i) / f64::from(parts)).collect()
        }
    }
}

/// The candidate that is nearest to a size that has grown by a factor, of which the binary logarithm is given.
fn nearest(values: &[u64], now: u64, growth: f64) -> Option<u64> {
    let wanted = now as f64 * growth.exp2();
    let off = |n: &u64| (*n as f64 - wanted).abs();
    values.iter().copied().min_by(|a, b| off(a).total_cmp(&off(b)))
}

/// The combinations next to one: with one size changed to the candidates on both sides of its value.
fn neighbours(sizes: &[&Size], values: &[u64]) -> Vec<Vec<u64>> {
    let mut found = Vec::new();
    for (i, (size, n)) in sizes.iter().zip(values).enumerate() {
        let all = candidates(size);
        let at = all.partition_point(|value| value < n);
        for value in all.iter().skip(at.saturating_sub(NEXT)).take(NEXT.saturating_mul(2).saturating_add(1)) {
            let mut changed = values.to_vec();
            if let Some(place) = changed.get_mut(i).filter(|place| **place != *value) {
                *place = *value;
                found.push(changed);
            }
        }
    }
    found
}

/// The values on both sides of the wanted cost, with their costs. Costs are nearly linear, so the next
/// value tried is where the line through the last two meets the wanted cost. Every fourth value bisects the
/// remaining interval, which ends the search for any cost function. `falls` says that larger values cost less, and `near` is a
/// value that is likely to be close.
fn around(
    values: &[u64],
    wanted: u128,
    falls: bool,
    near: Option<u64>,
    of: impl Fn(u64) -> Option<u128>,
) -> Vec<(u64, u128)> {
    // A value that does not give a valid spec is skipped in favour of the next one that does. Where many in a
    // row do not, the search continues below them.
    let at = |from: usize| {
        (from..values.len().min(from.saturating_add(LOOKED_AT))).find_map(|i| {
            let n = *values.get(i)?;
            of(n).map(|cost| (i, n, cost))
        })
    };
    let (mut low, mut high) = (0, values.len());
    let (mut before, mut after) = (None, None);
    let mut tried: Vec<(u64, u128)> = Vec::new();
    while low < high {
        let guess = match tried.as_slice() {
            [] => near.map(|n| n as f64),
            // Where a cost jumps, the line would approach the wanted cost one value at a time.
            all if all.len() % 4 == 3 => None,
            [(n, cost)] if falls => Some(*n as f64 * *cost as f64 / (wanted as f64).max(1.0)),
            // As if the cost were proportional to the size.
            [(n, cost)] => Some(*n as f64 * wanted as f64 / (*cost as f64).max(1.0)),
            [.., (a, at_a), (b, at_b)] => {
                let slope = (*at_b as f64 - *at_a as f64) / (*b as f64 - *a as f64);
                // Two equal costs have no slope.
                Some(*b as f64 + (wanted as f64 - *at_b as f64) / slope).filter(|n| n.is_finite())
            }
        };
        let from = match guess {
            Some(n) => values
                .partition_point(|v| (*v as f64) < n.floor())
                .clamp(low, high.saturating_sub(1).max(low)),
            None => low.midpoint(high),
        };
        match at(from) {
            Some((i, n, cost)) => {
                tried.push((n, cost));
                if cost == wanted || (cost < wanted) != falls {
                    before = Some((n, cost));
                    low = i.saturating_add(1);
                } else {
                    // The values from `from` up to this one do not give a valid spec.
                    after = Some((n, cost));
                    high = from;
                }
            }
            None => high = from,
        }
    }
    before.into_iter().chain(after).collect()
}
