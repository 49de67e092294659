//! Files that are not what they seem: pipes, devices, links, bombs, names and texts that steer a terminal.

use std::path::Path;
use std::process::Output;

use crate::compiled::repository;
use crate::readers::harmless;

const TINY: &str =
    "name: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n";

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A command of a shell in a folder, with the program as `$0`. It is ended after a minute, since a pipe that
/// nothing writes to is waited for without end.
#[cfg(unix)]
pub fn shell(folder: &Path, script: &str) -> Output {
    let mut command = crate::compiled::alone("timeout");
    command.args(["60", "bash", "-c", script, crate::compiled::PROGRAM]).current_dir(folder);
    command.output().unwrap()
}

#[cfg(unix)]
#[test]
fn a_spec_may_come_through_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tiny.yaml"), TINY).unwrap();
    for script in [
        "\"$0\" check <(cat tiny.yaml)",
        "\"$0\" check /dev/stdin < tiny.yaml",
        "cat tiny.yaml | \"$0\" check /dev/stdin",
        "mkfifo spec && (cat tiny.yaml > spec &) && \"$0\" check spec",
    ] {
        let output = shell(folder.path(), script);
        assert!(output.status.success(), "{script}: {}", text(&output.stderr));
    }
    let output = shell(folder.path(), "\"$0\" check /dev/zero");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("longer than the 1048576 bytes that a spec or a recipe may have"));
}

/// A device that never ends would fill memory up to the bound on inputs.
#[cfg(all(unix, feature = "flex"))]
#[test]
fn inputs_come_from_a_file_or_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tiny.yaml"), TINY).unwrap();
    std::fs::write(folder.path().join("in.json"), "{\"tokens\": [[1, 2]]}").unwrap();
    let run = |inputs: &str| shell(folder.path(), &format!("\"$0\" run tiny.yaml --inputs {inputs}"));
    let endless = run("/dev/zero");
    assert_eq!(endless.status.code(), Some(4));
    assert!(text(&endless.stderr).contains("it is a device, and must be a file or a pipe"));
    for inputs in ["<(cat in.json)", "/dev/stdin < in.json", "- < in.json"] {
        let output = run(inputs);
        assert!(output.status.success(), "{inputs}: {}", text(&output.stderr));
    }
    // An empty text is read and found to be none.
    assert!(text(&run("/dev/stdin < /dev/null").stderr).contains("it is not JSON"));
}

#[test]
fn a_misspelled_name_of_a_file_is_corrected() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("below")).unwrap();
    std::fs::write(folder.path().join("below/tiny.yaml"), TINY).unwrap();
    std::fs::write(folder.path().join("below/tiny.txt"), TINY).unwrap();
    let check = |name: &str| text(&shell(folder.path(), &format!("\"$0\" check {name}")).stderr);
    assert!(check("below/tny.yaml").contains("did you mean `below/tiny.yaml`?"));
    assert!(check("below/tiny.yml").contains("`below/tiny.yaml` is a file"));
    assert!(!check("below/other.yaml").contains("did you mean"));
    let at_a_folder = check("below");
    assert!(at_a_folder.contains("it is a folder") && at_a_folder.contains("`config.json`"), "{at_a_folder}");
}

#[cfg(all(unix, feature = "interp"))]
#[test]
fn weights_and_what_else_is_read_twice_are_ordinary_files() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tiny.yaml"), TINY).unwrap();
    let model = folder.path().join("model");
    std::fs::create_dir(&model).unwrap();
    std::fs::copy(repository("tests/hub/gpt2/config.json"), model.join("config.json")).unwrap();
    for (script, what) in [
        ("mkfifo pipe; \"$0\" import tiny.yaml --dry-run --weights pipe", "it is a pipe"),
        ("\"$0\" import tiny.yaml --dry-run --weights /dev/zero", "it is a device"),
        ("mkfifo model/model.safetensors; \"$0\" import model --dry-run", "it is a pipe"),
        (
            "rm model/model.safetensors; mkfifo model/model.safetensors.index.json; \"$0\" import model --dry-run",
            "it is a pipe",
        ),
    ] {
        let output = shell(folder.path(), script);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{script}: {said}");
        assert!(said.contains(what), "{script}: {said}");
    }
}

/// What never ends is refused where it is seen to be no JSON, and not after all that could be read of it.
#[cfg(all(unix, feature = "interp"))]
#[test]
fn inputs_that_are_no_json_are_not_read_to_an_end() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tiny.yaml"), TINY).unwrap();
    for (script, what) in [
        ("yes | \"$0\" run tiny.yaml --inputs -", "cannot read inputs from stdin: it is not JSON (column 1)"),
        ("\"$0\" run tiny.yaml --inputs - < /dev/zero", "it is not JSON (column 1)"),
        ("printf '{\"tokens\": [[1' | \"$0\" run tiny.yaml --inputs -", "it ends too early"),
    ] {
        let output = shell(folder.path(), script);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{script}: {said}");
        assert!(said.contains(what), "{script}: {said}");
    }
}

/// The cache of Hugging Face has links to `blobs`, two folders up.
#[cfg(unix)]
#[test]
fn models_are_read_through_the_links_of_their_cache() {
    let cache = tempfile::tempdir().unwrap();
    let (blobs, snapshot) = (cache.path().join("blobs"), cache.path().join("snapshots/0a1b"));
    std::fs::create_dir(&blobs).unwrap();
    std::fs::create_dir_all(&snapshot).unwrap();
    for (i, name) in ["config.json", "model.safetensors"].iter().enumerate() {
        std::fs::copy(repository("tests/hub/gpt2").join(name), blobs.join(i.to_string())).unwrap();
        std::os::unix::fs::symlink(format!("../../blobs/{i}"), snapshot.join(name)).unwrap();
    }
    let output = shell(&snapshot, "\"$0\" import . --dry-run");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("transformer.wte.weight"));
    let output = shell(&snapshot, "\"$0\" export . --to ../../copy");
    assert!(output.status.success(), "{}", text(&output.stderr));
}

/// An export is there whole or not at all, and one that was ended needs no `--force`.
#[cfg(all(unix, feature = "interp"))]
#[test]
fn an_export_appears_whole() {
    let folder = tempfile::tempdir().unwrap();
    let model = repository("tests/hub/gpt2");
    let names = |path: &Path| {
        let mut all: Vec<String> = std::fs::read_dir(path)
            .map(|d| d.map(|e| e.unwrap().file_name().into_string().unwrap()).collect())
            .unwrap_or_default();
        all.sort();
        all
    };
    let export =
        |more: &str| shell(folder.path(), &format!("\"$0\" export {} --to out {more}", model.display()));
    // What a killed process has left.
    for left in [".out.trafoc.tmp", "out/.trafoc.tmp"] {
        std::fs::create_dir_all(folder.path().join(left)).unwrap();
        std::fs::write(folder.path().join(left).join("config.json"), "{").unwrap();
    }
    let output = export("");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let whole = names(&folder.path().join("out"));
    assert!(
        whole.contains(&"config.json".to_owned()) && !whole.iter().any(|n| n.contains("tmp")),
        "{whole:?}"
    );
    std::fs::remove_dir_all(folder.path().join("out")).unwrap();
    // It cannot be written to its end: no file may be longer than a few KiB. The signal of this limit does not
    // end the process, which removes what it has written.
    let output = shell(folder.path(), &format!("ulimit -f 8; \"$0\" export {} --to out", model.display()));
    let said = text(&output.stderr);
    assert!(
        output.status.code() == Some(4) && said.contains("out/model") && !said.contains("tmp/"),
        "{said}"
    );
    assert!(!folder.path().join("out").exists());
    assert!(export("").status.success());
    assert_eq!(names(&folder.path().join("out")), whole);
    assert_eq!(export("").status.code(), Some(3));
    assert!(export("--force").status.success());
}

/// The spec of a decoder with absurd heads, and what `build` makes of it with little memory.
#[cfg(unix)]
fn build_absurd(folder: &Path, name: &str, position: &str, attention: &str) -> Output {
    let spec = format!(
        "name: {name}\nvocab: 8\ncontext: 8\nd_model: 8\nembed: {{position: {position}}}\n\
         decoder: {{layers: 1, attention: {attention}, ffn: {{expansion: 2}}}}\nhead: lm\n"
    );
    std::fs::write(folder.join("spec.yaml"), spec).unwrap();
    // A table of a billion numbers would need several times as much.
    shell(folder, "ulimit -d 500000; \"$0\" build spec.yaml --out out/")
}

/// The changed angles of a billion features are a formula.
#[cfg(unix)]
#[test]
fn absurd_angles_are_emitted_as_a_formula() {
    let rules = [
        ("linear: {factor: 2}", "divided_frequencies"),
        ("yarn: {factor: 4, original_context: 4}", "ramp_frequencies"),
        ("llama3: {factor: 8, original_context: 4}", "wavelength_frequencies"),
    ];
    for (rule, formula) in rules {
        let folder = tempfile::tempdir().unwrap();
        let rotary = format!("{{rotary: {{scaling: {{{rule}}}}}}}");
        let output = build_absurd(folder.path(), "angles", &rotary, "{heads: 1, head_dim: 2^30}");
        assert!(output.status.success(), "{}", text(&output.stderr));
        let source = std::fs::read_to_string(folder.path().join("out/angles.rs")).unwrap();
        assert!(source.len() < 50_000 && source.contains(formula), "{rule}: {}", source.len());
    }
}

/// The slopes of a billion heads are a formula.
#[cfg(unix)]
#[test]
fn absurd_slopes_are_emitted_as_a_formula() {
    let folder = tempfile::tempdir().unwrap();
    let output = build_absurd(folder.path(), "slopes", "alibi", "{heads: 2^30, head_dim: 2}");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let source = std::fs::read_to_string(folder.path().join("out/slopes.rs")).unwrap();
    assert!(source.len() < 50_000 && source.contains("alibi_slopes"), "{}", source.len());
}

/// A link stays a link, a pipe stays a pipe, and permissions stay as they are.
#[cfg(unix)]
#[test]
fn replacing_a_file_keeps_what_it_is() {
    use std::os::unix::fs::PermissionsExt as _;
    use trafoc::tensor_file::{self, Saved, TensorFile};
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let save = |name: &str| {
        let tensor = Saved::floats(vec![2], [1.0, 2.0]);
        let shapes = [("a".to_owned(), tensor.dtype, tensor.shape.clone())];
        tensor_file::write(&path(name), &shapes, &Default::default(), |_| Ok(tensor.clone())).unwrap();
    };
    std::fs::write(path("file"), "old").unwrap();
    std::fs::set_permissions(path("file"), std::fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink("file", path("link")).unwrap();
    save("link");
    assert!(path("link").symlink_metadata().unwrap().is_symlink());
    assert_eq!(path("file").metadata().unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(TensorFile::open(&path("link")).unwrap().floats("a").unwrap(), [1.0, 2.0]);
    assert!(shell(folder.path(), "mkfifo pipe").status.success());
    // Writing to a pipe waits until something reads it.
    let reading = std::thread::spawn({
        let pipe = path("pipe");
        move || std::fs::read(pipe).unwrap()
    });
    save("pipe");
    assert_eq!(reading.join().unwrap(), std::fs::read(path("file")).unwrap());
    assert!(!path("pipe").metadata().unwrap().is_file());
    let names = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(names, 3, "nothing is left of what was written in between");
}

/// What a command may take is the least of what the machine, its control groups and its own limits leave.
#[test]
fn free_memory_is_the_least_of_all_limits() {
    const MIB: u128 = 1 << 20;
    let machine = [("/proc/meminfo", "MemTotal:  9000000 kB\nMemAvailable:    2097152 kB\n")];
    let free = |more: &[(&str, &str)]| {
        let files = machine.iter().chain(more).map(|(path, text)| (*path, (*text).to_owned()));
        let files: std::collections::BTreeMap<&str, String> = files.collect();
        trafoc::memory::free_by(&|path| files.get(path).cloned(), 3)
    };
    assert_eq!(trafoc::memory::free_by(&|_| None, 3), None);
    // Without what the allocator keeps.
    assert_eq!(free(&[]), Some((2048 - 72) * MIB));
    let limits = "Max data size             unlimited            unlimited            bytes\n\
                  Max address space         1048576000           unlimited            bytes\n";
    let status = ("/proc/self/status", "VmSize:\t  102400 kB\nVmData:\t  90000 kB\nThreads:\t2\n");
    assert_eq!(
        free(&[("/proc/self/limits", limits), status]),
        Some((900 - 72) * MIB),
        "one more thread will reserve addresses"
    );
    // Version 2: the group above has the smaller limit, and what was read from files is given back.
    let nested = [
        ("/proc/self/cgroup", "0::/jobs/one\n"),
        ("/sys/fs/cgroup/jobs/one/memory.max", "max\n"),
        ("/sys/fs/cgroup/jobs/one/memory.current", "1048576\n"),
        ("/sys/fs/cgroup/jobs/memory.max", "536870912\n"),
        ("/sys/fs/cgroup/jobs/memory.current", "268435456\n"),
        ("/sys/fs/cgroup/jobs/memory.stat", "anon 1\ninactive_file 67108864\n"),
    ];
    assert_eq!(free(&nested), Some((320 - 72) * MIB));
    // Version 1, in a container that sees its own group as the root.
    let old = [
        ("/proc/self/cgroup", "9:cpu:/a\n4:memory:/docker/1a2b\n0::/\n"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "104857600\n"),
        ("/sys/fs/cgroup/memory/memory.usage_in_bytes", "52428800\n"),
        ("/sys/fs/cgroup/memory/memory.stat", "inactive_file 5\ntotal_inactive_file 10485760\n"),
    ];
    // Of little memory a third.
    assert_eq!(free(&old), Some(40 * MIB));
}

/// Everything that shows what is in a file shows it without commands for the terminal.
#[cfg(unix)]
#[test]
fn nothing_of_a_file_steers_the_terminal() {
    const HOSTILE: &str = "\u{1b}]0;PWNED\u{7}\u{1b}[31m\u{9b}2J\r\u{202e}\u{200f}";
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let quoted = serde_json::to_string(HOSTILE).unwrap();
    let escaped: String = HOSTILE.chars().map(|c| format!("\\u{:04x}", c as u32)).collect();
    std::fs::write(path("raw.yaml"), format!("{TINY}# {HOSTILE}\n")).unwrap();
    std::fs::write(path("raw.trafo"), format!("model a {{ # {HOSTILE}\n}}\n")).unwrap();
    std::fs::write(path("key.yaml"), format!("{TINY}\"{escaped}\": 1\n")).unwrap();
    std::fs::write(path("value.yaml"), TINY.replace("layers: 1", &format!("layers: \"{escaped}\""))).unwrap();
    std::fs::write(path("name.yaml"), TINY.replace("tiny", &format!("\"{escaped}\""))).unwrap();
    std::fs::write(path("extends.yaml"), format!("extends: \"{escaped}\"\n")).unwrap();
    std::fs::write(path("tiny.yaml"), TINY).unwrap();
    std::fs::write(
        path("recipe.yaml"),
        format!("recipe: 1\ndata: {{format: lines, train: \"{escaped}\"}}\nsteps: 1\n"),
    )
    .unwrap();
    let config = std::fs::read_to_string(repository("tests/hub/gpt2/config.json")).unwrap();
    std::fs::create_dir(path("model")).unwrap();
    let odd = config.replacen(
        '{',
        &format!("{{{quoted}: 1, \"task_specific_params.{}\": 1,", quoted.trim_matches('"')),
        1,
    );
    std::fs::write(path("model/config.json"), odd.replace("\u{9b}", "\\u009b")).unwrap();
    let header = format!("{{{quoted}:{{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}}}");
    let mut weights = (header.len() as u64).to_le_bytes().to_vec();
    weights.extend(header.bytes().chain([0; 4]));
    std::fs::write(path("odd.safetensors"), &weights).unwrap();
    // A header that is not JSON.
    weights[9] = b'!';
    std::fs::write(path("bad.safetensors"), weights).unwrap();
    std::fs::write(path(HOSTILE), TINY).unwrap();
    for arguments in [
        "check raw.yaml",
        "check raw.trafo",
        "check key.yaml",
        "check value.yaml",
        "check name.yaml",
        "check extends.yaml",
        "check --format short key.yaml",
        "print tree key.yaml",
        "print tree value.yaml",
        "fmt raw.yaml",
        "fmt key.yaml",
        "convert value.yaml",
        "expand name.yaml",
        "show name.yaml",
        "draw name.yaml",
        "compare name.yaml tiny.yaml",
        "build key.yaml",
        "check tiny.yaml --recipe recipe.yaml",
        "import model",
        "import model --dry-run",
        "import tiny.yaml --dry-run --weights odd.safetensors",
        "import tiny.yaml --dry-run --weights bad.safetensors",
        "export tiny.yaml --weights odd.safetensors --to out",
        "check *PWNED*",
        "doctor *PWNED*",
        "check tiny.yaml --format *PWNED*",
        "*PWNED*",
        "explain \"$(cat raw.yaml)\"",
        "check tiny.yaml --set \"$(tail -1 raw.yaml)=1\"",
    ] {
        let output = shell(folder.path(), &format!("\"$0\" {arguments}"));
        assert!(output.status.code().is_some_and(|c| c <= 5), "{arguments}: {}", text(&output.stderr));
        harmless(&text(&output.stderr));
        // Texts keep the mark that words written from right to left need.
        harmless(&text(&output.stdout).replace('\u{200f}', ""));
    }
}

/// Only the page's own script runs, under a number that differs from page to page and does not change.
#[test]
fn the_number_of_a_page_follows_from_its_content() {
    let page = |title: &str| trafoc::draw::page::Page::new(title, "a lead").html();
    let number = |html: &str| {
        let at = html.find("'nonce-").unwrap() + 7;
        html[at..].split('\'').next().unwrap().to_owned()
    };
    let (a, b) = (page("a"), page("b"));
    assert_eq!(a, page("a"));
    assert_eq!(number(&a).len(), 32);
    assert_ne!(number(&a), number(&b));
    assert!(a.contains(&format!("<script nonce=\"{}\">", number(&a))));
    assert_eq!(a.matches("<script").count(), 1);
}

/// Data files are read with a bound on what they unpack to, on rows and on columns.
#[cfg(feature = "learn")]
mod data {
    use std::io::Write as _;
    use std::ops::ControlFlow;
    use std::path::Path;

    use trafoc::diag::Sink;
    use trafoc::learn::data::Refused;
    use trafoc::learn::data::file::{Named, bytes};
    use trafoc::learn::data::read::{self, Faults};
    use trafoc::learn::recipe;
    use trafoc::source::Span;
    use trafoc::spec::load;

    /// What is wrong with a file that is read in some format.
    fn refused(path: &Path, format: &str) -> String {
        let mut sources = load::sources();
        let id = sources.add("r", format!("recipe: 1\ndata: {{format: {format}, train: a}}\nsteps: 1\n"));
        let mut sink = Sink::new();
        let recipe = recipe::read(&sources, id, &[], &mut sink).unwrap();
        let files = [Named { path: path.to_owned(), span: Span::new(id, 0, 1) }];
        let mut faults = Faults::new(&mut sink);
        let mut visit = |_: read::Raw, _: read::Place<'_>, _: &mut Faults<'_>| ControlFlow::Continue(());
        let done = read::read(&recipe.data.format, &files, None, false, None, &mut faults, &mut visit);
        faults.report();
        match done {
            Err(Refused::File { why, .. }) => why,
            Err(Refused::Data) | Ok(()) => {
                sink.iter().map(|d| d.message.clone()).collect::<Vec<_>>().join("\n")
            }
        }
    }

    #[test]
    fn rows_and_columns_are_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("wide.csv");
        std::fs::write(&path, "a,".repeat(20_000)).unwrap();
        let why = refused(&path, "{table: {text: 1, label: 2, header: 0}}");
        assert!(why.contains("20001 columns, but 10000 is the limit"), "{why}");
        std::fs::write(&path, "a".repeat(17 << 20)).unwrap();
        for format in
            ["{table: {text: 1, label: 2, header: 0}}", "lines", "{table: {text: text, label: label}}"]
        {
            let why = refused(&path, format);
            assert!(why.contains("is longer than 16777216 bytes"), "{format}: {why}");
        }
    }

    #[test]
    fn a_packed_file_unpacks_to_what_a_text_may() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines.gz");
        let pack = |line: &str, count: usize| {
            let file = std::fs::File::create(&path).unwrap();
            let mut packed = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
            (0..count).for_each(|_| packed.write_all(line.as_bytes()).unwrap());
            packed.finish().unwrap();
        };
        pack("a short line\n", 1_000);
        assert_eq!(bytes(&path, 1 << 20).unwrap().len(), 13_000);
        pack(&("a".repeat(1 << 16) + "\n"), 2_000);
        let why = refused(&path, "lines");
        assert!(why.contains("unpacks to more than 200 times its size"), "{why}");
    }

    #[cfg(unix)]
    #[test]
    fn data_are_ordinary_files() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for (path, what) in [(pipe.as_path(), "it is a pipe"), (Path::new("/dev/zero"), "it is a device")] {
            for format in ["lines", "text", "pairs", "tagged", "squad", "{table: {text: 1, label: 2}}"] {
                let why = refused(path, format);
                assert!(why.contains(what), "{format}: {why}");
            }
        }
        let form = trafoc::learn::data::Form { channels: 1, side: 2 };
        let plain = trafoc::learn::data::picture::Preparation::plain(form, true);
        let why = trafoc::learn::data::picture::picture(&pipe, form, &plain).unwrap_err().into_message();
        assert!(why.contains("it is a pipe"), "{why}");
    }
}

/// Threads that write at once do not take each other's drafts.
#[test]
fn threads_write_files_of_one_folder_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let text = |n: usize| format!("{n} ").repeat(10_000 + n);
    std::thread::scope(|scope| {
        for n in 0..16 {
            let path = folder.path().join(n.to_string());
            scope.spawn(move || {
                trafoc::write::replace(&path, |file| file.write_all(text(n).as_bytes())).unwrap();
            });
        }
    });
    for n in 0..16 {
        assert_eq!(std::fs::read_to_string(folder.path().join(n.to_string())).unwrap(), text(n));
    }
}

/// Commands that write tensors say it as the others do, without the number of the error.
#[test]
fn a_full_disk_is_said_in_words() {
    let full = std::io::Error::from_raw_os_error(28);
    if full.kind() == std::io::ErrorKind::StorageFull {
        let said = trafoc::tensor_file::FileError::Io("model.safetensors".into(), full).to_string();
        assert_eq!(said, "cannot use `model.safetensors`: the disk is full");
    }
}

/// Files whose names trafoc chooses are not written through links, by which files elsewhere would change.
#[cfg(unix)]
#[test]
fn folders_of_output_are_not_left_through_links() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::create_dir_all(path("out/src")).unwrap();
    std::fs::write(path("kept"), "kept").unwrap();
    for (name, arguments) in [
        ("Cargo.toml", ["build", "@gpt1", "--crate", "out"].as_slice()),
        ("src/lib.rs", &["build", "@gpt1", "--crate", "out"]),
        ("gpt1.py", &["build", "@gpt1", "--target", "pytorch", "--out", "out"]),
        ("model.py", &["build", "@gpt1", "--target", "pytorch", "--recipe", "@gpt1", "--out", "out"]),
        ("trafoc.1", &["man", "--out", "out"]),
        ("data.json", &["data", "@gbt-mulm", "--recipe", "@gbt-mulm", "--out", "out"]),
    ] {
        // What trains is not in a build without a backend.
        if matches!(name, "model.py" | "data.json") && !cfg!(feature = "interp") {
            continue;
        }
        std::os::unix::fs::symlink(path("kept"), path("out").join(name)).unwrap();
        for force in [[].as_slice(), &["--force"]] {
            let said = crate::cli::trafoc_in(folder.path(), &[arguments, force].concat());
            // Data is prepared into an empty folder or, by force, into any.
            let is_refused = name == "data.json" && force.is_empty();
            assert_eq!(said.code, if is_refused { 3 } else { 4 }, "{name}\n{}", said.err);
            assert!(is_refused || said.err.contains("is a link"), "{name}\n{}", said.err);
            assert_eq!(std::fs::read_to_string(path("kept")).unwrap(), "kept", "{name}");
        }
        std::fs::remove_file(path("out").join(name)).unwrap();
        let others: Vec<_> =
            std::fs::read_dir(path("out")).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(others, ["src"], "{name}");
    }
}
