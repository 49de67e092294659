//! The command line.
use trafoc::{compile, ir, source, spec, syntax};
fn main() {
    let _ = source::SourceMap::new();
    let path = std::env::args().nth(1).unwrap_or_default();
    let mut sources = spec::load::sources();
    let id = sources.add(path.clone(), std::fs::read_to_string(&path).unwrap_or_default());
    match compile::compile(
        &mut sources,
        id,
        syntax::Notation::from_path(&path).unwrap_or(syntax::Notation::Yaml),
        &[],
        &mut spec::load::NoFiles,
    ) {
        Ok(c) => {
            for d in &c.diagnostics {
                println!("{} {:?} {} {:?}", sources.place(d.span()), d.code, d.message, d.help);
            }
            if let Some(g) = &c.graph {
                let n: u128 =
                    ir::paths::folded(g).iter().filter(|p| p.parameter.trained).map(|p| p.elements()).sum();
                println!("{}\nparameters {n}", ir::print::print(g, None));
            }
        }
        Err(bug) => println!("{bug}"),
    }
}
