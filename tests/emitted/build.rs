//! Emits Rust for every spec of `tests/good`, for reduced versions of those in `specs`, for the models of
//! `tests/hub`, for random specs and for those with hostile names, with a test for each, which `tests/equal.rs`
//! includes.

#[cfg(feature = "models")]
#[path = "../it/random.rs"]
mod random;

#[cfg(feature = "models")]
mod listed;

#[cfg(feature = "models")]
mod emission {
    use std::fmt::Write as _;
    use std::path::{Path, PathBuf};

    use syn::{FnArg, ImplItem, ImplItemFn, Item, Pat, Type};
    use trafoc::emit::rust::{self, Form};
    use trafoc::ir::Verified;
    use trafoc::source::SourceMap;

    use crate::listed::{self, Listed};

    /// The number of random specs.
    const RANDOM: u64 = 40;
    /// Shipped specs that are also emitted for burn alone; between them they use most kernels.
    const STANDALONE: &[&str] =
        &["d2l-nmt", "deepseek-v3-tiny", "gbt-mulm", "gemma2-2b", "mixtral-8x7b", "t5-small", "vit"];

    /// Emits everything into the build's output folder.
    pub fn run() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo names a folder"));
        for folder in [
            "specs",
            "tests/good",
            "tests/hub",
            "tests/it/random.rs",
            "tests/emitted/listed.rs",
            "tests/emitted/small.txt",
            "tests/emitted/names.txt",
        ] {
            println!("cargo::rerun-if-changed={}", root.join(folder).display());
        }
        let mut cases = String::new();
        for listed in listed::all(&root, &out, RANDOM, &["tests/emitted/names.txt"]) {
            write_case(&root, &out, &listed, &mut cases);
        }
        std::fs::write(out.join("cases.rs"), cases).expect("cases.rs can be written");
    }

    fn write_case(root: &Path, out: &Path, listed: &Listed, cases: &mut String) {
        let (spec, settings) = (&listed.spec, &listed.settings);
        let (graph, sources) = listed.compiled(root);
        let text = rust::source(&graph, &sources, spec, Form::Kernels).expect("no fault of trafoc");
        if listed::is_large(&graph) {
            return;
        }
        let short = listed.name();
        let module = rust::name::file(&short);
        let file = out.join(format!("{module}.rs"));
        std::fs::write(&file, &text).expect("a model can be written");
        let _ = write!(cases, "#[path = {:?}]\npub mod {module};\n", file.display().to_string());
        if short.starts_with("named_") {
            write_program(&graph, &sources, &module, out, cases);
        }
        let _ = writeln!(cases, "{}", test(&graph, spec, settings, &module, &text, "0.0"));
        if STANDALONE.iter().any(|known| *spec == format!("specs/{known}.yaml")) {
            let text = rust::source(&graph, &sources, spec, Form::Standalone).expect("no fault of trafoc");
            assert!(!text.contains("trafoc_kernels"), "{spec} does not need burn alone");
            let module = format!("{module}_standalone");
            let file = out.join(format!("{module}.rs"));
            std::fs::write(&file, &text).expect("a model can be written");
            let _ = write!(cases, "#[path = {:?}]\npub mod {module};\n", file.display().to_string());
            let _ = writeln!(cases, "{}", test(&graph, spec, settings, &module, &text, "ROUNDING"));
        }
    }

    /// The program of the spec's crate, compiled where the crate is a module.
    fn write_program(graph: &Verified, sources: &SourceMap, case: &str, out: &Path, cases: &mut String) {
        let files = rust::krate(graph, sources, case, Form::Kernels).expect("no fault of trafoc");
        let module = rust::name::file(&graph.name);
        let text = |path: &str| {
            let found = files.iter().find(|(name, _)| name == path);
            found.unwrap_or_else(|| panic!("{case}: no {path}")).1.clone()
        };
        let folder = out.join(case);
        std::fs::create_dir_all(&folder).expect("the name can be written");
        let own =
            |text: String| text.lines().filter(|l| !l.starts_with("//!")).collect::<Vec<_>>().join("\n");
        let program = format!("use super::{module};\n{}", own(text("src/main.rs")));
        std::fs::write(folder.join("program.rs"), program).expect("a program can be written");
        std::fs::write(folder.join("model.rs"), text(&format!("src/{module}.rs"))).expect("a model, too");
        let _ = writeln!(
            cases,
            "#[allow(dead_code, clippy::module_inception)]\nmod crate_{case} {{\npub mod {module} {{\n#[path = {:?}]\npub mod {module};\n}}\n\
             #[path = {:?}]\nmod program;\n}}",
            folder.join("model.rs").display().to_string(),
            folder.join("program.rs").display().to_string()
        );
    }

    /// A test that calls the methods of the model.
    fn test(
        graph: &Verified,
        spec: &str,
        settings: &[String],
        module: &str,
        text: &str,
        bound: &str,
    ) -> String {
        let (model, methods) = api(text);
        let find = |name: &str| methods.iter().find(|m| m.sig.ident == name);
        let full = call(find("forward").expect("every model has forward"), &[]);
        let load = format!("{module}::{model}::load(file, device)?");
        let cached = match (find("forward_cached"), find("encode"), find("decode_cached")) {
            (Some(step), _, _) => Some((String::new(), call(step, &[]))),
            (_, Some(encode), Some(step)) => {
                let memory = memory_of(encode, step, graph);
                let pattern =
                    if memory.len() == 1 { memory[0].clone() } else { format!("({})", memory.join(", ")) };
                let first = format!("let given = &steps[0]; let {pattern} = model.{};", call(encode, &[]));
                Some((first, call(step, &memory)))
            }
            _ => None,
        };
        assert_eq!(cached.is_some(), graph.decodes, "{spec} decodes in the graph or in Rust only");
        let cached = match cached {
            None => "None".to_owned(),
            Some((first, step)) => format!(
                "Some(|file, device, steps| {{\n\
                 let model = {load};\n\
                 {first}\n\
                 let mut cache = model.cache();\n\
                 Ok(steps.iter().map(|given| model.{step}.bits()).collect())\n\
                 }})"
            ),
        };
        format!(
            "#[test]\nfn {module}_is_equal() {{\n\
             check({spec:?}, &{settings:?}, |file, device, given| Ok({load}.{full}.bits()), {cached}, {bound});\n}}\n"
        )
    }

    /// The model's type and its methods, which are in the only `impl` with `load`.
    fn api(text: &str) -> (String, Vec<ImplItemFn>) {
        let file = syn::parse_file(text).expect("emitted text is Rust");
        for item in file.items {
            let Item::Impl(item) = item else { continue };
            let methods: Vec<ImplItemFn> = item
                .items
                .into_iter()
                .filter_map(|item| if let ImplItem::Fn(method) = item { Some(method) } else { None })
                .collect();
            if methods.iter().any(|method| method.sig.ident == "load")
                && let Type::Path(path) = &*item.self_ty
                && let Some(last) = path.path.segments.last()
            {
                return (last.ident.to_string(), methods);
            }
        }
        panic!("no model with `load`");
    }

    fn parameters(method: &ImplItemFn) -> Vec<(String, Type)> {
        let typed = |argument: &FnArg| match argument {
            FnArg::Typed(argument) => match &*argument.pat {
                Pat::Ident(name) => Some((name.ident.to_string(), (*argument.ty).clone())),
                _ => None,
            },
            _ => None,
        };
        method.sig.inputs.iter().filter_map(typed).collect()
    }

    /// `forward(given.take("tokens"), ..)`; the encoder's output is a variable.
    fn call(method: &ImplItemFn, memory: &[String]) -> String {
        let arguments: Vec<String> = parameters(method)
            .into_iter()
            .map(|(name, _)| match name.as_str() {
                "cache" => "&mut cache".to_owned(),
                _ if memory.contains(&name) => format!("{name}.clone()"),
                _ => format!("given.take({name:?})"),
            })
            .collect();
        format!("{}({})", method.sig.ident, arguments.join(", "))
    }

    /// The parameters of the decoder that are not inputs of the graph: what the encoder returns, in order.
    fn memory_of(encode: &ImplItemFn, decode: &ImplItemFn, graph: &Verified) -> Vec<String> {
        let inputs: Vec<&str> = graph.root().arguments().iter().map(|v| v.name.as_str()).collect();
        let names = parameters(decode).into_iter().map(|(name, _)| name);
        let memory: Vec<String> = names.filter(|n| n != "cache" && !inputs.contains(&n.as_str())).collect();
        assert!(!memory.is_empty(), "{} returns nothing", encode.sig.ident);
        memory
    }
}

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "models")]
    emission::run();
}
