//! How a model encodes the position of a token, from the spec and, for learned tables, from trained weights.
//!
//! Every scheme has its own picture: a sinusoidal table as a map, its first curves and how similar two
//! positions are by distance; the wavelengths of rotary pairs against the context, and what rotation does
//! to a score by distance; slopes of ALiBi; buckets of T5. A learned table starts at random, so that before
//! training only its size is shown; after training it is drawn like a computed one, and so are the biases of
//! buckets.

use std::collections::BTreeMap;

use super::{Part, Report};
use crate::diag::count::counted;
use crate::draw::Figure;
use crate::draw::bars::Bars;
use crate::draw::chart::{Axis, Chart, Series, Style};
use crate::draw::comparison::listed;
use crate::draw::heatmap::Heatmap;
use crate::draw::scale::Colors;
use crate::ir::op::{Op, RotaryTable, SinusoidLayout, Slopes};
use crate::ir::{Graph, Layer, MemberId, MemberKind, Module, ModuleId, Node, Verified};
use crate::report::number::exact;

/// The most positions in maps and in charts by distance.
const POSITIONS: u64 = 512;
/// The most features in a map.
const FEATURES: u64 = 512;
/// The most pairs of features, or heads, in a chart; of more, evenly spaced ones are shown.
const POINTS: u64 = 1024;

/// The most positions in the curve of a feature. With more, the curves of the fastest features would be solid
/// bands.
const CURVED: u64 = 60;

/// The most positions that are compared with each other.
const COMPARED: usize = 128;

/// A model whose positions are looked at.
#[derive(Clone, Copy, Debug)]
pub struct Model<'a> {
    /// The graph in which its positional schemes are found.
    pub graph: &'a Verified,
    /// Trained tables `[rows, dim]` by the paths that [`tables`] gives; empty before training.
    pub tables: &'a BTreeMap<String, Vec<f32>>,
}

/// Paths of the parameters that encode positions: learned tables and biases of buckets.
pub fn tables(graph: &Verified) -> Vec<String> {
    let paths = schemes(graph).into_iter().filter_map(|(scheme, _)| match scheme {
        Scheme::Learned { path, .. } => Some(path),
        Scheme::Buckets { path, .. } => path,
        Scheme::Sinusoid { .. } | Scheme::Rotary(_) | Scheme::Alibi(_) => None,
    });
    paths.collect()
}

/// A scheme of a model.
#[derive(Clone, Debug, PartialEq)]
enum Scheme {
    Sinusoid { dim: u64, base: f64, layout: SinusoidLayout },
    Learned { path: String, rows: u64, dim: u64 },
    Rotary(RotaryTable),
    Alibi(Slopes),
    Buckets { path: Option<String>, buckets: u64, max_distance: u64, bidirectional: bool },
}

/// The schemes of a graph, each once, with the modules they are in.
fn schemes(graph: &Verified) -> Vec<(Scheme, Vec<String>)> {
    let mut found: Vec<(Scheme, Vec<String>)> = Vec::new();
    for (id, module) in graph.modules.iter().enumerate() {
        let path = |member: MemberId| {
            let within = place(graph, graph.root, ModuleId(id)).unwrap_or_default();
            let names = [within.as_str(), &module.member(member).name, "weight"];
            names.into_iter().filter(|name| !name.is_empty()).collect::<Vec<_>>().join(".")
        };
        // Most layers have the same scheme, and one picture is enough for all of them.
        let mut add = |scheme: Scheme| match found.iter_mut().find(|(s, _)| *s == scheme) {
            Some((_, places)) => places.push(module.name.clone()),
            None => found.push((scheme, vec![module.name.clone()])),
        };
        for (index, node) in module.nodes.iter().enumerate() {
            if let Op::Sinusoid { dim, base, layout } = &node.op {
                add(Scheme::Sinusoid { dim: dim.get(), base: *base, layout: *layout });
            }
            if let Op::RotaryTable { rotary, .. } = &node.op {
                add(Scheme::Rotary(rotary.clone()));
            }
            if let Op::AlibiBias { slopes, .. } = &node.op {
                add(Scheme::Alibi(*slopes));
            }
            if let Op::RelativeBuckets { buckets, max_distance, bidirectional, .. } = &node.op {
                let (buckets, max_distance) = (buckets.get(), *max_distance);
                let path = reader(module, index).map(path);
                add(Scheme::Buckets { path, buckets, max_distance, bidirectional: *bidirectional });
            }
            // A learned table of positions is an embedding whose ids are positions.
            if let Op::Layer { member } = &node.op
                && let MemberKind::Layer(Layer::Embedding { rows, dim, .. }) = &module.member(*member).kind
                && module.nodes.get(..index).unwrap_or_default().iter().any(|before| {
                    matches!(before.op, Op::Positions { .. }) && before.outputs.first() == node.inputs.first()
                })
            {
                add(Scheme::Learned { path: path(*member), rows: rows.get(), dim: dim.get() });
            }
        }
    }
    found
}

/// The layer that reads the output of a node, given by its index.
fn reader(module: &Module, index: usize) -> Option<MemberId> {
    let output = module.nodes.get(index)?.outputs.first();
    // Buckets are ids, and their biases are the embedding that looks them up.
    let reads = |node: &&Node| node.inputs.first() == output && matches!(node.op, Op::Layer { .. });
    module.nodes.iter().find(reads).and_then(|node| node.op.meaning().member())
}

/// The path of a module below `from`; of a module that several blocks use, that in the first.
fn place(graph: &Graph, from: ModuleId, wanted: ModuleId) -> Option<String> {
    if from == wanted {
        return Some(String::new());
    }
    let join =
        |name: &str, rest: String| if rest.is_empty() { name.to_owned() } else { format!("{name}.{rest}") };
    graph.module(from).members.iter().find_map(|member| match &member.kind {
        MemberKind::Layer(_) => None,
        MemberKind::Module(id) => Some(join(&member.name, place(graph, *id, wanted)?)),
        MemberKind::Stack(runs) => {
            let mut first = 0;
            runs.iter().find_map(|run| {
                let found = run.cycle.iter().enumerate().find_map(|(i, id)| {
                    let rest = place(graph, *id, wanted)?;
                    Some(join(&format!("{}.{}", member.name, first + i as u64), rest))
                });
                first += run.count;
                found
            })
        }
    })
}

/// The features of a table that are drawn along the positions if the user names none.
pub const FIRST: [u64; 4] = [0, 1, 2, 3];

/// The number of features that every table of positions has: that of the narrowest one that is drawn. `None`
/// if no scheme has such a table.
pub fn features(model: &Model<'_>) -> Option<u64> {
    let widths = schemes(model.graph).into_iter().filter_map(|(scheme, _)| match scheme {
        Scheme::Sinusoid { dim, .. } => Some(dim),
        // Before training a learned table is not drawn.
        Scheme::Learned { path, dim, .. } => model.tables.contains_key(&path).then_some(dim),
        Scheme::Rotary(_) | Scheme::Alibi(_) | Scheme::Buckets { .. } => None,
    });
    // A feature that the user names must be in every table that is drawn.
    widths.min()
}

/// The positions of one model, or of several next to each other. `features` are those of a table that are
/// drawn along the positions.
pub fn positions(models: &[Model<'_>], features: &[u64]) -> Report {
    let names: Vec<&str> = models.iter().map(|m| m.graph.name.as_str()).collect();
    let is_trained = models.iter().any(|m| !m.tables.is_empty());
    let from = if is_trained { "as it was trained" } else { "from the spec alone" };
    let lead = format!("how a token's place reaches the model, {from}");
    let mut report = Report { title: format!("{}: positions", listed(&names)), lead, parts: Vec::new() };
    let each: Vec<Vec<Part>> =
        models.iter().map(|model| of_model(*model, features, models.len() > 1)).collect();
    if models.len() > 1 {
        report.parts.push(overview(models));
    }
    report.parts.extend(each.into_iter().flatten());
    report
}

/// A table of several models with the schemes of each.
fn overview(models: &[Model<'_>]) -> Part {
    let row = |name: &str, scheme: &str, places: &[String], context: u64| {
        [name.to_owned(), scheme.to_owned(), places.join(", "), exact(u128::from(context))].to_vec()
    };
    let rows = models.iter().flat_map(|model| {
        let (name, context) = (model.graph.name.as_str(), model.graph.context);
        let found = schemes(model.graph);
        if found.is_empty() {
            return vec![row(name, "none", &[], context)];
        }
        found.iter().map(|(s, places)| row(name, s.words(), places, context)).collect()
    });
    let header = ["model", "positions", "in", "context"].map(str::to_owned).to_vec();
    let title = "Which positions they have".to_owned();
    Part { title, table: Some((header, rows.collect())), ..Part::default() }
}

impl Scheme {
    /// The name of the scheme, for headings.
    fn words(&self) -> &'static str {
        match self {
            Scheme::Sinusoid { .. } => "Sinusoidal positions",
            Scheme::Learned { .. } => "Learned positions",
            Scheme::Rotary(_) => "Rotary positions",
            Scheme::Alibi(_) => "ALiBi",
            Scheme::Buckets { .. } => "T5 buckets",
        }
    }
}

/// A part for each scheme of a model, whose titles begin with its name if `is_named`.
fn of_model(model: Model<'_>, features: &[u64], is_named: bool) -> Vec<Part> {
    let Model { graph, tables } = model;
    let found = schemes(graph);
    if found.is_empty() {
        let text = "The model has no positional scheme: without a mask it could not tell orders apart.";
        return vec![Part { title: format!("{}: none", graph.name), text: text.into(), ..Part::default() }];
    }
    let prefix = if is_named { format!("{}: ", graph.name) } else { String::new() };
    let parts = found.iter().map(|(scheme, places)| {
        let mut part = match scheme {
            Scheme::Sinusoid { dim, base, layout } => {
                sinusoid(&prefix, graph.context, (*dim, *base, *layout), features)
            }
            Scheme::Learned { path, rows, dim } => match tables.get(path) {
                Some(table) => trained(&prefix, (*rows, *dim), table, features),
                None => learned(*rows, *dim),
            },
            Scheme::Rotary(rotary) => rotation(&prefix, graph.context, rotary),
            Scheme::Alibi(slopes) => alibi(&prefix, graph.context, slopes),
            Scheme::Buckets { path, buckets, max_distance, bidirectional } => {
                let biases = path.as_ref().and_then(|path| tables.get(path));
                t5(&prefix, *buckets, *max_distance, *bidirectional, biases)
            }
        };
        // An encoder and a decoder may have the same scheme with numbers of their own.
        let alike = found.iter().filter(|(other, _)| other.words() == scheme.words()).count();
        let whose = places.first().filter(|_| alike > 1).map_or(String::new(), |path| format!(", in {path}"));
        part.title = format!("{prefix}{}{whose}", scheme.words());
        let place = places.iter().map(|p| p.as_str()).collect::<Vec<_>>().join(", ");
        part.facts.insert(0, ("in".to_owned(), place));
        part
    });
    parts.collect()
}

/// A learned table before training, of which only the size says anything.
fn learned(rows: u64, dim: u64) -> Part {
    Part {
        text: "One vector for each position, added to the embedding. It starts at random and means nothing \
               before training; a position beyond the table has no vector."
            .into(),
        facts: vec![
            ("positions".into(), exact(u128::from(rows))),
            ("width".into(), exact(u128::from(dim))),
            ("parameters".into(), exact(u128::from(rows) * u128::from(dim))),
        ],
        ..Part::default()
    }
}

/// A learned table as it is, and the cosine of every two of its vectors.
fn trained(prefix: &str, (rows, dim): (u64, u64), table: &[f32], features: &[u64]) -> Part {
    let title = |text: &str| format!("{prefix}{text}");
    let width = usize::try_from(dim).unwrap_or(usize::MAX).max(1);
    let vectors: Vec<&[f32]> = table.chunks(width).collect();
    let shown = vectors.iter().take(POSITIONS as usize);
    let values: Vec<Vec<Option<f64>>> = shown
        .map(|v| {
            v.iter().take(FEATURES as usize).map(|x| Some(f64::from(*x)).filter(|x| x.is_finite())).collect()
        })
        .collect();
    // The range ends at the 99th percentile: a few features that are far larger than the others would leave
    // these without colour.
    let mut sizes: Vec<f64> = values.iter().flatten().flatten().map(|x| x.abs()).collect();
    sizes.sort_by(f64::total_cmp);
    let most =
        sizes.get(sizes.len().saturating_sub(1) * 99 / 100).copied().filter(|x| *x > 0.0).unwrap_or(1.0);
    let range = (-most, most);
    let map = Heatmap::new(&title("The table"), values, range, Colors::Signed)
        .axes("position", "feature")
        .sized((420.0, 300.0), true);
    // Of every two vectors there is a cosine, so the work grows with the square of their number.
    let near: Vec<&[f32]> = vectors.iter().take(COMPARED).copied().collect();
    let cosines: Vec<Vec<Option<f64>>> =
        near.iter().map(|a| near.iter().map(|b| cosine(a, b)).collect()).collect();
    let mean = |distance: usize| {
        let pairs =
            cosines.iter().enumerate().filter_map(|(i, row)| row.get(i + distance).copied().flatten());
        let (sum, count) = pairs.fold((0.0, 0u64), |(sum, count), x| (sum + x, count + 1));
        (count > 0).then(|| (distance as f64, sum / count as f64))
    };
    let decay = Chart::new(
        &title("Similarity of two positions by distance"),
        Axis::linear("distance"),
        Axis::linear("mean cosine").including(0.0),
    )
    .with(Series::line("", (0..near.len()).filter_map(mean).collect()));
    let likeness =
        Heatmap::new(&title("Similarity of every two positions"), cosines, (-1.0, 1.0), Colors::Signed)
            .axes("position", "position")
            .sized((300.0, 300.0), true);
    let along = curves(&title("Some features along positions"), vectors.len() as u64, features, &|p, f| {
        let at = |n: u64| usize::try_from(n).ok();
        vectors.get(at(p)?)?.get(at(f)?).map(|x| f64::from(*x)).filter(|x| x.is_finite())
    });
    let norms = vectors.iter().map(|v| v.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt());
    let norm = norms.sum::<f64>() / vectors.len().max(1) as f64;
    Part {
        text: "One vector for each position, added to the embedding, as training left it. A position beyond \
               the table has no vector."
            .into(),
        legend: "Colours of the table end where 99 % of its numbers do.".into(),
        facts: [learned(rows, dim).facts, vec![("mean norm of a vector".into(), format!("{norm:.3}"))]]
            .concat(),
        figures: vec![map.figure(), along, likeness.figure(), decay.figure()],
        ..learned(rows, dim)
    }
}

/// Features of a table along the first positions, one line for each.
fn curves(title: &str, length: u64, features: &[u64], value: &dyn Fn(u64, u64) -> Option<f64>) -> Figure {
    let mut chart = Chart::new(title, Axis::linear("position"), Axis::linear("value"));
    for feature in features {
        let points = (0..length.min(CURVED)).filter_map(|p| Some((p as f64, value(p, *feature)?)));
        chart = chart.with(Series::line(&format!("feature {feature}"), points.collect()));
    }
    chart.figure()
}

/// The cosine of two vectors, if both have a direction.
fn cosine(a: &[f32], b: &[f32]) -> Option<f64> {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum::<f64>();
    let cosine = dot(a, b) / (dot(a, a) * dot(b, b)).sqrt();
    cosine.is_finite().then_some(cosine)
}

/// The table's entry: `sin` or `cos` of `position / base^(2i / dim)`.
fn sine(position: u64, feature: u64, dim: u64, base: f64, layout: SinusoidLayout) -> f64 {
    let sines = dim.div_ceil(2);
    let (pair, is_cosine) = match layout {
        SinusoidLayout::Interleaved => (feature / 2, feature % 2 == 1),
        SinusoidLayout::Concat if feature < sines => (feature, false),
        SinusoidLayout::Concat => (feature - sines, true),
    };
    let angle = position as f64 / base.powf(2.0 * pair as f64 / dim as f64);
    if is_cosine { angle.cos() } else { angle.sin() }
}

/// A table of sines and cosines, given as its width, base and layout.
fn sinusoid(prefix: &str, context: u64, table: (u64, f64, SinusoidLayout), features: &[u64]) -> Part {
    let (dim, base, layout) = table;
    let title = |text: &str| format!("{prefix}{text}");
    let length = context.clamp(2, POSITIONS);
    let value = |p, f| sine(p, f, dim, base, layout);
    let shown = dim.min(FEATURES);
    let rows = (0..length).map(|p| (0..shown).map(|f| Some(value(p, f))).collect()).collect();
    let map = Heatmap::new(&title("The table"), rows, (-1.0, 1.0), Colors::Signed)
        .axes("position", "feature")
        .sized((420.0, 300.0), true);
    let curves = curves(&title("Some features along positions"), length, features, &|p, f| {
        (f < dim).then(|| value(p, f))
    });
    let similarity = |distance: u64| {
        let product: f64 = (0..dim).map(|f| value(0, f) * value(distance, f)).sum();
        let own: f64 = (0..dim).map(|f| value(0, f).powi(2)).sum();
        // A table with a single feature is zero at position 0.
        product / own.max(1e-12)
    };
    let decay = (0..length).map(|d| (d as f64, similarity(d)));
    let decay = Chart::new(
        &title("Similarity of two positions by distance"),
        Axis::linear("distance"),
        Axis::linear("dot product, 1 for the same").including(0.0),
    )
    .with(Series::line("", decay.collect()));
    // That of the last pair, `i = dim / 2 - 1`.
    let longest = 2.0 * std::f64::consts::PI * base.powf((dim.saturating_sub(2)) as f64 / dim as f64);
    Part {
        text: "Sines and cosines of wavelengths that grow geometrically, added to the embedding. The \
               farther apart two positions are, the less alike they look, up to a distance."
            .into(),
        facts: vec![
            ("width".into(), exact(u128::from(dim))),
            ("base".into(), format!("{base}")),
            ("layout".into(), layout_word(layout).into()),
            ("longest wavelength".into(), format!("{longest:.0} positions")),
            ("context".into(), exact(u128::from(context))),
        ],
        figures: vec![map.figure(), curves, decay.figure()],
        ..Part::default()
    }
}

fn layout_word(layout: SinusoidLayout) -> &'static str {
    match layout {
        SinusoidLayout::Interleaved => "sine and cosine in turn",
        SinusoidLayout::Concat => "all sines, then all cosines",
    }
}

/// The wavelengths of rotary pairs, and how a score falls with the distance.
fn rotation(prefix: &str, context: u64, rotary: &RotaryTable) -> Part {
    let title = |text: &str| format!("{prefix}{text}");
    let shown: Vec<u64> = spaced(rotary.pairs());
    let waves = |frequency: &dyn Fn(u64) -> f64| -> Vec<(f64, f64)> {
        shown.iter().map(|pair| (*pair as f64, 2.0 * std::f64::consts::PI / frequency(*pair))).collect()
    };
    let usual = |pair: u64| rotary.inverse_frequency(pair);
    let own = waves(&usual);
    let mut lengths = Chart::new(
        &title("Wavelength of every pair of features"),
        Axis::whole("pair"),
        Axis::log("positions per turn"),
    )
    .with(Series::line(if rotary.long.is_some() { "rotary" } else { "" }, own.clone()))
    .mark_y(context as f64, &format!("context {}", exact(u128::from(context))));
    // The frequencies of long sequences may depend on the length: they are drawn for the whole context, or
    // for twice the length up to which the usual ones apply, whichever is longer.
    let long = rotary.long.as_ref().map(|rule| (rule.from, context.max(rule.from.saturating_mul(2))));
    let grown = |pair: u64| long.map_or(0.0, |(_, n)| rotary.inverse_frequency_at(n, pair));
    if let Some((from, _)) = long {
        lengths = lengths.with(Series::line(&format!("beyond {from} positions"), waves(&grown)));
    }
    // At least two positions: a single one has no distance to any other.
    let farthest = context.clamp(2, 8192);
    // About 512 points for each curve, however long the context is.
    let step = (farthest / 512).max(1);
    let decay = |frequency: &dyn Fn(u64) -> f64| -> Vec<(f64, f64)> {
        let frequencies: Vec<f64> = shown.iter().map(|pair| frequency(*pair)).collect();
        let n = frequencies.len().max(1) as f64;
        // For a query and a key whose pairs have all the same length, the score is the mean of these cosines.
        let mean = |d: u64| frequencies.iter().map(|w| (d as f64 * w).cos()).sum::<f64>() / n;
        (0..farthest).step_by(usize::try_from(step).unwrap_or(1)).map(|d| (d as f64, mean(d))).collect()
    };
    let mut scores = Chart::new(
        &title("Score of equal query and key by distance"),
        Axis::linear("distance"),
        Axis::linear("score, 1 at distance 0").including(0.0),
    )
    .with(Series::line(if long.is_some() { "rotary" } else { "" }, decay(&usual)));
    if long.is_some() {
        scores = scores.with(Series::line("beyond", decay(&grown)));
    }
    let pairs = rotary.pairs();
    let mut text =
        "Queries and keys are rotated by their position, one pair of features after the other, so that \
        a score depends on the distance alone."
            .to_owned();
    if let Some((from, _)) = long {
        let from = counted(exact(u128::from(from)), "position");
        text += &format!(" Sequences of more than {from} are rotated by other angles.");
    }
    // At the length of the context, where the angles of long sequences may apply.
    let beyond = pairs_beyond(rotary, context);
    text += &format!(" {beyond} of {} make no full turn within the context.", counted(pairs, "pair"));
    let mut facts = vec![("pairs".to_owned(), exact(u128::from(pairs)))];
    let mut extent = |of: &str, waves: &[(f64, f64)]| {
        // The factors of some rules differ from pair to pair, so that wavelengths need not grow.
        let least = waves.iter().map(|w| w.1).reduce(f64::min);
        let most = waves.iter().map(|w| w.1).reduce(f64::max);
        facts.extend(least.map(|w| (format!("shortest wavelength{of}"), format!("{w:.2}"))));
        facts.extend(most.map(|w| (format!("longest wavelength{of}"), exact(w as u128))));
    };
    extent("", &own);
    if let Some((from, _)) = long {
        extent(&format!(", beyond {}", exact(u128::from(from))), &waves(&grown));
    }
    facts.push(("context".to_owned(), exact(u128::from(context))));
    // Enough digits to know it by, and none that only say that it was computed.
    let magnitude = (rotary.magnitude * 1e4).round() / 1e4;
    facts.push(("factor on sines and cosines".to_owned(), format!("{magnitude}")));
    Part { text, facts, figures: vec![lengths.figure(), scores.figure()], ..Part::default() }
}

/// Numbers below `n`, all of them or evenly spaced ones with the first and the last.
fn spaced(n: u64) -> Vec<u64> {
    let shown = n.min(POINTS);
    // With more bits than the numbers have, because they are multiplied before they are divided.
    let last = u128::from(n.saturating_sub(1));
    let at = |i: u64| u128::from(i) * last / u128::from(shown.saturating_sub(1).max(1));
    (0..shown).filter_map(|i| u64::try_from(at(i)).ok()).collect()
}

/// Pairs that do not make a full turn within a sequence as long as the context.
fn pairs_beyond(rotary: &RotaryTable, context: u64) -> u64 {
    let frequency = |pair: u64| rotary.inverse_frequency_at(context, pair);
    let is_beyond = |pair: u64| 2.0 * std::f64::consts::PI / frequency(pair) > context as f64;
    if rotary.pairs() <= POINTS {
        return (0..rotary.pairs()).filter(|pair| is_beyond(*pair)).count() as u64;
    }
    // Bisection, for which wavelengths must grow from pair to pair, because a head may have 2^40 features in a spec that is checked and never run.
    let (mut within, mut beyond) = (0, rotary.pairs());
    while within < beyond {
        let middle = within + (beyond - within) / 2;
        if is_beyond(middle) { beyond = middle } else { within = middle + 1 }
    }
    rotary.pairs() - within
}

/// The slope of every head of ALiBi, and the bias that it gives to distances.
fn alibi(prefix: &str, context: u64, slopes: &Slopes) -> Part {
    let title = |text: &str| format!("{prefix}{text}");
    let shown = spaced(slopes.heads.get());
    let names = shown.iter().map(|h| format!("head {h}")).collect();
    let bars =
        Bars::new(&title("Slope of every head"), "lowers a score for each position between", names, |v| {
            format!("{v:.5}")
        })
        .with("", shown.iter().map(|head| slopes.slope(*head)).collect());
    let length = context.clamp(2, POSITIONS);
    let mut lines =
        Chart::new(&title("Bias by distance"), Axis::linear("distance"), Axis::linear("added to the score"));
    // A chart has eight colours, which more lines would repeat.
    let stride = shown.len().div_ceil(8).max(1);
    for head in shown.iter().step_by(stride) {
        let slope = slopes.slope(*head);
        // A straight line is drawn from its two ends.
        let points = [0, length - 1].map(|d| (d as f64, -slope * d as f64)).to_vec();
        lines = lines.with(Series::line(&format!("head {head}"), points));
    }
    let (flattest, steepest) = slopes.range();
    Part {
        text: "Scores are lowered in proportion to the distance, by another slope in every head: steep \
               heads look near, flat ones far."
            .into(),
        facts: vec![
            ("heads".into(), exact(slopes.heads.into())),
            ("steepest".into(), format!("{steepest:.5}")),
            ("flattest".into(), format!("{flattest:.6}")),
        ],
        figures: vec![bars.figure(), lines.figure()],
        ..Part::default()
    }
}

/// T5's bucket of a distance `key - query`, in single precision as in the kernel that the interpreter calls,
/// because the bucket of a distance near a boundary depends on rounding. It is written here once more, since
/// pictures are drawn in builds without kernels.
fn bucket(distance: i64, buckets: u64, max_distance: u64, bidirectional: bool) -> u64 {
    let one_side = if bidirectional { buckets / 2 } else { buckets };
    let exact = one_side / 2;
    let side = if bidirectional && distance > 0 { one_side } else { 0 };
    let far = if bidirectional { distance.unsigned_abs() } else { (-distance).max(0).unsigned_abs() };
    // With one bucket on a side there are no exact distances, and the logarithm would divide by 0.
    if far < exact || exact == 0 {
        return side + far.min(one_side.saturating_sub(1));
    }
    let part = (far as f32 / exact as f32).ln() / (max_distance as f32 / exact as f32).ln();
    let beyond = exact + (part * (one_side - exact) as f32) as u64;
    side + beyond.min(one_side.saturating_sub(1))
}

/// The bucket of every distance, and its bias in every head if the model is trained; `biases` is `[buckets,
/// heads]`.
fn t5(prefix: &str, buckets: u64, max_distance: u64, bidirectional: bool, biases: Option<&Vec<f32>>) -> Part {
    let title = |text: &str| format!("{prefix}{text}");
    // Beyond `max_distance` all distances share a bucket, which a quarter more of the axis shows.
    let most = i64::try_from(max_distance.min(4096)).unwrap_or(4096) * 5 / 4;
    let last = if bidirectional { most } else { 0 };
    let points = (-most..=last).map(|d| (d as f64, bucket(d, buckets, max_distance, bidirectional) as f64));
    let mut chart = Chart::new(
        &title("Bucket of every distance"),
        Axis::linear("position of the key minus that of the query"),
        Axis::linear("bucket").including(0.0),
    );
    let steps = Series { style: Style::Steps, ..Series::line("", points.collect()) };
    chart = chart.with(steps).mark_x(-(max_distance as f64), "max_distance");
    let mut figures = vec![chart.figure()];
    if let Some(biases) = biases {
        // The table is `[buckets, heads]`.
        let heads = biases.len() / usize::try_from(buckets).unwrap_or(usize::MAX).max(1);
        let mut lines = Chart::new(
            &title("Learned bias by distance"),
            Axis::linear("position of the key minus that of the query"),
            Axis::linear("added to the score"),
        );
        // As many lines as a chart has colours.
        for head in (0..heads).step_by(heads.div_ceil(8).max(1)) {
            let bias = |d: i64| {
                let row = usize::try_from(bucket(d, buckets, max_distance, bidirectional)).ok()?;
                let bias = f64::from(*biases.get(row * heads + head)?);
                bias.is_finite().then_some((d as f64, bias))
            };
            let points = (-most..=last).filter_map(bias).collect();
            lines =
                lines.with(Series { style: Style::Steps, ..Series::line(&format!("head {head}"), points) });
        }
        figures.push(lines.figure());
    }
    Part {
        text:
            "Every bucket has one learned bias for each head. Near distances have buckets of their own, far \
               ones share buckets that grow logarithmically."
                .into(),
        facts: vec![
            ("buckets".into(), buckets.to_string()),
            ("max_distance".into(), exact(u128::from(max_distance))),
            ("keys after the query".into(), if bidirectional { "own buckets" } else { "bucket 0" }.into()),
        ],
        figures,
        ..Part::default()
    }
}
