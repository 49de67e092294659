//! `tests/good`: a tiny spec for every part in every slot. Its graph is a snapshot; written in full, in
//! either notation, it is the same model; its parameters add up.

use std::path::Path;

use trafoc::diag::Sink;
use trafoc::ir::paths::{elements, expanded, folded};
use trafoc::ir::{Verified, print};
use trafoc::source::SourceMap;
use trafoc::spec::expand::expand;
use trafoc::syntax::{Notation, fmt};

use crate::compiled::{repository, specs};
use crate::front::Front;

/// Up to this many layers, the parameters of a model are counted one by one too.
const EXPANDED: u128 = 1_000_000;

fn sound(path: &Path) -> Front {
    let front = Front::of_file(path);
    assert!(front.codes().is_empty() && front.compilation.graph.is_some(), "\n{}", front.rendered());
    front
}

fn all() -> Vec<(String, std::path::PathBuf)> {
    specs("tests/good").into_iter().chain(specs("specs")).collect()
}

#[test]
fn graphs_are_as_before() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(repository("tests/snap/good"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    for (name, path) in specs("tests/good") {
        let graph = sound(&path).compilation.graph.unwrap();
        settings.set_description(std::fs::read_to_string(&path).unwrap());
        settings.bind(|| insta::assert_snapshot!(name, print::print(&graph, None)));
    }
}

/// Writing every default does not change the model, and writing the result again does not change the text.
#[test]
fn a_spec_written_out_is_the_same_model() {
    for (name, path) in all() {
        let spec = sound(&path).compilation.spec.unwrap();
        for notation in [Notation::Yaml, Notation::Dsl] {
            let text = expand(&spec, notation);
            let again = Front::of_text(&format!("{name}.{}", notation.extension()), &text, "specs");
            let found = again.rendered();
            assert!(found.is_empty(), "{name}\n{text}\n{found}");
            let again = again.compilation.spec.unwrap();
            assert_eq!(again, spec, "{name}\n{text}");
            assert_eq!(expand(&again, notation), text, "{name}");
        }
    }
}

/// A text in another notation.
pub fn converted(text: &str, from: Notation, to: Notation) -> String {
    let mut sources = SourceMap::new();
    let id = sources.add("spec", text);
    fmt::convert(&sources, id, from, to, &trafoc::spec::is_part, &mut Sink::new()).unwrap()
}

/// Converting to the other notation and back keeps the model.
#[test]
fn converting_a_spec_keeps_the_model() {
    for (name, path) in all() {
        let notation = Notation::from_path(path.to_str().unwrap()).unwrap();
        let other = if notation == Notation::Yaml { Notation::Dsl } else { Notation::Yaml };
        let spec = sound(&path).compilation.spec.unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let there = converted(&text, notation, other);
        let back = converted(&there, other, notation);
        for (text, notation) in [(there, other), (back, notation)] {
            let folder = path.parent().and_then(Path::to_str).unwrap();
            let again = Front::of_text(&format!("{name}.{}", notation.extension()), &text, folder);
            assert!(again.codes().is_empty(), "{name}\n{text}\n{}", again.rendered());
            assert_eq!(again.compilation.spec.unwrap(), spec, "{name}\n{text}");
        }
    }
}

/// The number of elements, in closed form over folded layers, and counted one by one.
pub fn counts(graph: &Verified) -> (u128, Option<u128>) {
    let closed = folded(graph).iter().map(|p| p.elements()).sum();
    let tensors: u128 = folded(graph).iter().map(|p| p.count).fold(0, u128::saturating_add);
    let one_by_one = || expanded(graph).unwrap().iter().map(|(_, p)| elements(&p.shape)).sum();
    (closed, (tensors <= EXPANDED).then(one_by_one))
}

#[test]
fn parameters_add_up() {
    for (name, path) in all() {
        let (closed, one_by_one) = counts(&sound(&path).compilation.graph.unwrap());
        if let Some(one_by_one) = one_by_one {
            assert_eq!(closed, one_by_one, "{name}");
        }
    }
}

/// A block of a decoder that does not attend to the encoder may assign variables.
#[test]
fn a_block_need_not_read_the_memory() {
    let text = "name: apart\nvocab: 8\ncontext: 8\nd_model: 8\n\
                encoder: {layers: 1, attention: {heads: 2}, ffn: {hidden: 8}}\n\
                decoder:\n  layers: 2\n  attention: {heads: 2}\n  cross: {heads: 2}\n  ffn: {hidden: 8}\n  \
                ranges:\n    1..2:\n      block: |\n        h = norm(x)\n        x = x + attention(h) + ffn(h)\n\
                head: translate\n";
    let front = Front::of_text("apart.yaml", text, "specs");
    assert!(front.codes().is_empty() && front.compilation.graph.is_some(), "\n{}", front.rendered());
}
