//! The library: parts in the language itself that every spec can use without defining them.

use std::sync::{Arc, LazyLock};

use super::wiring::{PRELUDE, PRELUDE_NAME};
use crate::diag::Sink;
use crate::field::Context;
use crate::field::definition::Definition;
use crate::parts::own;
use crate::source::SourceMap;
use crate::syntax::{self, Notation};

/// The texts of the library, each with the slot that its parts fit into: those that see one position, and those that read
/// others.
pub const TEXTS: [(&str, &str); 3] = [
    (include_str!("feed_forward.trafo"), "ffn"),
    (include_str!("mixing.trafo"), "attention"),
    (include_str!("recurrent.trafo"), "attention"),
];

/// The texts of the library, one after the other.
pub const LIBRARY: &str = concat!(
    include_str!("feed_forward.trafo"),
    include_str!("mixing.trafo"),
    include_str!("recurrent.trafo")
);
/// The file name of the library in diagnostics.
pub const LIBRARY_NAME: &str = "<library>";

/// A map of sources that contains only the prelude and the library.
pub fn sources() -> SourceMap {
    let mut sources = SourceMap::new();
    sources.add(PRELUDE_NAME, PRELUDE);
    sources.add(LIBRARY_NAME, LIBRARY);
    sources
}

/// Read only once: the places are the same in every map that [`sources`] begins.
static PARTS: LazyLock<Vec<Arc<Definition>>> = LazyLock::new(|| {
    let (sources, mut sink) = (sources(), Sink::new());
    let library = sources.iter().find(|(_, source)| source.name == LIBRARY_NAME);
    let tree = library.and_then(|(id, _)| syntax::parse(&sources, id, Notation::Dsl, &mut sink));
    let own = tree.as_ref().and_then(|tree| tree.get("parts"));
    let given = own::definitions::Given { own, used: None, library: &[] };
    // A test checks that the language has none of the names already.
    let parts = own::definitions::read(given, &|_| false, &mut Context::new(&sources, &mut sink)).all;
    let with_slot = |part: Arc<Definition>| {
        let header = format!("part {}(", part.name);
        let of = |(text, slot): (&str, &'static str)| text.contains(&header).then_some(slot);
        let slot = TEXTS.into_iter().find_map(of);
        Arc::new(Definition { slot, ..Arc::unwrap_or_clone(part) })
    };
    parts.into_iter().map(with_slot).collect()
});

/// The parts of the library if it is the second of the sources, otherwise none.
pub fn parts(sources: &SourceMap) -> &'static [Arc<Definition>] {
    let has_it = sources.iter().nth(1).is_some_and(|(_, source)| source.name == LIBRARY_NAME);
    if has_it { &PARTS } else { &[] }
}

/// The parts of the library.
pub fn all() -> &'static [Arc<Definition>] {
    &PARTS
}

/// Whether the library has a part of that name.
pub fn has(name: &str) -> bool {
    all().iter().any(|part| part.name == name)
}
