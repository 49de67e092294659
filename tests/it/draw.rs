//! Pictures: every shipped spec has one, nothing in it overlaps, and no name can inject markup.

use trafoc::draw::chart::{Axis, Chart, Series};
use trafoc::draw::heatmap::Heatmap;
use trafoc::draw::model::layout::{Spot, Wire, layout};
use trafoc::draw::model::outline;
use trafoc::draw::model::outline::{Form, Outline};
use trafoc::draw::model::{Changes, changes, dot, mermaid, page, picture, side_by_side};
use trafoc::draw::page::{Cell, Column, Page, Section, Table};
use trafoc::draw::scale::{Colors, Scale, Unit};
use trafoc::draw::{raster, text};

use crate::compiled::{repository, specs};
use crate::front::Front;

/// The outline of a spec's text.
fn outlined(name: &str, source: &str) -> (Front, Outline) {
    let front = Front::of_text(name, source, "specs");
    let graph = front.compilation.graph.as_ref().unwrap_or_else(|| panic!("{name}\n{}", front.rendered()));
    let found = outline(graph, &front.sources);
    (front, found)
}

fn shipped(name: &str) -> Outline {
    let source = std::fs::read_to_string(repository(&format!("specs/{name}.yaml"))).unwrap();
    outlined(&format!("{name}.yaml"), &source).1
}

/// Asserts that every element is closed, in order, and that there is nothing outside of the root.
fn assert_well_formed(name: &str, text: &str) {
    let mut open: Vec<&str> = Vec::new();
    for piece in text.split('<').skip(1) {
        let (tag, _) = piece.split_once('>').unwrap_or_else(|| panic!("{name}: `<{piece}` does not end"));
        if let Some(closed) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(closed), "{name}: </{closed}>");
        } else if !tag.ends_with('/') {
            open.push(tag.split_whitespace().next().unwrap());
        }
    }
    assert!(open.is_empty(), "{name}: {open:?} stay open");
    assert!(!text.contains("NaN") && !text.contains("inf\""), "{name}: a coordinate is no number");
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{name}: a control character");
}

fn overlap(a: &Spot, b: &Spot) -> bool {
    (a.x - b.x).abs() < (a.w + b.w) / 2.0 - 0.5 && (a.y - b.y).abs() < (a.h + b.h) / 2.0 - 0.5
}

/// All shipped specs and those of the tests.
fn all() -> Vec<(String, Outline)> {
    let mut found = Vec::new();
    for folder in ["specs", "tests/good"] {
        for (name, path) in specs(folder) {
            let front = Front::of_file(&path);
            if let Some(graph) = &front.compilation.graph {
                found.push((name, outline(graph, &front.sources)));
            }
        }
    }
    for (name, text) in crate::wires::own() {
        found.push((name.to_owned(), outlined(&format!("{name}.yaml"), &text).1));
    }
    found
}

#[test]
fn every_spec_has_a_picture_in_which_nothing_overlaps() {
    let all = all();
    assert!(all.len() > 100, "{}", all.len());
    for (name, outline) in &all {
        let figure = picture(outline);
        let text = figure.svg();
        assert_well_formed(name, &text);
        assert_eq!(text, picture(outline).svg(), "{name}");
        assert!(text.len() < 100_000, "{name}: {} bytes", text.len());
        let scene = layout(outline);
        for (i, (spot, item)) in scene.items.iter().enumerate() {
            assert!(spot.x - spot.w / 2.0 >= -0.5, "{name}: {} is cut at the left", item.label);
            assert!(spot.x + spot.w / 2.0 <= scene.reach.1 + 0.5, "{name}: {} is cut", item.label);
            assert!(spot.y - spot.h / 2.0 >= -0.5, "{name}: {} is cut at the top", item.label);
            for (other, label) in scene.items.iter().skip(i + 1).map(|(s, i)| (s, &i.label)) {
                assert!(!overlap(spot, other), "{name}: {} and {label} overlap", item.label);
            }
        }
        let words = scene.panels.iter().map(|panel| (panel.spot(), "words beside a frame"));
        let things = scene.items.iter().map(|(spot, item)| (*spot, item.label.as_str())).chain(words);
        for (spot, label) in things {
            // What is as wide as it is high and has no words is a circle, which is smaller than its square.
            let is_circle = matches!(label, "+" | "×") && spot.w == spot.h;
            let crosses = |pair: &[(f64, f64)]| match is_circle {
                true => distance(&segment(pair), (spot.x, spot.y)) < spot.w / 2.0 - 0.5,
                false => overlap(&spot, &segment(pair)),
            };
            let crossing = scene.wires.iter().find(|wire| wire.points.windows(2).any(crosses));
            assert!(crossing.is_none(), "{name}: a wire crosses {label}: {crossing:?}");
        }
    }
}

/// Lines that carry different values are told apart: where two of them run side by side, each has a height or a
/// lane of its own, unless both end at the same place below a box.
#[test]
fn lines_of_different_values_do_not_run_on_each_other() {
    let block = |block: &str| {
        let block: String = block.lines().map(|line| format!("    {line}\n")).collect();
        format!(
            "name: m\nvocab: 8\ncontext: 16\nd_model: 48\ndecoder:\n  layers: 2\n  attention: {{heads: 4}}\n  block: |\n{block}head: lm\n"
        )
    };
    let cross = "name: m\nsource_vocab: 8\nvocab: 8\ncontext: 16\nd_model: 48\nencoder: {layers: 1, attention: {heads: 4}}\n\
         decoder:\n  layers: 2\n  attention: {heads: 4}\n  block: |\n    h = norm(x)\n    \
         x = x + 0.7 * attention(h) + 0.3 * cross(h, memory)\nhead: translate\n";
    let mut all = all();
    for (name, source) in [
        ("factors", block("h = norm(x)\na = attention(h)\nb = ffn(h)\nx = norm(2 * x + 0.3 * b + 0.7 * a)")),
        ("gain", block("h = norm(x)\nx = x + 0.5 * attention(h) + gain(ffn(h))")),
        (
            "twice",
            block(
                "a = norm(x)\nh = x + 0.5 * attention(a) + gain(ffn[one](a))\ng = norm(h)\nx = h + ffn[two](g) + 0.1 * attention[late](g) + x",
            ),
        ),
        ("cross", cross.to_owned()),
        ("three", block("x = x + attention(norm(x)) + ffn(norm(x)) + adapter(norm(x))")),
        ("five", block("h = norm(x)\nx = x + attention(h) + ffn[a](h) + ffn[b](h) + ffn[c](h) + ffn[d](h)")),
    ] {
        all.push((name.to_owned(), outlined(&format!("{name}.yaml"), &source).1));
    }
    for (name, outline) in &all {
        let wires = layout(outline).wires;
        for (i, one) in wires.iter().enumerate() {
            for other in wires.iter().skip(i + 1) {
                let ends = |wire: &Wire| (wire.points[0], wire.points[wire.points.len() - 1]);
                let ((start, end), (other_start, other_end)) = (ends(one), ends(other));
                // What comes to a side has a place of its own there.
                let lies = one.points[one.points.len() - 2].1 == end.1;
                if start == other_start || (end == other_end && !lies) {
                    continue;
                }
                for (a, b) in one.points.windows(2).flat_map(|a| other.points.windows(2).map(move |b| (a, b)))
                {
                    assert!(!run_together(&segment(a), &segment(b)), "{name}: {one:?} and {other:?}");
                }
            }
        }
    }
    // A line from further away is above the others, which it would cross otherwise.
    let three = layout(&all.iter().find(|(name, _)| name == "three").unwrap().1).wires;
    for (i, one) in three.iter().enumerate() {
        for other in three.iter().skip(i + 1) {
            let crosses = |a: &[(f64, f64)], b: &[(f64, f64)]| {
                let (lies, stands) = (segment(a), segment(b));
                lies.h == 0.0
                    && stands.w == 0.0
                    && (lies.x - stands.x).abs() < lies.w / 2.0 - 1.0
                    && (lies.y - stands.y).abs() < stands.h / 2.0 - 1.0
            };
            let mut pairs = one.points.windows(2).flat_map(|a| other.points.windows(2).map(move |b| (a, b)));
            assert!(!pairs.any(|(a, b)| crosses(a, b) || crosses(b, a)), "{one:?} and {other:?}");
        }
    }
    // The factors are in the order of what they multiply.
    let scene = layout(&all.iter().find(|(name, _)| name == "factors").unwrap().1);
    let at = |label: &str| scene.items.iter().find(|(_, item)| item.label == label).unwrap().0.x;
    assert!(at("Multi-head attention") < at("Feed-forward") && at("× 0.7") < at("× 0.3"));
}

/// Whether two pieces of lines share a way and not only a point.
fn run_together(a: &Spot, b: &Spot) -> bool {
    let common = |a: f64, b: f64, w: f64, v: f64| (w + v) / 2.0 - (a - b).abs();
    let (across, up) = (common(a.x, b.x, a.w, b.w), common(a.y, b.y, a.h, b.h));
    let lies = |s: &Spot| s.h < 0.5 && s.w > 0.5;
    let stands = |s: &Spot| s.w < 0.5 && s.h > 0.5;
    (lies(a) && lies(b) && across > 2.0 && up > -4.0) || (stands(a) && stands(b) && up > 2.0 && across > -4.0)
}

/// How far a piece of a wire is from a point.
fn distance(piece: &Spot, (x, y): (f64, f64)) -> f64 {
    let beyond = |a: f64, b: f64, w: f64| ((a - b).abs() - w / 2.0).max(0.0);
    beyond(piece.x, x, piece.w).hypot(beyond(piece.y, y, piece.h))
}

/// A piece of a wire, as thin as it is; wires end at the borders of boxes, not inside.
fn segment(pair: &[(f64, f64)]) -> Spot {
    let &[(x, y), (to_x, to_y)] = pair else { panic!("two points") };
    Spot { x: (x + to_x) / 2.0, y: (y + to_y) / 2.0, w: (x - to_x).abs(), h: (y - to_y).abs() }
}

/// A learned gain multiplies, and no picture says that it is added.
#[test]
fn products_and_sums_have_their_signs() {
    let source = std::fs::read_to_string(repository("tests/good/wiring-layer_scale.yaml")).unwrap();
    let (_, found) = outlined("layer_scale.yaml", &source);
    let svg = picture(&found).svg();
    // Items are drawn in groups, a circle with its sign in one.
    let circles: Vec<&str> = svg.split("<g ").filter(|group| group.contains("<circle")).collect();
    let is_cross = |group: &&&str| {
        let lines: Vec<&str> = group.split("<line ").skip(1).collect();
        let at = |line: &str, name: &str| -> f64 {
            let (_, rest) = line.split_once(&format!("{name}=\"")).unwrap();
            rest.split('"').next().unwrap().parse().unwrap()
        };
        let leans = |line: &&str| at(line, "x1") != at(line, "x2") && at(line, "y1") != at(line, "y2");
        let leaning = lines.iter().filter(|line| leans(line)).count();
        assert!(lines.len() == 2 && leaning != 1, "{group}");
        leaning == 2
    };
    // Two gains and two residual sums.
    assert_eq!((circles.len(), circles.iter().filter(is_cross).count()), (4, 2));
    let text = dot::dot(&found);
    assert_eq!(text.matches("label=\"×\"").count(), 2, "{text}");
    assert_eq!(trafoc::ir::text::factor(-1.0), "−1");
}

/// The box of attention says what it does in addition to the usual.
#[test]
fn a_box_of_attention_names_its_choices() {
    let notes = |fields: &str| {
        let source = format!(
            "trafo: 1\nname: a\nd_model: 64\nvocab: 9\ncontext: 128\n\
             decoder: {{layers: 1, attention: {{heads: 4{fields}}}}}\nhead: lm\n"
        );
        let text = mermaid::mermaid(&outlined("a.yaml", &source).1);
        let line = text.lines().find(|line| line.contains("Multi-head attention")).unwrap().to_owned();
        line.split("<br>").nth(2).unwrap_or_default().to_owned()
    };
    assert!(notes("").starts_with("causal"));
    assert_eq!(notes(", qk_norm: {norm: rms_norm}"), "QK norm");
    assert_eq!(
        notes(", value_dim: 32, qk_norm: {norm: rms_norm}, gate: headwise, clip: 8"),
        "values × 32 · QK norm · clipped at ±8 · gated by head"
    );
    assert_eq!(notes(", gate: elementwise"), "gated");
}

/// What an encoder reads leads to the encoder's column, whether that is a text or an image.
#[test]
fn every_input_leads_to_its_own_stack() {
    for name in ["patches-source", "patches-source-registers"] {
        let source = std::fs::read_to_string(repository(&format!("tests/good/{name}.yaml"))).unwrap();
        let (_, found) = outlined(&format!("{name}.yaml"), &source);
        assert_eq!(found.summary[0], "encoder-decoder");
        let [encoder, decoder] = found.columns.as_slice() else { panic!("two columns") };
        let labels = |column: &trafoc::draw::model::outline::Column| -> Vec<String> {
            column.flow.items.iter().map(|item| item.label.clone()).collect()
        };
        let (encoder, decoder) = (labels(encoder), labels(decoder));
        for label in ["image", "Patch embedding", "Class token", "Learned positions"] {
            assert!(encoder.iter().any(|l| l == label), "{name}: {label} of {encoder:?}");
        }
        for label in ["target", "Token embedding", "Learned positions", "logits"] {
            assert!(decoder.iter().any(|l| l == label), "{name}: {label} of {decoder:?}");
        }
        assert!(!decoder.iter().any(|l| l == "image" || l == "Class token"), "{decoder:?}");
    }
}

#[test]
fn every_layer_of_a_block_is_in_its_picture() {
    let gpt1 = shipped("gpt1");
    let [column] = gpt1.columns.as_slice() else { panic!("one column") };
    let stacks: Vec<_> = column.flow.items.iter().filter(|i| matches!(i.form, Form::Stack(_))).collect();
    let [stack] = stacks.as_slice() else { panic!("one stack") };
    let Form::Stack(parts) = &stack.form else { panic!("a stack") };
    assert_eq!(parts[0].times, "× 12");
    let labels: Vec<&str> = parts[0].frames[0].flow.items.iter().map(|i| i.label.as_str()).collect();
    assert_eq!(labels, ["Multi-head attention", "+", "LayerNorm", "Feed-forward", "+", "LayerNorm"]);
}

#[test]
fn other_programs_are_given_the_same_outline() {
    let mut said = String::new();
    for name in ["gbt-mulm", "d2l-nmt"] {
        let outline = shipped(name);
        said += &format!("{}\n{}\n", dot::dot(&outline), mermaid::mermaid(&outline));
    }
    insta::with_settings!({ snapshot_path => "../snap/draw", prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("outlines", said);
        insta::assert_snapshot!("gbt-mulm", picture(&shipped("gbt-mulm")).svg());
    });
}

#[test]
fn what_differs_between_two_models_is_found() {
    let (gpt1, gpt2) = (shipped("gpt1"), shipped("gpt2-small"));
    let (left, right) = changes(&gpt1, &gpt2);
    assert!(!left.is_empty() && right.len() > left.len(), "{left:?} {right:?}");
    assert!(changes(&gpt1, &gpt1).0.is_empty());
    // The mark of the output is beside its words.
    let width = layout(&gpt1).items.iter().find(|(_, item)| item.label == "logits").unwrap().0.w;
    let both = side_by_side(&[gpt1, gpt2], &[left, right]);
    let svg = both.svg();
    let number = |text: &str, name: &str| -> f64 {
        let (_, rest) = text.split_once(&format!(" {name}=\"")).unwrap();
        rest.split_once('"').unwrap().0.parse().unwrap()
    };
    let (_, after) = svg.split_once(">logits</text>").unwrap();
    let middle = number(svg[..svg.len() - after.len()].rsplit_once("<text").unwrap().1, "x");
    let mark = number(after.split_once("<circle").unwrap().1, "cx");
    assert!(mark - 7.5 >= middle + width / 2.0 && mark < middle + width, "{mark} and {middle} ± {width}");
    assert_well_formed("gpt1 and gpt2-small", &both.svg());
    assert!(both.svg().contains("stroke-changed thick"));
}

/// The norms of a block are numbered by its equations; they are matched by what they normalise and what reads
/// them.
#[test]
fn norms_are_matched_by_their_place() {
    let model = |block: &str| {
        let text = format!(
            "name: m\nvocab: 8\ncontext: 16\nd_model: 48\ndecoder: {{layers: 2, block: {block}, attention: {{heads: 4}}}}\nhead: lm\n"
        );
        outlined("m.yaml", &text).1
    };
    // The boxes of a block in the order of computation, each with the sign of its change.
    let marked = |outline: &Outline, changes: &Changes| -> String {
        let [column] = outline.columns.as_slice() else { panic!("one column") };
        let parts = column.flow.items.iter().find_map(|item| match &item.form {
            Form::Stack(parts) => Some(parts),
            _ => None,
        });
        let items = &parts.unwrap()[0].frames[0].flow.items;
        let boxes = items.iter().filter(|item| matches!(item.form, Form::Box(_)));
        let signs = boxes.map(|item| {
            let word = item.label.split(' ').next_back().unwrap().to_owned();
            changes.item(item).map_or("", |change| change.sign()).to_owned() + &word
        });
        signs.collect::<Vec<_>>().join(" ")
    };
    let both = |first: &str, second: &str| {
        let (first, second) = (model(first), model(second));
        let (left, right) = changes(&first, &second);
        (marked(&first, &left), marked(&second, &right))
    };
    let (pre, sandwich) = both("pre_norm", "sandwich");
    assert_eq!(pre, "LayerNorm attention LayerNorm Feed-forward");
    assert_eq!(sandwich, "LayerNorm attention +LayerNorm LayerNorm Feed-forward +LayerNorm");
    // A norm that more boxes read is the same norm; one that moves into the residual stream is another.
    let (pre, parallel) = both("pre_norm", "parallel");
    assert_eq!(pre, "LayerNorm attention −LayerNorm Feed-forward");
    assert_eq!(parallel, "LayerNorm attention Feed-forward");
    let (pre, post) = both("pre_norm", "post_norm");
    assert_eq!(pre, "−LayerNorm attention −LayerNorm Feed-forward");
    assert_eq!(post, "attention +LayerNorm Feed-forward +LayerNorm");
}

const HOSTILE: &str = "name: \"</script><b>x\\u202e \\u05d0 \\\" onload=alert(1) ]]> --> &amp;\"\nvocab: 32\n\
    context: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n";

#[test]
fn a_name_is_text_wherever_it_stands() {
    let (front, hostile) = outlined("hostile.yaml", HOSTILE);
    assert_well_formed("svg", &picture(&hostile).svg());
    let graph = front.compilation.graph.as_ref().unwrap();
    let html = page::page(&hostile, graph, &front.sources).html();
    assert_eq!(html.matches("<script").count(), 1);
    assert_eq!(html.matches("</script>").count(), 1);
    assert!(!html.contains("<b>") && !html.contains('\u{202e}') && html.contains("\\u{202e}"));
    for text in [dot::dot(&hostile), mermaid::mermaid(&hostile)] {
        assert!(!text.contains('\u{202e}') && !text.contains("\u{5d0} \" onload"), "{text}");
    }
    let mut table = Table::new("<i>", vec![Column::words("</th>"), Column::numbers("n")]);
    table.rows.push(vec![Cell::text("<img src=x onerror=alert(1)>"), Cell::number("1", 1.0)]);
    let page = Page::new("<title>", "'\"").with(Section::new("</h2>").table(&table).text("</p>"));
    let html = page.html();
    assert!(!html.contains("<img") && !html.contains("<i>"), "{html}");
}

#[test]
fn a_page_asks_for_nothing() {
    let (front, gpt) =
        outlined("gemma.yaml", &std::fs::read_to_string(repository("specs/gemma2-2b.yaml")).unwrap());
    let html = page::page(&gpt, front.compilation.graph.as_ref().unwrap(), &front.sources).html();
    assert!(html.contains("default-src 'none'"));
    // A phone scrolls a picture whose words could not be read at its own width.
    assert!(html.contains("style=\"--width:") && html.contains("px;--whole:"), "{html}");
    assert!(!html.contains("http://") && !html.contains("https://") && !html.contains("url("));
    assert!(html.len() < 200_000, "{}", html.len());
}

/// What the boxes of a picture refer to is the author's text, and not what trafoc reads before it.
#[test]
fn a_page_shows_the_spec_and_not_the_library() {
    let folder = tempfile::tempdir().unwrap();
    let said = crate::cli::trafoc_in(folder.path(), &["draw", "@gpt1", "--out", "gpt.html"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let page = std::fs::read_to_string(folder.path().join("gpt.html")).unwrap();
    let sources: Vec<&str> =
        page.split("tabindex=\"0\" data-source=\"").skip(1).filter_map(|r| r.split('"').next()).collect();
    assert_eq!(sources, ["@gpt1"]);
}

#[test]
fn scales_have_round_ticks_that_stay_inside() {
    for (low, high) in [(0.0, 1.0), (-3.7, 12.0), (0.0, 1.2e9), (1e-6, 2e-6), (5.0, 5.0), (0.0, 0.0)] {
        let scale = Scale::around([low, high]);
        let ticks = scale.ticks();
        assert!((2..=13).contains(&ticks.len()), "{low} {high}: {ticks:?}");
        assert!(ticks.iter().all(|(v, _)| (-1e-9..=1.0 + 1e-9).contains(&scale.share(*v))), "{ticks:?}");
        let words: std::collections::BTreeSet<&String> = ticks.iter().map(|(_, word)| word).collect();
        assert_eq!(words.len(), ticks.len(), "{ticks:?}");
    }
    assert_eq!(Scale::log([3.0, 4000.0]).ticks().len(), 5);
}

#[test]
fn figures_bear_any_numbers() {
    for values in [vec![], vec![f64::NAN], vec![0.0, f64::INFINITY], vec![1.0, 2.0, f64::NAN, 4.0]] {
        let points: Vec<(f64, f64)> = values.iter().enumerate().map(|(i, v)| (i as f64, *v)).collect();
        let chart = Chart::new("t", Axis::linear("x"), Axis::log("y"));
        let band = points.iter().map(|(x, y)| (*x, y - 1.0, y + 1.0)).collect();
        let chart = chart.with(Series::line("a", points.clone()).with_band(band));
        let chart = chart.with(Series::points("b", points, vec!["<".into(), "\u{202e}".into()]));
        assert_well_formed("chart", &chart.figure().svg());
        let row = values.iter().map(|v| Some(*v)).collect();
        assert_well_formed(
            "heatmap",
            &Heatmap::new("h", vec![row], (0.0, 0.0), Colors::Signed).figure().svg(),
        );
    }
    let large = vec![vec![Some(0.5); 3000]; 3000];
    let figure = Heatmap::new("large", large, (0.0, 1.0), Colors::Rising).figure();
    assert!(figure.svg().len() < 150_000, "{}", figure.svg().len());
}

/// A point to which no line leads is drawn as a dot: the only evaluation so far, or one between two gaps.
#[test]
fn a_point_without_neighbours_is_seen() {
    let dots = |values: &[f64]| {
        let points = values.iter().enumerate().map(|(i, v)| (i as f64, *v)).collect();
        let chart = Chart::new("t", Axis::linear("x"), Axis::linear("y")).with(Series::line("", points));
        chart.figure().svg().matches("<circle").count()
    };
    assert_eq!((dots(&[1.0]), dots(&[1.0, 2.0]), dots(&[1.0, f64::NAN, 2.0, f64::NAN, 3.0, 4.0])), (1, 0, 2));
}

#[test]
fn text_is_measured_and_shortened() {
    assert!(text::width("iii", 10.0) < text::width("MMM", 10.0));
    let short = text::fit("a rather long name", 10.0, 40.0);
    assert!(short.ends_with('…') && text::width(&short, 10.0) <= 40.0, "{short}");
    // Joiners are a part of how some words are spelled, and hidden in others.
    for word in ["می\u{200c}خواهم", "क्\u{200d}ष", "👩\u{200d}💻"] {
        assert_eq!(text::escape(word), word);
    }
    assert_eq!(text::escape("a\u{200c}b\u{200d}"), "a\\u{200c}b\\u{200d}");
    assert_eq!(text::coordinate(-0.001), "0");
    assert_eq!(text::coordinate(12.5), "12.5");
}

#[test]
fn the_gallery_shows_what_the_program_draws_now() {
    let page = std::fs::read_to_string(repository("docs/gallery.md")).unwrap();
    let mut stale = Vec::new();
    let mut shown = 0;
    for line in page.lines() {
        let Some(command) = line.trim().strip_prefix("trafoc ") else { continue };
        let needs_tensors = command.contains("--inputs") || command.contains("inspect init");
        // They need the interpreter, and most of them a run that is not in the repository.
        if needs_tensors {
            continue;
        }
        let (arguments, file) = command.split_once(" --out ").unwrap();
        let path = repository(file.trim());
        let new = tempfile::tempdir().unwrap();
        let out = new.path().join(path.file_name().unwrap());
        let mut program = crate::compiled::program();
        let status = program.args(arguments.split(' ')).arg("--out").arg(&out).output().unwrap();
        assert!(status.status.success(), "{command}");
        let text = std::fs::read_to_string(&out).unwrap();
        shown += 1;
        if std::fs::read_to_string(&path).is_ok_and(|old| old == text) {
            continue;
        }
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        stale.push(file.trim().to_owned());
    }
    assert!(shown > 5);
    assert!(stale.is_empty(), "{stale:?} were stale and have been written anew; run the test again");
}

/// The bytes are those of another writer of PNG files (Python's zlib, uncompressed).
#[test]
fn a_raster_is_a_png_file() {
    let palette = [[1, 2, 3], [4, 5, 6], [7, 8, 9]];
    let wanted = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAMAAAACCAMAAACqqpYoAAAACVBMVEUBAgMEBQYHCAklhVbw\
                  AAAAE0lEQVR4AQEIAPf/AAABAgD//gEFEgICZK7yCAAAAABJRU5ErkJggg==";
    assert_eq!(raster::data(3, 2, &[0, 1, 2, 255, 254, 1], &palette), wanted);
}

/// Bytes are written in units of 1024 everywhere, and so are the ticks of an axis of bytes.
#[test]
fn axes_of_bytes_have_round_numbers_of_bytes() {
    let words = |unit, high: f64| -> Vec<String> {
        Scale::counting(unit, [0.0, high]).ticks().into_iter().map(|(_, word)| word).collect()
    };
    let gib = 1024f64.powi(3);
    assert_eq!(words(Unit::Bytes, 23.2 * gib), ["0", "5 GiB", "10 GiB", "15 GiB", "20 GiB", "25 GiB"]);
    assert_eq!(words(Unit::Bytes, 104.0 * 1024.0)[1], "20 KiB");
    assert_eq!(words(Unit::Bytes, 3.0), ["0", "1 B", "2 B", "3 B"]);
    assert_eq!(words(Unit::Operations, 5.45e9).last().unwrap(), "6 G");
    assert_eq!(words(Unit::Operations, 239.6e3).last().unwrap(), "250 k");
    assert_eq!(words(Unit::Count, 5.45e9).last().unwrap(), "6 B");
}

/// What a phone shows as a card needs the title of every cell; two columns fit as they are.
#[test]
fn cells_of_wide_tables_name_their_columns() {
    let table = |count: usize| {
        let mut table = Table::new("", (0..count).map(|i| Column::words(&format!("c<{i}>"))).collect());
        table.rows.push((0..count).map(|i| Cell::text(format!("a.b{i}")).class("code")).collect());
        Page::new("t", "").with(Section::new("s").table(&table)).html()
    };
    assert!(!table(2).contains("data-title=\""));
    assert!(table(3).contains("data-title=\"c&lt;2&gt;\"") && table(3).contains("class=\"cards\""));
    assert!(table(9).contains("class=\"cards many\""));
    // A path may break after a dot, a value may not.
    assert!(table(3).contains("a.<wbr>b0") && table(3).contains("a.b1"));
}

/// Of many different blocks each is drawn open once, and beside each frame is what a reader needs of it.
#[test]
fn every_block_of_a_long_stack_is_drawn() {
    let model = |stack: &str| {
        let text = format!(
            "name: m\nvocab: 8\ncontext: 64\nd_model: 48\ndecoder:\n  attention: {{heads: 4}}\n{stack}head: lm\n"
        );
        outlined("m.yaml", &text).1
    };
    let frames = |outline: &Outline| -> Vec<String> {
        let scene = layout(outline);
        let borders = scene.borders.iter().filter_map(|border| Some((border.frame?, border.is_closed)));
        let words = borders.map(|(frame, is_closed)| {
            let beside = scene.panels.iter().any(|panel| {
                panel.lines.iter().any(|(_, line)| *line == frame.layers)
                    && frame.equations.iter().all(|one| panel.lines.iter().any(|(_, line)| line == one))
            });
            assert!(beside, "{frame:?}");
            format!("{} {}{}", frame.title, frame.layers, if is_closed { ", closed" } else { "" })
        });
        words.collect()
    };
    let ranges = "  layers: 5\n  ranges: {\"1\": {ffn: glu}, \"2\": {ffn: {expansion: 3}}, \"3\": {ffn: {expansion: 2}}, \
                  \"4\": {ffn: {activation: relu}}}\n";
    assert_eq!(
        frames(&model(ranges)),
        ["Block layer 0", "Block2 layer 1", "Block3 layer 2", "Block4 layer 3", "Block5 layer 4"]
    );
    let runs = "  layers: 27\n  blocks:\n    a: {attention: {mask: {window: 16}}}\n    b: {ffn: glu}\n    \
                c: {block: \"x = x + ffn(norm(x))\"}\n  runs:\n    - {count: 4, cycle: [a]}\n    \
                - {count: 9, cycle: [a, b, c]}\n    - {count: 2, cycle: [c]}\n    - {count: 12, cycle: [a, a, b]}\n";
    assert_eq!(
        frames(&model(runs)),
        [
            "ABlock layers 0–3",
            "ABlock layers 4, 7, 10, closed",
            "BBlock layers 5, 8, 11",
            "CBlock layers 6, 9, 12",
            "CBlock layers 13–14, closed",
            "ABlock layers 15–16, 18–19, .. 24–25, closed",
            "BBlock layers 17, 20, .. 26, closed",
        ]
    );
}
