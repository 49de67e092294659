//! Directories of models that name files which are not theirs: they are refused, and whatever the program opens in order
//! to refuse them, it also opens for a good one.

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{calls, of};
use crate::compiled::repository;

/// A model of the tests, next to a file and a folder that are not its own.
struct Place {
    folder: tempfile::TempDir,
    weights: Vec<u8>,
}

/// Makes something at a path.
type Make<'a> = &'a dyn Fn(&Path);

const WEIGHTS: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let fixture = repository("tests/hub/apertus");
        let model = folder.path().join("model");
        std::fs::create_dir(&model).unwrap();
        std::fs::create_dir(folder.path().join("elsewhere")).unwrap();
        std::fs::copy(fixture.join("config.json"), model.join("config.json")).unwrap();
        std::fs::copy(fixture.join("inputs.json"), folder.path().join("in.json")).unwrap();
        let weights = std::fs::read(fixture.join(WEIGHTS)).unwrap();
        for outside in ["outside.safetensors", "elsewhere/outside.safetensors"] {
            std::fs::write(folder.path().join(outside), &weights).unwrap();
        }
        Self { folder, weights }
    }

    fn model(&self) -> PathBuf {
        self.folder.path().join("model")
    }

    fn outside(&self) -> PathBuf {
        self.folder.path().join("outside.safetensors")
    }

    /// Writes an index that puts every tensor into the file `name`.
    fn index(&self, name: &str) {
        let header = safetensors::SafeTensors::deserialize(&self.weights).unwrap();
        let map: serde_json::Map<_, _> =
            header.names().into_iter().map(|tensor| (tensor.to_owned(), name.into())).collect();
        let text = serde_json::json!({"metadata": {}, "weight_map": map}).to_string();
        std::fs::write(self.model().join(INDEX), text).unwrap();
    }

    /// Whether the model runs, what the program said, and every file that it opened and that does not belong to the model.
    /// Files in which the system describes itself, as in `/proc`, do not count.
    fn run(&self) -> (bool, String, BTreeSet<PathBuf>) {
        let mut command = crate::compiled::program();
        command.current_dir(self.folder.path()).args(["run", "model", "--inputs", "in.json"]);
        let (output, threads) = calls(&command, &[of(&["open", "openat", "openat2"])]);
        let opened = threads.values().flatten().filter_map(super::Call::opened);
        let is_foreign = |path: &PathBuf| {
            !path.starts_with(self.model()) && !path.starts_with("/proc") && !path.starts_with("/sys")
        };
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(matches!(output.status.code(), Some(0 | 4)), "{:?}: {said}", output.status);
        (output.status.success(), said, opened.filter(is_foreign).collect())
    }

    /// Removes everything from the model but its config.
    fn clear(&self) {
        for entry in std::fs::read_dir(self.model()).unwrap() {
            let entry = entry.unwrap();
            match entry.file_type().unwrap().is_dir() {
                true => std::fs::remove_dir_all(entry.path()).unwrap(),
                false if entry.file_name() == "config.json" => {}
                false => std::fs::remove_file(entry.path()).unwrap(),
            }
        }
    }
}

#[test]
#[ignore = "needs strace; `.ci/run trace`"]
fn no_file_is_opened_that_is_not_the_models() {
    let place = Place::new();
    std::fs::write(place.model().join("shard.safetensors"), &place.weights).unwrap();
    place.index("shard.safetensors");
    let (runs, said, usual) = place.run();
    assert!(runs, "{said}");
    assert!(
        usual.contains(&place.folder.path().join("in.json")),
        "the trace shows what is opened: {usual:?}"
    );
    let mut count = 0;
    let mut refused = |what: &str| {
        let (runs, said, opened) = place.run();
        assert!(!runs && said.contains("error: "), "{what:?} is refused: {said}");
        let beyond: Vec<&PathBuf> = opened.difference(&usual).collect();
        assert!(beyond.is_empty(), "{what:?}: {beyond:?} are opened");
        place.clear();
        count += 1;
    };
    let absolute = place.outside().to_string_lossy().into_owned();
    let long = "a".repeat(300);
    // An index names them; those without a separator are files that are not there.
    let names = [
        "../outside.safetensors",
        "../elsewhere/outside.safetensors",
        "./../outside.safetensors",
        "a/../../outside.safetensors",
        "a/../../../../../../../../../../etc/passwd",
        "model/../../outside.safetensors",
        "config.json/../../outside.safetensors",
        "subdir/../../../etc/passwd",
        "/etc/passwd",
        "//etc/passwd",
        "/proc/self/environ",
        "/dev/stdin",
        absolute.as_str(),
        "..",
        ".",
        "/",
        "",
        "~/outside.safetensors",
        "$HOME/outside.safetensors",
        "file:///etc/passwd",
        "%2e%2e%2foutside.safetensors",
        "C:\\outside.safetensors",
        "C:outside.safetensors",
        "..\\outside.safetensors",
        "\\\\host\\share\\outside.safetensors",
        "outside.safetensors\n",
        "../outside.safetensors\0",
        "\u{ff0e}\u{ff0e}\u{2215}outside.safetensors",
        "\u{202e}../outside.safetensors",
        long.as_str(),
        "config.json",
        INDEX,
    ];
    for name in names {
        place.index(name);
        refused(name);
    }
    let model = place.model();
    // Links and what is no file, under a name that is allowed.
    let kinds: &[(&str, Make<'_>)] = &[
        ("a link to a file outside", &|at| symlink("../outside.safetensors", at).unwrap()),
        ("an absolute link", &|at| symlink(place.outside(), at).unwrap()),
        ("a link to a link", &|at| {
            symlink("../outside.safetensors", model.join("between")).unwrap();
            symlink("between", at).unwrap();
        }),
        ("a link through a folder that is a link", &|at| {
            symlink("../elsewhere", model.join("folder")).unwrap();
            symlink("folder/outside.safetensors", at).unwrap();
        }),
        ("a link to itself", &|at| symlink(at.file_name().unwrap(), at).unwrap()),
        ("a link to a device", &|at| symlink("/dev/zero", at).unwrap()),
        ("a link to what the system says", &|at| symlink("/proc/self/environ", at).unwrap()),
        ("a pipe", &|at| {
            assert!(Command::new("mkfifo").arg(at).status().unwrap().success());
        }),
        ("a folder", &|at| std::fs::create_dir(at).unwrap()),
    ];
    for (what, make) in kinds {
        // With an index that names it, and without one.
        for name in ["shard.safetensors", WEIGHTS] {
            if name != WEIGHTS {
                place.index(name);
            }
            make(&model.join(name));
            refused(what);
        }
    }
    println!("{count} directories were refused, and none opened a file that a good one does not open");
}
