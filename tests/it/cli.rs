//! The program as its users see it: streams, exit codes, formats, files.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::SystemTime;

use serde_json::Value as Json;

mod advised;
mod agent;
mod lines;
mod settings;
mod widths;
mod written;

/// The output of a run.
pub struct Printed {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl From<Output> for Printed {
    fn from(output: Output) -> Self {
        let output = kept(output);
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Printed { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
    }
}

/// Keeps the JSON that the program has printed for `cargo test -p trafoc-schema`, which validates all of it.
/// What an earlier build has printed is removed.
pub fn kept(output: Output) -> Output {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let is_kept = |start: &&str| output.stdout.starts_with(start.as_bytes());
    if !["{\n  \"schema\": \"trafoc/", "{\n  \"$schema\": \"https://json.schemastore.org/sarif"]
        .iter()
        .any(is_kept)
    {
        return output;
    }
    let folder = FOLDER.get_or_init(|| {
        let built = std::fs::metadata(crate::compiled::PROGRAM).unwrap().modified().unwrap();
        let built = built.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos().to_string();
        let all = Path::new(env!("CARGO_TARGET_TMPDIR")).join("outputs");
        for other in std::fs::read_dir(&all).into_iter().flatten().map(|entry| entry.unwrap()) {
            if other.file_name() != *built {
                // Another process of tests may be doing the same.
                let _ = std::fs::remove_dir_all(other.path());
            }
        }
        let folder = all.join(built);
        std::fs::create_dir_all(&folder).unwrap();
        folder
    });
    let mut hasher = DefaultHasher::new();
    output.stdout.hash(&mut hasher);
    let path = folder.join(format!("{:016x}.json", hasher.finish()));
    // Another process, or another test of this one, may print the same at this time.
    let thread = format!("{:?}", std::thread::current().id()).replace(['(', ')'], "");
    let part = path.with_extension(format!("{}-{thread}", std::process::id()));
    std::fs::write(&part, &output.stdout).unwrap();
    std::fs::rename(part, path).unwrap();
    output
}

fn program() -> Command {
    let mut command = crate::compiled::program();
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    // Set where the tests are started, these would change what is printed.
    for variable in ["NO_COLOR", "CLICOLOR_FORCE", "TRAFOC_COLOR", "TERM"] {
        command.env_remove(variable);
    }
    command
}

pub fn trafoc(arguments: &[&str]) -> Printed {
    program().args(arguments).output().unwrap().into()
}

pub fn trafoc_in(folder: &Path, arguments: &[&str]) -> Printed {
    program().current_dir(folder).args(arguments).output().unwrap().into()
}

fn trafoc_given(stdin: &str, arguments: &[&str]) -> Printed {
    let mut command = program();
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
    child.wait_with_output().unwrap().into()
}

pub const TINY: &str =
    "name: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n";

/// Every command, in the order of the help.
pub fn commands() -> Vec<String> {
    let help = trafoc(&["--help"]).out;
    let listed = help.lines().skip_while(|l| *l != "Commands:").skip(1).take_while(|l| !l.is_empty());
    // A continued line is indented further.
    let names = listed.filter(|l| l.starts_with("  ") && !l.starts_with("   "));
    names.map(|l| l.split_whitespace().next().unwrap().to_owned()).collect()
}

#[test]
fn exit_codes_tell_what_happened() {
    let folder = tempfile::tempdir().unwrap();
    let taken = folder.path().join("taken.yaml");
    std::fs::write(&taken, TINY).unwrap();
    let taken = taken.to_str().unwrap();
    for (arguments, code) in [
        (vec!["check", "@gpt1"], 0),
        (vec!["check", "@gpt1", "--set", "decoder.attention.heads=7"], 1),
        (vec!["check", "@gpt2-small", "--set", "decoder.ffn.glu.hidden=64"], 0),
        (vec!["check", "@gpt2-small", "--set", "decoder.ffn={glu: {hidden: 64}}"], 0),
        (vec!["check", "@gpt2-small", "--set", "decoder.ffn.moe={experts: 4, top_k: 2, expert: glu}"], 0),
        (vec!["check", "specs/gpt1.yaml", "missing.yaml"], 4),
        (vec!["check", "missing.yaml", "tests/bad/unknown-key-typo.yaml"], 4),
        (vec!["chekc"], 2),
        (vec!["check", "@gpt-one"], 2),
        (vec!["check", "@gpt1", "--variant", "large"], 2),
        (vec!["explain", "nothing-of-the-kind"], 2),
        (vec!["explain", "rotary", "--set", "vocab=3"], 2),
        (vec!["new", "gpt", taken], 3),
        (vec!["convert", "@gpt1", "--out", taken], 3),
        (vec!["check", "missing.yaml"], 4),
        (vec!["check", "specs"], 4),
        (vec!["man", "--out", "Cargo.toml/man"], 4),
        (vec!["compare", "@gpt1", "@gpt2-small", "--fail-if", "params > 200e6"], 0),
        (vec!["compare", "@gpt1", "@gpt2-small", "--fail-if", "params > 125e6"], 1),
        (vec!["compare", "@gpt1", "@gpt2-small", "--fail-if", "params > 125M"], 1),
        (vec!["compare", "@gpt1", "@gpt2-small", "--fail-if", "params > 2 * 100 M"], 0),
        (vec!["compare", "@gpt1", "@gpt2-small", "--fail-if", "params > 125Q"], 2),
        (vec!["compare", "@gpt2-small"], 2),
        (vec!["fit", "@gpt1", "--params", "1e8", "--over", "nothing"], 2),
        (vec!["fit", "@gpt1"], 2),
        (vec!["fit", "@gpt1", "--params", "-5"], 2),
        (vec!["fit", "@gpt1", "--params", "1e400"], 2),
        // Out of reach of the sizes that are tried.
        (vec!["fit", "@gpt1", "--params", "1e30"], 1),
        (vec!["compare", "@gpt1", "--fail-if", "params > 1e400"], 2),
        (vec!["compare", "@gpt1", "--fail-if", "params > 1e308 * 1e308"], 2),
        (vec!["compare", "@gpt1", "--fail-if", "params > 1 / 0"], 2),
        (vec!["compare", "@gpt1", "--fail-if", "params > 99999999999999999999999999999999999999999999"], 0),
        // A model of images has no tokens.
        (vec!["compare", "@vit-b16", "--fail-if", "flops_per_token > 1"], 2),
        (vec!["draw", "@gpt1", "--force"], 2),
        (vec!["convert", "@gpt1", "--force"], 2),
    ] {
        let said = trafoc(&arguments);
        assert_eq!(said.code, code, "{arguments:?}: {}", said.err);
    }
}

#[test]
fn data_goes_to_stdout_and_the_rest_to_stderr() {
    let right = trafoc(&["check", "@gpt2-small"]);
    assert!(right.out.starts_with("gpt2-small: decoder"), "{}", right.out);
    assert_eq!(right.err, "next: trafoc build @gpt2-small\n");
    let wrong = trafoc(&["check", "@gpt2-small", "--set", "vocab=many"]);
    assert!(wrong.out.is_empty() && wrong.err.contains("error["), "{}", wrong.out);
    let quiet = trafoc(&["check", "-q", "@gpt2-small"]);
    assert!(quiet.out.is_empty() && quiet.err.is_empty());
    let short = trafoc(&["check", "--format", "short", "@gpt2-small", "--set", "vocab=many"]);
    assert_eq!(
        short.err.lines().next(),
        Some("--set #1:1:7: error[unknown-name]: nothing is named `many` here")
    );
}

/// Arguments with which each command succeeds if it can without a trained model, in a folder of its own.
fn each_command(folder: &Path) -> Vec<Vec<String>> {
    let at = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    std::fs::write(at("in.json"), r#"{"tokens": [[1, 2, 3]]}"#).unwrap();
    let mut all = Vec::new();
    for name in commands() {
        let (new, model, man, rust) = (at("new.yaml"), at("model.trafo"), at("man"), at("model.rs"));
        let (inputs, outputs, exported) = (at("in.json"), at("out.safetensors"), at("exported"));
        let (data, recipe) = (at("data"), crate::compiled::repository("specs/recipes/gbt-mulm.yaml"));
        let recipe = recipe.display().to_string();
        let arguments: Vec<&str> = match name.as_str() {
            "new" => vec!["gpt", &new],
            "print" => vec!["graph", "@gbt-mulm"],
            "inspect" => vec!["positions", "@gbt-mulm"],
            "build" => vec!["@gbt-mulm", "--out", &rust],
            "explain" => vec!["attention.kv_heads"],
            "convert" => vec!["@gpt1", "--out", &model],
            "compare" => vec!["@gpt1", "@gpt2-small"],
            "fit" => vec!["@gbt-mulm", "--params", "3e5"],
            "run" => vec!["@gbt-mulm", "--inputs", &inputs, "--outputs", &outputs],
            "schema" | "doctor" | "config" => vec![],
            "completions" => vec!["bash"],
            "man" => vec!["--out", &man],
            "data" => vec!["@gbt-mulm", "--recipe", &recipe, "--with", "data.limit=100", "--out", &data],
            "train" => vec!["@gbt-mulm", "--recipe", &recipe, "--dry-run"],
            // These need a trained model or the folder of one; tests that have one cover them.
            "reproduce" | "eval" | "generate" | "predict" => continue,
            "import" | "export" if cfg!(not(feature = "learn")) => continue,
            "import" => vec!["tests/hub/gpt2"],
            "export" => vec!["tests/hub/gpt2", "--to", &exported],
            _ => vec!["@gpt2-small"],
        };
        all.push(std::iter::once(name.as_str()).chain(arguments).map(str::to_owned).collect());
    }
    all
}

/// Whether this program was built without what a command needs.
fn is_absent(command: &str) -> bool {
    matches!(command, "run" | "train" | "data") && cfg!(not(feature = "interp"))
}

#[test]
fn every_command_speaks_json() {
    let folder = tempfile::tempdir().unwrap();
    for line in each_command(folder.path()) {
        let name = line[0].as_str();
        let said = Printed::from(program().args(&line).args(["--format", "json"]).output().unwrap());
        let envelope: Json =
            serde_json::from_str(&said.out).unwrap_or_else(|e| panic!("{name}: {e}\n{}", said.err));
        let is_absent = is_absent(name);
        assert_eq!(envelope["schema"], "trafoc/1", "{name}");
        assert_eq!(envelope["command"], name);
        assert_eq!(envelope["status"], if is_absent { "device" } else { "ok" }, "{name}: {envelope}");
        assert!(said.err.is_empty(), "{name}: {}", said.err);
        assert_eq!(envelope["data"].is_null(), is_absent, "{name}");
    }
}

#[test]
fn failures_speak_json_too() {
    let said = trafoc(&["check", "@gpt1", "--format", "json", "--set", "decoder.attention.heads=7"]);
    let envelope: Json = serde_json::from_str(&said.out).unwrap();
    assert_eq!(envelope["status"], "failed");
    assert_eq!(envelope["diagnostics"][0]["code"], "not-divisible");
    assert_eq!(envelope["diagnostics"][0]["labels"][0]["primary"], true);
    for arguments in [
        vec!["check", "--format", "json"],
        vec!["check", "--format=json", "nowhere.yaml"],
        vec!["--no-such-flag", "--format", "json"],
    ] {
        let said = trafoc(&arguments);
        let envelope: Json = serde_json::from_str(&said.out).unwrap();
        assert!(envelope["error"].as_str().is_some_and(|e| !e.is_empty()), "{envelope}");
        assert!(matches!(said.code, 2 | 4) && said.err.is_empty());
    }
}

/// What `trafoc inspect` can show.
pub fn inspections() -> Vec<String> {
    let grammar = trafoc::cli::grammar(&[]);
    let inspect = grammar.find_subcommand("inspect").unwrap();
    inspect.get_subcommands().map(|kind| kind.get_name().to_owned()).filter(|kind| kind != "help").collect()
}

#[test]
fn help_begins_with_an_example_and_fits_eighty_columns() {
    let mut all = String::new();
    let mut pages = vec![vec!["--help".to_owned()]];
    pages.extend(commands().into_iter().map(|name| vec![name, "--help".to_owned()]));
    for page in pages {
        let page: Vec<&str> = page.iter().map(String::as_str).collect();
        let said = trafoc(&page);
        // `help` before a command is the same as `--help` after it.
        let asked = trafoc(&[&["help"], &page[..page.len() - 1]].concat());
        assert_eq!((asked.code, &asked.out), (0, &said.out));
        assert_eq!(said.code, 0);
        let example = said.out.lines().next().and_then(|line| line.strip_prefix("Example: "));
        assert!(example.is_some_and(|example| example.contains("trafoc ")), "{page:?}\n{}", said.out);
        if let Some(line) = said.out.lines().find(|l| l.chars().count() > 80) {
            panic!("{page:?}: wider than 80 columns: {line}");
        }
        all += &format!("$ trafoc {}\n{}\n", page.join(" "), said.out);
    }
    for kind in inspections() {
        let said = trafoc(&["inspect", &kind, "--help"]);
        let mut lines = said.out.lines();
        let example = lines.next().and_then(|line| line.strip_prefix("Example: trafoc inspect "));
        // A wrapped example would be pasted as two commands.
        assert!(example.is_some_and(|e| e.starts_with(&kind)) && lines.next() == Some(""), "{}", said.out);
        let widest = said.out.lines().map(|l| l.chars().count()).max();
        assert!(widest <= Some(80), "{kind}: {}", said.out);
    }
    insta::with_settings!({ snapshot_path => "../snap/cli", prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("help", all);
    });
}

#[test]
fn a_spec_comes_from_a_file_from_stdin_or_from_the_program() {
    let file = trafoc(&["print", "spec", "specs/gpt1.yaml"]);
    let shipped = trafoc(&["print", "spec", "@gpt1"]);
    let piped = trafoc_given(&std::fs::read_to_string("specs/gpt1.yaml").unwrap(), &["print", "spec", "-"]);
    assert_eq!(file.out, shipped.out);
    assert_eq!(file.out, piped.out);
    let other = trafoc_given(
        &std::fs::read_to_string("specs/gpt1.trafo").unwrap(),
        &["print", "spec", "-", "--lang", "trafo"],
    );
    assert_eq!(other.code, 0, "{}", other.err);
    let named = trafoc_given("name: [", &["check", "-"]);
    assert!(named.err.contains("<stdin>:1:"), "{}", named.err);
}

#[test]
fn every_shipped_spec_is_on_the_shelf_and_the_other_way_round() {
    let mut files: Vec<String> = std::fs::read_dir("specs")
        .unwrap()
        .filter_map(|e| {
            e.unwrap().file_name().into_string().unwrap().strip_suffix(".yaml").map(str::to_owned)
        })
        .collect();
    files.sort();
    let mut shelf: Vec<&str> = trafoc::cli::shelf::SHELF.iter().map(|s| s.name).collect();
    shelf.sort_unstable();
    assert_eq!(files, shelf);
    let names: Vec<String> = files.iter().map(|name| format!("@{name}")).collect();
    let arguments: Vec<&str> = ["check"].into_iter().chain(names.iter().map(String::as_str)).collect();
    let said = trafoc(&arguments);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(said.out.lines().count(), files.len());
}

#[test]
fn a_setting_has_a_place_of_its_own() {
    let said = trafoc(&["check", "@gpt1", "--set", "d_model=770", "--set", "decoder.layrs=3"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("--set #1:1:9"), "{}", said.err);
    assert!(said.err.contains("--set #2:1:9"), "{}", said.err);
    assert!(said.err.contains("did you mean `layers`?"), "{}", said.err);
}

#[test]
fn a_variant_is_a_spec_and_a_setting_holds_over_it() {
    let spec = format!("{TINY}sweep:\n  wide: {{d_model: 16}}\n  grid: {{decoder.layers: [2, 3]}}\n");
    let width = |arguments: &[&str]| {
        let said = trafoc_given(&spec, &[&["print", "spec", "-"], arguments].concat());
        assert_eq!(said.code, 0, "{}", said.err);
        said.out.lines().find(|l| l.starts_with("d_model")).unwrap().to_owned()
    };
    assert_eq!(width(&[]), "d_model = 8");
    assert_eq!(width(&["--variant", "wide"]), "d_model = 16");
    assert_eq!(width(&["--variant", "wide", "--set", "d_model=32"]), "d_model = 32");
    let compared = trafoc_given(&spec, &["compare", "-"]);
    for name in ["tiny", "wide", "layers=2", "layers=3"] {
        assert!(compared.out.contains(&format!("\n{name} ")), "{}", compared.out);
    }
    let unknown = trafoc_given(&spec, &["check", "-", "--variant", "wid"]);
    assert!(unknown.err.contains("did you mean `wide`?"), "{}", unknown.err);
    let faulty = trafoc_given(&spec.replace("{d_model: 16}", "{d_model: 17}"), &["check", "-"]);
    assert_eq!(faulty.code, 1);
    assert!(faulty.err.contains("with `wide` of the sweep"), "{}", faulty.err);
}

#[test]
fn extends_stays_in_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("inside");
    std::fs::create_dir_all(inside.join("below")).unwrap();
    std::fs::write(folder.path().join("secret.yaml"), TINY).unwrap();
    std::fs::write(inside.join("base.yaml"), TINY).unwrap();
    std::fs::write(inside.join("below/base.yaml"), TINY).unwrap();
    let absolute = folder.path().join("secret.yaml");
    let mut refused =
        vec!["../secret.yaml".to_owned(), absolute.to_str().unwrap().to_owned(), "below".to_owned()];
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("../secret.yaml", inside.join("link.yaml")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", inside.join("endless.yaml")).unwrap();
        std::os::unix::fs::symlink("base.yaml", inside.join("near.yaml")).unwrap();
        refused.extend(["link.yaml".to_owned(), "endless.yaml".to_owned()]);
    }
    let check = |base: &str| {
        std::fs::write(inside.join("spec.yaml"), format!("extends: {base}\nname: other\n")).unwrap();
        trafoc_in(&inside, &["check", "spec.yaml"])
    };
    for base in refused {
        let said = check(&base);
        assert_eq!(said.code, 1, "{base}");
        assert!(
            said.err.contains("error[extends-missing]") && said.err.contains("spec.yaml:1:10"),
            "{}",
            said.err
        );
    }
    for base in ["base.yaml", "./below/../base.yaml", "below/base.yaml"] {
        let said = check(base);
        assert_eq!(said.code, 0, "{base}: {}", said.err);
    }
    #[cfg(unix)]
    assert_eq!(check("near.yaml").code, 0);
    assert!(check("spec.yaml").err.contains("error[extends-cycle]"));
}

#[test]
fn a_file_too_long_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.yaml");
    std::fs::write(&path, "# ".repeat(3 << 20)).unwrap();
    let said = trafoc(&["check", path.to_str().unwrap()]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("error[too-large]"), "{}", said.err);
}

#[test]
fn templates_pass_and_nothing_is_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    for template in ["gpt", "llama", "bert", "t5", "vit", "moe"] {
        let said = trafoc_in(folder.path(), &["new", template]);
        assert_eq!(
            (said.code, said.out.as_str()),
            (0, format!("{template}.yaml\n").as_str()),
            "{}",
            said.err
        );
        let file = format!("{template}.yaml");
        let said = trafoc_in(folder.path(), &["check", "--strict", &file]);
        assert_eq!(said.code, 0, "{template}: {}", said.err);
        assert_eq!(
            trafoc_in(folder.path(), &["fmt", "--check", &file]).code,
            0,
            "{template} is not in its usual form"
        );
    }
    for template in ["gpt", "llama", "bert", "t5", "vit", "moe"] {
        let (file, recipe) = (format!("s-{template}.yaml"), format!("s-{template}.recipe.yaml"));
        let said = trafoc_in(folder.path(), &["new", template, &file, "--small"]);
        assert_eq!(
            (said.code, said.out.as_str()),
            (0, format!("{file}\n{recipe}\n").as_str()),
            "{}",
            said.err
        );
        assert!(said.err.contains(&format!("next: trafoc train {file} --recipe {recipe}")), "{}", said.err);
        let said = trafoc_in(folder.path(), &["check", "--strict", &file, "--recipe", &recipe]);
        assert_eq!(said.code, 0, "{template}: {}", said.err);
        assert_eq!(trafoc_in(folder.path(), &["fmt", "--check", &file]).code, 0, "{template}");
    }
    let said = trafoc_in(folder.path(), &["new", "recipe", "--for", "t5", "--data", "my pairs.tsv"]);
    assert_eq!(said.code, if cfg!(feature = "learn") { 4 } else { 0 }, "{}", said.err);
    let _ = std::fs::remove_file(folder.path().join("recipe.yaml"));
    let pairs: String = (0..40).map(|i| format!("one {i}\tun {i}\n")).collect();
    std::fs::write(folder.path().join("my pairs.tsv"), pairs).unwrap();
    let said = trafoc_in(folder.path(), &["new", "recipe", "--for", "t5", "--data", "my pairs.tsv"]);
    assert_eq!((said.code, said.out.as_str()), (0, "recipe.yaml\n"), "{}", said.err);
    let text = std::fs::read_to_string(folder.path().join("recipe.yaml")).unwrap();
    assert!(text.contains("train: \"my pairs.tsv\""), "{text}");
    assert_eq!(trafoc_in(folder.path(), &["new", "gpt", "x.yaml", "--data", "a.txt"]).code, 2);
    std::fs::write(folder.path().join("gpt.yaml"), "mine").unwrap();
    let refused = trafoc_in(folder.path(), &["new", "gpt"]);
    assert_eq!(refused.code, 3);
    assert_eq!(std::fs::read_to_string(folder.path().join("gpt.yaml")).unwrap(), "mine");
    assert_eq!(trafoc_in(folder.path(), &["new", "gpt", "--force"]).code, 0);
    let odd = trafoc_in(folder.path(), &["new", "gpt", "it's 1.yaml"]);
    assert_eq!(odd.code, 0, "{}", odd.err);
    let said = trafoc_in(folder.path(), &["check", "it's 1.yaml"]);
    assert!(said.out.starts_with("it's 1: decoder"), "{}{}", said.out, said.err);
}

#[test]
fn at_most_fifty_diagnostics_are_shown() {
    let keys: String = (0..60).map(|i| format!("key{i}: 1\n")).collect();
    let said = trafoc_given(&format!("{TINY}{keys}"), &["check", "-", "--format", "short"]);
    assert_eq!(said.err.lines().filter(|l| l.contains("error[")).count(), 50);
    assert!(said.err.contains("… and 10 more"), "{}", said.err);
    let said = trafoc_given(&format!("{TINY}{keys}"), &["check", "-", "--format", "json"]);
    let envelope: Json = serde_json::from_str(&said.out).unwrap();
    assert_eq!(envelope["diagnostics"].as_array().unwrap().len(), 60);
}

#[test]
fn colour_follows_flag_then_variables_then_terminal() {
    let is_coloured = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut command = program();
        command
            .args(["check", "@gpt1", "--set", "vocab=many"])
            .args(arguments)
            .envs(variables.iter().copied());
        Printed::from(command.output().unwrap()).err.contains('\x1b')
    };
    assert!(!is_coloured(&[], &[]));
    assert!(is_coloured(&["--color", "always"], &[("NO_COLOR", "1")]));
    assert!(is_coloured(&[], &[("CLICOLOR_FORCE", "1")]));
    assert!(!is_coloured(&[], &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
    assert!(is_coloured(&[], &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "")]));
    // Without a terminal `0` cannot be told from an absent variable.
    let zero = |name: &str| (name == "CLICOLOR_FORCE").then(|| "0".to_owned());
    assert!(trafoc::cli::ui::Color::Auto.on(true, zero));
    assert!(!trafoc::cli::ui::Color::Auto.on(false, zero));
    assert!(is_coloured(&[], &[("TRAFOC_COLOR", "always")]));
    assert!(!is_coloured(&["--color=never"], &[("TRAFOC_COLOR", "always")]));
}

#[test]
fn a_command_line_of_fmt_that_is_refused_changes_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let spread = TINY.replace("vocab: 32", "vocab:   32");
    std::fs::write(folder.path().join("tiny.yaml"), &spread).unwrap();
    for other in ["@gpt1", "-"] {
        let printed = trafoc_in(folder.path(), &["fmt", "--write", "tiny.yaml", other]);
        assert_eq!(printed.code, 2, "{}", printed.err);
        assert_eq!(std::fs::read_to_string(folder.path().join("tiny.yaml")).unwrap(), spread);
    }
    assert_eq!(trafoc_in(folder.path(), &["fmt", "--write", "tiny.yaml"]).code, 0);
    assert_ne!(std::fs::read_to_string(folder.path().join("tiny.yaml")).unwrap(), spread);
}

/// A negative number in brackets needs no quotes and no line of its own, as a lone hyphen would.
#[test]
fn negative_numbers_stay_in_brackets() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tiny.yaml"), format!("{TINY}let: {{both: [-1, 2]}}\n")).unwrap();
    let printed = trafoc_in(folder.path(), &["fmt", "--check", "tiny.yaml"]);
    assert_eq!(printed.code, 0, "{}", printed.err);
}

#[test]
fn formatting_loses_no_line_and_adds_none() {
    let folder = tempfile::tempdir().unwrap();
    let bare = std::fs::read_to_string(crate::compiled::repository("tests/bad/wrong-kind-block-lines.trafo"))
        .unwrap();
    let texts = [
        ("bare.trafo", bare.as_str(), 1),
        ("empty.yaml", "", 0),
        ("empty.trafo", "", 0),
        ("note.yaml", "# later\n", 0),
    ];
    for (name, text, code) in texts {
        std::fs::write(folder.path().join(name), text).unwrap();
        for arguments in [&["fmt", name][..], &["fmt", "--write", name], &["convert", name]] {
            let printed = trafoc_in(folder.path(), arguments);
            assert_eq!(printed.code, code, "{arguments:?} {}", printed.err);
            assert!(code == 0 || printed.out.is_empty(), "{}", printed.out);
            assert!(!printed.out.contains("null"), "{}", printed.out);
            assert_eq!(std::fs::read_to_string(folder.path().join(name)).unwrap(), text);
        }
    }
    let printed = trafoc_in(folder.path(), &["fmt", "bare.trafo"]);
    assert!(printed.err.contains("write `block(x) { ... }`"), "{}", printed.err);
}

#[test]
fn a_reader_that_leaves_early_is_no_fault() {
    let mut command = program();
    command.args(["schema"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(!String::from_utf8(output.stderr).unwrap().contains("error"));
}

#[test]
fn every_code_and_every_key_is_explained() {
    for code in trafoc::diag::Code::ALL {
        let said = trafoc(&["explain", code.slug()]);
        assert!(said.code == 0 && said.out.starts_with(code.slug()), "{code}");
    }
    for topic in trafoc::spec::explain::catalogue() {
        assert!(!topic.doc.is_empty(), "{} has no documentation", topic.path);
        let found = trafoc::spec::explain::find(&topic.name);
        assert!(found.iter().any(|t| t.path == topic.path && t.sort == topic.sort), "{}", topic.path);
        let page = topic.to_string();
        assert!(page.lines().all(|l| l.chars().count() <= 80), "{page}");
    }
    for name in trafoc::report::costs::Name::ALL {
        assert_eq!(trafoc(&["explain", name.word()]).code, 0, "{name:?}");
    }
    assert!(trafoc(&["explain", "decoding_flops"]).out.contains("with the keys that masks leave"));
    let said = trafoc(&["explain", "decoder.blocks.local.attention1.kv_heads"]);
    assert!(said.out.starts_with("decoder.attention.multi_head.kv_heads"), "{}{}", said.out, said.err);
    assert!(trafoc(&["explain", "check"]).out.contains("Usage: trafoc check"));
    assert!(trafoc(&["explain", "kvheads"]).err.contains("did you mean `kv_heads`?"));
    assert!(trafoc(&["explain", "@gemma2-2b"]).out.contains("x = x + norm(attention(norm(x)))"));
}
