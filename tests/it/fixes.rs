//! `check --fix`: what it changes in the files of `tests/fix`, and that it makes no file worse.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value as Json;

use crate::cli::trafoc_in;
use crate::compiled::{repository, specs};

/// The number of errors with their place in each of some files.
fn errors(folder: &Path, names: &[&str], more: &[&str]) -> BTreeMap<String, usize> {
    let said = trafoc_in(folder, &[&["check", "--format", "json"], names, more].concat());
    let envelope: Json = serde_json::from_str(&said.out).unwrap();
    let mut count = BTreeMap::new();
    for d in envelope["diagnostics"].as_array().unwrap().iter().filter(|d| d["severity"] == "error") {
        *count.entry(d["labels"][0]["file"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    count
}

#[test]
fn files_are_fixed_in_their_text() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(repository("tests/snap/fix"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    for (name, path) in specs("tests/fix") {
        let file = path.file_name().unwrap().to_str().unwrap();
        let folder = tempfile::tempdir().unwrap();
        fs::copy(&path, folder.path().join(file)).unwrap();
        let before = errors(folder.path(), &[file], &[]);
        for unsafe_too in [&[][..], &["--unsafe-fixes"][..]] {
            let shown = trafoc_in(folder.path(), &[&["check", file, "--diff"], unsafe_too].concat());
            let fixed = trafoc_in(folder.path(), &[&["check", file, "--fix"], unsafe_too].concat());
            // `--diff` writes nothing, and `--fix` writes what it shows.
            assert!(shown.code == 1 || shown.out.is_empty(), "{file}: {}", shown.err);
            assert_eq!(fixed.err.contains("fixed "), !shown.out.is_empty(), "{file}: {}", fixed.err);
            if !shown.out.is_empty() {
                let kind = if unsafe_too.is_empty() { "safe" } else { "unsafe" };
                let text = format!("{}\n{}", shown.out, fixed.err);
                settings.bind(|| insta::assert_snapshot!(format!("{name}-{kind}"), text));
            }
        }
        let after = errors(folder.path(), &[file], &[]);
        assert!(after.get(file) < before.get(file), "{file}");
        let again = trafoc_in(folder.path(), &["check", file, "--diff", "--unsafe-fixes"]);
        assert!(again.out.is_empty(), "{file}: {}", again.out);
    }
}

/// The files of `tests/bad` are copied with what they extend, and fixed: no file gets more errors, and most that can be
/// fixed by a word are.
#[test]
fn no_file_gets_worse() {
    let folder = tempfile::tempdir().unwrap();
    let copied = |from: &Path, to: &Path| {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap().map(|e| e.unwrap()).filter(|e| e.path().is_file()) {
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    };
    copied(&repository("tests/bad"), folder.path());
    copied(&repository("tests/bad/base"), &folder.path().join("base"));
    let files = specs("tests/bad");
    let names: Vec<&str> =
        files.iter().map(|(_, path)| path.file_name().unwrap().to_str().unwrap()).collect();
    let (mut fixed, mut wrong) = (0, Vec::new());
    // As many as a command line may have on any system.
    for names in names.chunks(50) {
        let before = errors(folder.path(), names, &[]);
        let after = errors(folder.path(), names, &["--fix", "--unsafe-fixes"]);
        for name in names {
            let text = |folder: &Path| fs::read(folder.join(name)).unwrap();
            let is_changed = text(folder.path()) != text(&repository("tests/bad"));
            let count = |of: &BTreeMap<String, usize>| of.get(*name).copied().unwrap_or(0);
            let (before, after) = (count(&before), count(&after));
            fixed += usize::from(is_changed);
            if after > before || is_changed && after == before {
                wrong.push(format!("{name}: {before} errors, {after} after fixing"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(fixed >= 75, "only {fixed} files were fixed");
}

/// What cannot be written back, and what is not meant together.
#[test]
fn fixes_are_for_files_of_ones_own() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, message) in [
        (&["check", "@gpt1", "--fix"][..], "`@gpt1` is no file that could be written back"),
        (&["check", "-", "--fix"], "`-` is no file that could be written back"),
        (
            &["check", "a.yaml", "--unsafe-fixes"],
            "`--unsafe-fixes` says what `--fix` and `--diff` may change",
        ),
        (&["check", "a.yaml", "--fix", "--diff"], "cannot be used with"),
        (&["check", "a.yaml", "--fix", "--watch"], "cannot be used with"),
    ] {
        let said = trafoc_in(folder.path(), arguments);
        assert!(said.code == 2 && said.err.contains(message), "{arguments:?}: {}", said.err);
    }
}

/// A recipe of one's own is fixed, beside a spec that comes with trafoc.
#[test]
fn a_recipe_is_fixed() {
    let folder = tempfile::tempdir().unwrap();
    let text = "recipe: 1\ndata: {format: lines, train: names.txt}\ntokens: {characters: {bondary: \".\"}}  # \n\
                optimiser: {adamw: {learning_rate: 5e-4}}\nbatch_size: 16\nmax_steps: 4000\n";
    fs::write(folder.path().join("r.yaml"), text).unwrap();
    fs::write(folder.path().join("names.txt"), "ann\nbob\ncarl\n").unwrap();
    trafoc_in(folder.path(), &["check", "@gbt-mulm", "--recipe", "r.yaml", "--fix"]);
    let fixed = text
        .replace("bondary", "boundary")
        .replace("optimiser", "optimizer")
        .replace("batch_size: 16", "batch: {size: 16}")
        .replace("max_steps", "steps");
    assert_eq!(fs::read_to_string(folder.path().join("r.yaml")).unwrap(), fixed);
}

/// The edits of `--format json` are those that `--fix` makes: carried out by another program, they give the same text.
#[test]
fn programs_get_the_same_edits() {
    let folder = tempfile::tempdir().unwrap();
    let text = fs::read_to_string(repository("tests/fix/words.yaml")).unwrap();
    fs::write(folder.path().join("a.yaml"), &text).unwrap();
    let said = trafoc_in(folder.path(), &["check", "a.yaml", "--format", "json"]);
    let envelope: Json = serde_json::from_str(&said.out).unwrap();
    let word = envelope["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .find(|d| d["message"].as_str().unwrap().contains("`contxt`"));
    let fix = &word.unwrap()["fix"];
    assert_eq!(fix["safe"], true);
    let [edit] = fix["edits"].as_array().unwrap().as_slice() else { panic!("{fix}") };
    let at = |key: &str| usize::try_from(edit[key].as_u64().unwrap()).unwrap();
    let mut fixed = text.clone();
    fixed.replace_range(at("start")..at("end"), edit["text"].as_str().unwrap());
    assert_eq!(fixed, text.replace("contxt", "context"));
    let said = trafoc_in(folder.path(), &["check", "a.yaml", "--format", "sarif"]);
    let log: Json = serde_json::from_str(&said.out).unwrap();
    let change = &log["runs"][0]["results"][0]["fixes"][0]["artifactChanges"][0];
    assert_eq!(change["artifactLocation"]["uri"], "a.yaml");
    assert_eq!(change["replacements"][0]["insertedContent"]["text"], "context");
}

/// A text keeps its mark of the byte order and the ends of its lines, and one without a final line end gets the entry on a
/// line of its own.
#[test]
fn line_ends_stay() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.yaml");
    let text = "\u{feff}name: a\nvocab: 32\ncontxt: 8\nn_head: 2 # two\nd_model: 8\nhead: lm\n\
                decoder:\n  layers: 1\n  attention:\n    bias: false";
    let fixed = "\u{feff}name: a\nvocab: 32\ncontext: 8\nd_model: 8\nhead: lm\n\
                 decoder:\n  layers: 1\n  attention:\n    bias: false\n    heads: 2 # two\n";
    for end in ["\n", "\r\n"] {
        fs::write(&path, text.replace('\n', end)).unwrap();
        let said = trafoc_in(folder.path(), &["check", "a.yaml", "--fix"]);
        assert_eq!(said.code, 0, "{}", said.err);
        assert_eq!(fs::read_to_string(&path).unwrap(), fixed.replace('\n', end));
    }
}

/// Where a change of the text would not be what `help` says, or would lose something, the file stays as it is.
#[test]
fn what_cannot_be_changed_alone_stays() {
    const HEAD: &str = "name: m\nvocab: 100\ncontext: 32\nd_model: 64\nhead: lm\n";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.yaml");
    for (text, fixed) in [
        // The places of words in such a text are not known.
        (
            "decoder:\n  layers: 2\n  attention: {heads: 4}\n  block: \"x = x + atention(norm(x))\\nx = x + fnn(norm(x))\"\n",
            None,
        ),
        (
            "decoder:\n  layers: 2\n  attention: {heads: 4}\n  block: >\n    x + atention(norm(x))\n    + ffn(norm(x))\n",
            None,
        ),
        ("embed:\n  scale: 2 * d_modl\n    / 2\ndecoder: {layers: 2, attention: {heads: 4}}\n", None),
        // Another stack has the same attention.
        (
            "encoder: {layers: 1, attention: &a {heads: 4}}\ndecoder: {layers: 2, kv_heads: 2, attention: *a}\n",
            None,
        ),
        // Comments would be lost, or be about something else.
        ("decoder: {\n  layers: 2,\n  heads: 4, # four\n  attention: {bias: false}}\n", None),
        (
            "decoder:\n  layers: 2\n  # trafoc: allow(beyond-end)\n  heads: 4\n  attention:\n    bias: false\n",
            None,
        ),
        // The opposite of what is written.
        ("decoder: {layers: 2, attention: {heads: 4, causal: false}}\n", None),
        // A key that is there already.
        ("contxt: 16\ndecoder: {layers: 2, attention: {heads: 4}}\n", None),
        // One of the keys of a path.
        (
            "decoder: {layers: 2, attention: {heads: 4}}\nsweep: {b: {decoder.nrom: rms_norm}}\n",
            Some("decoder: {layers: 2, attention: {heads: 4}}\nsweep: {b: {decoder.norm: rms_norm}}\n"),
        ),
        // Only the part of attention's biases that the other library means.
        (
            "decoder: {layers: 2, attention: {heads: 4, qkv_bias: false}}\n",
            Some("decoder: {layers: 2, attention: {heads: 4, bias: {qkv: false}}}\n"),
        ),
    ] {
        let text = format!("{HEAD}{text}");
        fs::write(&path, &text).unwrap();
        trafoc_in(folder.path(), &["check", "a.yaml", "--fix", "--unsafe-fixes"]);
        let expected = fixed.map_or(text, |fixed| format!("{HEAD}{fixed}"));
        assert_eq!(fs::read_to_string(&path).unwrap(), expected);
    }
    // Something else may be meant as well: only with `--unsafe-fixes`.
    for text in [
        "rms_norm_eps: 1e-6\ndecoder: {layers: 2, attention: {heads: 4}}\n",
        "scale: 1\ndecoder: {layers: 2, attention: {heads: 4}}\n",
        "decoder: {layers: 2, attention: {heads: 4}, ffn: {moe: {experts: 4, capacity: 2, expert: {expansion: 1}}}}\n",
    ] {
        let text = format!("{HEAD}{text}");
        for (unsafe_too, is_changed) in [(&[][..], false), (&["--unsafe-fixes"][..], true)] {
            fs::write(&path, &text).unwrap();
            trafoc_in(folder.path(), &[&["check", "a.yaml", "--fix"], unsafe_too].concat());
            assert_eq!(fs::read_to_string(&path).unwrap() != text, is_changed, "{text}");
        }
    }
}

/// What is wrong is said with `--diff`, too, and a file that is read-only is not replaced.
#[test]
fn a_difference_is_shown_beside_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let check = |arguments: &[&str]| trafoc_in(folder.path(), &[&["check"], arguments].concat());
    assert_eq!(check(&["missing.yaml", "--diff"]).code, 4);
    fs::write(folder.path().join("a.yaml"), "x: [\n").unwrap();
    let said = check(&["a.yaml", "--diff"]);
    assert!(said.code == 1 && said.err.contains("is never closed"), "{}", said.err);
    fs::copy(repository("tests/fix/words.yaml"), folder.path().join("a.yaml")).unwrap();
    let said = check(&["a.yaml", "--diff", "--format", "github"]);
    assert!(said.code == 1 && said.out.contains("::error file=a.yaml"), "{}", said.out);
    let said = check(&["a.yaml", "--diff", "--format", "json"]);
    let envelope: Json = serde_json::from_str(&said.out).unwrap();
    assert!(envelope["data"]["diff"].as_str().unwrap().contains("+context: 32"), "{}", said.out);
    let mut permissions = fs::metadata(folder.path().join("a.yaml")).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(folder.path().join("a.yaml"), permissions).unwrap();
    let said = check(&["a.yaml", "--fix"]);
    assert!(said.code == 4 && said.err.contains("is read-only"), "{}", said.err);
}

/// In the DSL, entries are also moved between the braces of one line, and lines are also indented with tabs.
#[test]
fn braces_in_one_line_and_tabs_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.trafo");
    let head = "vocab = 100 context = 32 d_model = 64 head = lm";
    for (text, fixed) in [
        (
            "decoder x 2 { heads = 4 attention { bias = false } }",
            "decoder x 2 { attention { bias = false heads = 4 } }",
        ),
        (
            "decoder x 2 {\n\t\theads = 4\n\t\tattention {\n\t\t\tbias = false\n\t\t}\n\t}",
            "decoder x 2 {\n\t\tattention {\n\t\t\tbias = false\n\t\t\theads = 4\n\t\t}\n\t}",
        ),
        (
            "decoder x 2 {\n\t\tattention { heads = 4 }\n\t\tmoe {\n\t\t\texperts = 4\n\t\t\ttop_k = 2\n\t\t\t\
             expert { expansion = 1 }\n\t\t}\n\t}",
            "decoder x 2 {\n\t\tattention { heads = 4 }\n\t\tffn {\n\t\t\tmoe {\n\t\t\t\texperts = 4\n\t\t\t\ttop_k = 2\n\t\t\t\t\
             expert { expansion = 1 }\n\t\t\t}\n\t\t}\n\t}",
        ),
    ] {
        let whole = |text: &str| format!("model m {{\n\t{head}\n\t{text}\n}}\n");
        fs::write(&path, whole(text)).unwrap();
        let said = trafoc_in(folder.path(), &["check", "a.trafo", "--fix", "--unsafe-fixes"]);
        assert_eq!(fs::read_to_string(&path).unwrap(), whole(fixed), "{}", said.err);
    }
}

/// What is wrong within a map in the wrong place comes to light only after the map is moved, and is mended with it.
#[test]
fn a_map_is_moved_with_its_misspelled_keys() {
    const HEAD: &str = "name: m\nvocab: 100\ncontext: 32\nd_model: 64\nhead: lm\n";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.yaml");
    for (text, fixed) in [
        (
            "decoder: {layers: 2, attention: {heads: 4}}\nlayer_norm: {epsi: 1e-6}\n",
            "decoder: {layers: 2, attention: {heads: 4}}\nnorm: {layer_norm: {eps: 1e-6}}\n",
        ),
        (
            "decoder: {layers: 2, attention: {heads: 4}, moe: {expets: 4, topk: 2, expert: {expnsion: 1}}}\n",
            "decoder: {layers: 2, attention: {heads: 4}, ffn: {moe: {experts: 4, top_k: 2, expert: {expansion: 1}}}}\n",
        ),
    ] {
        fs::write(&path, format!("{HEAD}{text}")).unwrap();
        let said = trafoc_in(folder.path(), &["check", "a.yaml", "--fix", "--unsafe-fixes"]);
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{HEAD}{fixed}"), "{}", said.err);
    }
}

/// A program learns what was changed if some errors remain, too.
#[test]
fn what_was_fixed_is_said_beside_what_is_still_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let text = "name: m\nvocab: 100\ncontxt: 32\nd_model: 64\nhead: lm\n\
                decoder: {layers: 2, attention: {heads: 5}}\n";
    let check = |format: &str| {
        fs::write(folder.path().join("a.yaml"), text).unwrap();
        trafoc_in(folder.path(), &["check", "a.yaml", "--fix", "--format", format])
    };
    let said = check("json");
    let envelope: Json = serde_json::from_str(&said.out).unwrap();
    assert_eq!((said.code, &envelope["status"]), (1, &"failed".into()), "{}", said.out);
    assert_eq!(envelope["data"]["fixed"][0]["change"], "`contxt` is `context` now");
    let spec = &envelope["data"]["specs"][0];
    assert_eq!((&spec["ok"], &spec["error"]), (&false.into(), &"`a.yaml` has 1 error".into()));
    let said = check("text");
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    assert!(said.err.ends_with("error: `a.yaml` has 1 error\n"), "{}", said.err);
    for format in ["github", "sarif"] {
        let said = check(format);
        assert!(said.code == 1 && !said.out.contains("has 1 error"), "{format}: {}", said.out);
    }
}

/// What a link leads to is changed, and the link stays one. Another name of the file keeps the text that it had.
#[cfg(unix)]
#[test]
fn a_link_stays_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let text = fs::read_to_string(repository("tests/fix/words.yaml")).unwrap();
    fs::create_dir(at("there")).unwrap();
    fs::write(at("there/a.yaml"), &text).unwrap();
    fs::hard_link(at("there/a.yaml"), at("other.yaml")).unwrap();
    std::os::unix::fs::symlink("there/a.yaml", at("link.yaml")).unwrap();
    let said = trafoc_in(folder.path(), &["check", "link.yaml", "--fix"]);
    assert!(said.err.contains("fixed link.yaml:"), "{}", said.err);
    assert!(fs::symlink_metadata(at("link.yaml")).unwrap().is_symlink());
    assert!(fs::read_to_string(at("there/a.yaml")).unwrap().contains("context"));
    assert_eq!(fs::read_to_string(at("other.yaml")).unwrap(), text);
}

/// JSON has quotes around every key, also around those of maps that a fix makes.
#[test]
fn json_stays_json() {
    let folder = tempfile::tempdir().unwrap();
    let text = r#"{"trafo": 1, "name": "m", "vocab": 32, "context": 16, "d_model": 16,
        "decoder": {"layers": 1, "attention": {"heads": 4, "position": "rotary", "window": 8}, "ffn": {"activation": "relu"}},
        "head": "lm"}"#;
    fs::write(folder.path().join("a.json"), text).unwrap();
    let said = trafoc_in(folder.path(), &["check", "a.json", "--fix", "--unsafe-fixes"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let after: Json = serde_json::from_slice(&fs::read(folder.path().join("a.json")).unwrap()).unwrap();
    assert_eq!(after["decoder"]["attention"]["mask"]["window"], 8, "{after}");
    assert_eq!(after["decoder"]["position"], "rotary", "{after}");
}

/// What is spelt much like a part, or lets a position see those after it, is not put there without asking, and no command is
/// said to do so.
#[test]
fn another_idea_is_no_slip() {
    let folder = tempfile::tempdir().unwrap();
    let attention = |more: &str| format!("attention: {{heads: 4{more}}}");
    for (line, is_fixed) in [
        (attention("") + "\n  norm: max_norm", false),
        (attention("") + "\n  norm: power_norm", false),
        (attention("") + "\n  position: rotary_2d", false),
        (attention("") + "\n  ffn: {activation: crelu}", false),
        (attention(", mask: none"), false),
        (attention(", mask: full"), false),
        (attention(", mask: bidirectionl"), true),
        (attention("") + "\n  norm: LayerNorm", true),
        (attention("") + "\n  norm_final: rms_norm", true),
        (attention("") + "\n  position: rotry", true),
    ] {
        let text = format!(
            "name: m\nvocab: 32\ncontext: 8\nd_model: 16\ndecoder:\n  layers: 1\n  {line}\nhead: lm\n"
        );
        fs::write(folder.path().join("a.yaml"), &text).unwrap();
        let said = trafoc_in(folder.path(), &["check", "a.yaml"]);
        assert_eq!((said.code, said.err.contains("--fix")), (1, is_fixed), "{line}: {}", said.err);
        trafoc_in(folder.path(), &["check", "a.yaml", "--fix"]);
        let after = fs::read_to_string(folder.path().join("a.yaml")).unwrap();
        assert_eq!(after != text, is_fixed, "{line}: {after}");
    }
}

/// Many fixes take about as many checks as one, also where some of them do not help; blocks of one content are all fixed.
#[test]
fn many_fixes_are_made_at_once() {
    const COUNT: usize = 300;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.yaml");
    let text = |key: &str, other: &str| {
        let of = |i: usize| match i % 10 {
            3 => format!("    b{i}: {{attention: {{heads: 4, {other}: sideways}}}}\n"),
            4 => format!("    b{i}: {{attention: {{heads: 4, {key}: false}}}}\n"),
            _ => format!("    b{i}: {{attention: {{heads: 4, dropout: 0.{}, {key}: false}}}}\n", i + 1),
        };
        let blocks: String = (0..COUNT).map(of).collect();
        let names = (0..COUNT).map(|i| format!("b{i}")).collect::<Vec<_>>().join(", ");
        format!(
            "name: m\nvocab: 100\ncontext: 32\nd_model: 64\nhead: lm\ndecoder:\n  layers: {COUNT}\n  blocks:\n{blocks}  \
             pattern: [{names}]\n"
        )
    };
    fs::write(&path, text("bais", "bais")).unwrap();
    let began = std::time::Instant::now();
    let said = trafoc_in(folder.path(), &["check", "a.yaml", "--fix"]);
    assert_eq!(fs::read_to_string(&path).unwrap(), text("bias", "bais"), "{}", said.err);
    assert!(said.code == 1 && !said.err.contains("not tried"), "{}", said.err);
    // One check for each fix takes minutes.
    assert!(began.elapsed().as_secs() < 30, "{:?}", began.elapsed());
    let again = trafoc_in(folder.path(), &["check", "a.yaml", "--diff"]);
    assert!(again.out.is_empty(), "{}", again.out);
}

/// A limit that is reached is said.
#[test]
fn a_text_with_too_many_errors_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let wrong: String = (0..2_100).map(|i| format!("contxt{i}: 1\n")).collect();
    let text = format!("name: m\nvocab: 100\ncontxt: 32\nd_model: 64\nhead: lm\n{wrong}");
    fs::write(folder.path().join("a.yaml"), &text).unwrap();
    let said = trafoc_in(folder.path(), &["check", "a.yaml", "--fix"]);
    assert!(said.err.contains("`a.yaml` has at least 2000 errors, and is not fixed"), "{}", said.err);
    assert_eq!(fs::read_to_string(folder.path().join("a.yaml")).unwrap(), text);
}

/// A comment goes where its key goes, or the key stays; a map without entries is filled, or removed where that means the same.
#[test]
fn comments_go_with_their_keys() {
    let folder = tempfile::tempdir().unwrap();
    for (name, head, text, fixed) in [
        (
            "a.yaml",
            "",
            "decoder:\n  layers: 2\n  # four heads\n  # of 16\n  heads: 4  # few\n  attention:\n    bias: false\n",
            "decoder:\n  layers: 2\n  attention:\n    bias: false\n    # four heads\n    # of 16\n    heads: 4  # few\n",
        ),
        (
            "a.yaml",
            "",
            "decoder:\n  layers: 2\n  # four heads\n  heads: 4\n  attention: {bias: false}\n",
            "decoder:\n  layers: 2\n  # four heads\n  attention: {bias: false, heads: 4}\n",
        ),
        // What is further right belongs to the map above it, or is within its text.
        (
            "a.yaml",
            "",
            "decoder:\n  layers: 2\n  ffn:\n    expansion: 4\n    # the end\n  heads: 4\n  attention:\n    bias: false\n",
            "decoder:\n  layers: 2\n  ffn:\n    expansion: 4\n    # the end\n  attention:\n    bias: false\n    heads: 4\n",
        ),
        (
            "a.yaml",
            "",
            "decoder:\n  layers: 2\n  block: |\n    x = x + attention(norm(x))\n    # and no ffn\n  heads: 4\n  attention: {bias: false}\n",
            "decoder:\n  layers: 2\n  block: |\n    x = x + attention(norm(x))\n    # and no ffn\n  attention: {bias: false, heads: 4}\n",
        ),
        // The comment of the key before it stays there.
        (
            "a.yaml",
            "",
            "decoder:\n  layers: 2\n  heads: 4\n  attention: {\n    bias: false  # no biases\n  }\n",
            "decoder:\n  layers: 2\n  attention: {\n    bias: false,  # no biases\n    heads: 4\n  }\n",
        ),
        // A comment of a key between commas is not left to another key.
        (
            "a.yaml",
            "",
            "decoder:\n  attention: {\n    heads: 4,\n    layers: 2  # two\n  }\n",
            "decoder:\n  attention: {\n    heads: 4,\n    layers: 2  # two\n  }\n",
        ),
        (
            "a.yaml",
            "",
            "decoder:\n  attention: {\n    heads: 4,\n    # two\n    layers: 2\n  }\n",
            "decoder:\n  attention: {\n    heads: 4,\n    # two\n    layers: 2\n  }\n",
        ),
        (
            "a.yaml",
            "",
            "decoder:\n  layers: 2\n  attention: {}\n  heads: 4\n",
            "decoder:\n  layers: 2\n  attention: {heads: 4}\n",
        ),
        (
            "a.yaml",
            "",
            "decoder:\n  ffn:\n    # two\n    layers: 2  # few\n  attention: {heads: 4}\n",
            "decoder:\n  # two\n  layers: 2  # few\n  attention: {heads: 4}\n",
        ),
        // A variant has something in it.
        (
            "a.yaml",
            "",
            "decoder:\n  ffn: {layers: 2}\n  attention: {heads: 4}\nsweep: {a: {decoder.ffn.hidden: 8}}\n",
            "decoder:\n  ffn: {}\n  layers: 2\n  attention: {heads: 4}\nsweep: {a: {decoder.ffn.hidden: 8}}\n",
        ),
        (
            "a.trafo",
            "model m {\n",
            "  decoder x 2 {\n    heads = 4\n    attention { }\n  }\n}\n",
            "  decoder x 2 {\n    attention { heads = 4 }\n  }\n}\n",
        ),
        (
            "a.trafo",
            "model m {\n",
            "  decoder x 2 {\n    ffn { block = post_norm }\n    attention {\n      heads = 4\n    }\n  }\n}\n",
            "  decoder x 2 {\n    block = post_norm\n    attention {\n      heads = 4\n    }\n  }\n}\n",
        ),
        (
            "a.trafo",
            "model m {\n",
            "  decoder x 2 {\n    ffn { block = post_norm }  // plain\n    attention { heads = 4 }\n  }\n}\n",
            "  decoder x 2 {\n    ffn { }  // plain\n    block = post_norm\n    attention { heads = 4 }\n  }\n}\n",
        ),
        (
            "a.trafo",
            "model m {\n",
            "  decoder x 2 {\n    attention { heads = 4 }\n    ffn { }\n    moe {\n      experts = 4\n      top_k = 2\n      \
             expert { expansion = 1 }\n    }\n  }\n}\n",
            "  decoder x 2 {\n    attention { heads = 4 }\n    ffn {\n      moe {\n        experts = 4\n        top_k = 2\n        \
             expert { expansion = 1 }\n      }\n    }\n  }\n}\n",
        ),
    ] {
        let sizes = match head {
            "" => "name: m\nvocab: 100\ncontext: 32\nd_model: 64\nhead: lm\n",
            _ => "  vocab = 100\n  context = 32\n  d_model = 64\n  head = lm\n",
        };
        let path = folder.path().join(name);
        fs::write(&path, format!("{head}{sizes}{text}")).unwrap();
        let said = trafoc_in(folder.path(), &["check", name, "--fix", "--unsafe-fixes"]);
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{head}{sizes}{fixed}"), "{}", said.err);
    }
}
