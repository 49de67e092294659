//! Emits Rust for every spec of `tests/good`, for reduced versions of those in `specs`, for the models of
//! `tests/hub`, for random specs and for those with hostile names, with a test for each, which `tests/equal.rs`
//! includes.

#[cfg(feature = "models")]
#[path = "../it/random.rs"]
mod random;

#[cfg(feature = "models")]
mod emission {
    use std::fmt::Write as _;
    use std::path::{Path, PathBuf};

    use syn::{FnArg, ImplItem, ImplItemFn, Item, Pat, Type};
    use trafoc::compile::compile;
    use trafoc::diag::Sink;
    use trafoc::emit::rust::{self, Form};
    use trafoc::hub;
    use trafoc::hub::shelf::Families;
    use trafoc::ir::{MemberKind, Op, Verified, paths};
    use trafoc::source::{SourceId, SourceMap};
    use trafoc::spec::load::{self, Files};
    use trafoc::syntax::Notation;
    use trafoc::syntax::set::parse_set;

    /// The number of random specs.
    const RANDOM: u64 = 40;
    /// Models with more parameters than this are too slow for a test.
    const LARGE: u128 = 2_000_000;
    /// Shipped specs that are also emitted for burn alone; between them they use most kernels.
    const STANDALONE: &[&str] =
        &["d2l-nmt", "deepseek-v3-tiny", "gbt-mulm", "gemma2-2b", "mixtral-8x7b", "t5-small", "vit"];
    /// Models with more blocks than this are too slow for a test.
    const DEEP: u64 = 64;

    struct Folder(PathBuf);

    impl Files for Folder {
        fn open(
            &mut self,
            sources: &mut SourceMap,
            _: SourceId,
            path: &str,
        ) -> Result<(SourceId, Notation), String> {
            let text = std::fs::read_to_string(self.0.join(path)).map_err(|error| error.to_string())?;
            Ok((sources.add(path, text), Notation::from_path(path).unwrap_or(Notation::Yaml)))
        }
    }

    /// Emits everything into the build's output folder.
    pub fn run() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo names a folder"));
        for folder in [
            "specs",
            "tests/good",
            "tests/hub",
            "tests/it/random.rs",
            "tests/emitted/small.txt",
            "tests/emitted/names.txt",
        ] {
            println!("cargo::rerun-if-changed={}", root.join(folder).display());
        }
        let mut specs: Vec<(String, Vec<String>)> = Vec::new();
        let small = std::fs::read_to_string(root.join("tests/emitted/small.txt")).expect("small.txt");
        for line in small.lines().filter(|line| !line.starts_with('#')) {
            let mut words = line.split_whitespace().map(str::to_owned);
            if let Some(spec) = words.next() {
                specs.push((format!("specs/{spec}.yaml"), words.collect()));
            }
        }
        let known: Vec<String> = specs.iter().map(|(spec, _)| spec.clone()).collect();
        for path in yaml_files(&root.join("specs")) {
            let spec = format!("specs/{path}");
            assert!(known.contains(&spec), "tests/emitted/small.txt has no line for {spec}");
        }
        specs.extend(
            yaml_files(&root.join("tests/good")).map(|file| (format!("tests/good/{file}"), Vec::new())),
        );
        for name in folders(&root.join("tests/hub")) {
            let path = out.join(format!("hub_{name}.yaml"));
            let text = imported(&name, &root.join("tests/hub").join(&name).join("config.json"));
            std::fs::write(&path, text).expect("a spec can be written");
            specs.push((path.display().to_string(), Vec::new()));
        }
        for n in 0..RANDOM {
            let path = out.join(format!("random_{n:02}.yaml"));
            std::fs::write(&path, crate::random::spec(&tape(n))).expect("a spec can be written");
            specs.push((path.display().to_string(), Vec::new()));
        }
        let names = std::fs::read_to_string(root.join("tests/emitted/names.txt")).expect("names.txt");
        for (n, name) in names.lines().filter(|line| !line.starts_with('#')).enumerate() {
            let path = out.join(format!("named_{n:02}.yaml"));
            std::fs::write(&path, named(name)).expect("a spec can be written");
            specs.push((path.display().to_string(), Vec::new()));
        }
        let mut cases = String::new();
        for (spec, settings) in specs {
            write_case(&root, &out, &spec, &settings, &mut cases);
        }
        std::fs::write(out.join("cases.rs"), cases).expect("cases.rs can be written");
    }

    /// A spec of that name, in which all has it that may.
    fn named(name: &str) -> String {
        let is_word = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        // Keys of a block, which name nothing else in it.
        let is_key = matches!(name, "attention" | "block");
        let word = if is_word && !is_key { name } else { "other" };
        format!(
            "trafo: 1\nname: {name:?}\nvocab: 16\ncontext: 8\nd_model: 8\ndecoder:\n  layers: 3\n  \
             attention: {{heads: 2}}\n  ffn: {{hidden: 12}}\n  pattern: [{word}, plain]\n  blocks:\n    \
             {word}:\n      block: |\n        ({word}_x):\n        {word} = norm[{word}]({word}_x)\n        \
             {word}_x + attention[own_{word}]({word}) + ffn[{word}_ffn]({word})\n    plain: {{}}\nhead: lm\n"
        )
    }

    /// The numbers that determine a random spec (Knuth's linear congruential generator, MMIX).
    fn tape(seed: u64) -> Vec<u16> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 48) as u16
        };
        (0..160).map(|_| next()).collect()
    }

    fn yaml_files(folder: &Path) -> impl Iterator<Item = String> {
        let entries = std::fs::read_dir(folder).expect("a folder of specs");
        let mut names: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.retain(|name| name.ends_with(".yaml"));
        names.sort();
        names.into_iter()
    }

    fn folders(folder: &Path) -> impl Iterator<Item = String> {
        let entries = std::fs::read_dir(folder).expect("a folder of models").flatten();
        let mut names: Vec<String> = entries
            .filter(|entry| entry.path().is_dir())
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        names.sort();
        names.into_iter()
    }

    /// The spec of a Hugging Face config.
    fn imported(name: &str, config: &Path) -> String {
        let mut sources = load::sources();
        let mut sink = Sink::new();
        let text = std::fs::read_to_string(config).expect("every model has a config");
        let id = sources.add(config.display().to_string(), text);
        let found = hub::import(&Families::default(), name, id, &mut sources, &mut sink);
        found.unwrap_or_else(|| panic!("{name}: {:#?}", sink.into_sorted())).text
    }

    fn write_case(root: &Path, out: &Path, spec: &str, settings: &[String], cases: &mut String) {
        let path = root.join(spec);
        let mut folder = Folder(path.parent().expect("specs are in a folder").to_owned());
        let mut sources = load::sources();
        let name = path.file_name().and_then(|n| n.to_str()).expect("a spec has a name");
        let (id, notation) = folder.open(&mut sources, SourceId::default(), name).expect("a spec");
        let given: Vec<_> = settings.iter().map(|s| parse_set(&mut sources, s).expect("a setting")).collect();
        let compiled = compile(&mut sources, id, notation, &given, &mut folder).expect("no fault of trafoc");
        let graph = compiled.graph.unwrap_or_else(|| panic!("{spec}: {:#?}", compiled.diagnostics));
        let text = rust::source(&graph, &sources, spec, Form::Kernels).expect("no fault of trafoc");
        let elements: u128 = paths::folded(&graph).iter().map(|p| p.elements()).sum();
        let nodes = graph.modules.iter().flat_map(|module| &module.nodes);
        let each =
            nodes.filter_map(|node| if let Op::Scan { each, .. } = &node.op { Some(*each) } else { None });
        let members = graph.modules.iter().flat_map(|module| &module.members);
        let runs =
            members.filter_map(|m| if let MemberKind::Stack(runs) = &m.kind { Some(runs) } else { None });
        let deepest = runs.flatten().map(|run| run.count).chain(each).max();
        if elements > LARGE || deepest > Some(DEEP) {
            return;
        }
        let short = if Path::new(spec).is_absolute() { name } else { spec };
        let short = short.trim_end_matches(".yaml").replace("tests/", "").replace('/', "_");
        let module = rust::name::file(&short);
        let file = out.join(format!("{module}.rs"));
        std::fs::write(&file, &text).expect("a model can be written");
        let _ = write!(cases, "#[path = {:?}]\npub mod {module};\n", file.display().to_string());
        if short.starts_with("named_") {
            write_program(&graph, &sources, &module, out, cases);
        }
        let _ = writeln!(cases, "{}", test(&graph, spec, settings, &module, &text, "0.0"));
        if STANDALONE.iter().any(|known| spec == format!("specs/{known}.yaml")) {
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
