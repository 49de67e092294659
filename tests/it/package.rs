//! What a registry is given: small enough, with everything the program is made of, and the example of the
//! library.

use std::path::Path;
use std::process::Command;

use crate::compiled::repository;

#[cfg(feature = "flex")]
#[path = "../../examples/library.rs"]
mod library;

/// The most bytes that a registry accepts, packed. The files are fewer bytes even before they are packed.
const MOST: u64 = 10_000_000;

fn listed() -> Vec<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = ["package", "--list", "--allow-dirty", "--offline", "--locked", "-p", "trafoc"];
    let said = Command::new(cargo).current_dir(repository("")).args(arguments).output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    String::from_utf8(said.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// Texts that source files include, by their paths in the repository.
fn included(file: &Path, text: &str) -> Vec<String> {
    let calls = ["include_str!(\"", "include_bytes!(\""];
    let rests = calls.iter().flat_map(|call| text.split(call).skip(1));
    let names = rests.filter_map(|rest| rest.split_once('"')).map(|(name, _)| name);
    names.map(|name| file.parent().unwrap().join(name).to_string_lossy().into_owned()).collect()
}

#[test]
fn the_package_is_small_and_whole() {
    let files = listed();
    // These are made while packing.
    let made = ["Cargo.lock", "Cargo.toml.orig", ".cargo_vcs_info.json"];
    let own: Vec<&String> = files.iter().filter(|f| !made.contains(&f.as_str())).collect();
    let bytes: u64 = own.iter().map(|f| std::fs::metadata(repository(f)).map_or(0, |m| m.len())).sum();
    assert!(bytes < MOST, "{bytes} bytes in {} files", own.len());
    let foreign = |f: &&&String| ["tests/", "generated/", "benches/", "."].iter().any(|p| f.starts_with(p));
    assert_eq!(own.iter().find(foreign), None);
    for needed in [
        "README.md",
        "CHANGELOG.md",
        "SECURITY.md",
        "LICENSE-MIT",
        "LICENSE-APACHE",
        "build.rs",
        "grammar/trafo.pest",
    ] {
        assert!(files.iter().any(|f| f == needed), "{needed} is not in the package");
    }
    for source in own.iter().filter(|f| f.ends_with(".rs")) {
        let path = repository(source);
        for wanted in included(&path, &std::fs::read_to_string(&path).unwrap()) {
            let wanted =
                Path::new(&wanted).canonicalize().unwrap_or_else(|e| panic!("{source}: {wanted}: {e}"));
            let name = wanted
                .strip_prefix(repository("").canonicalize().unwrap())
                .unwrap()
                .to_string_lossy()
                .into_owned();
            assert!(files.contains(&name), "{source} includes {name}, which is not in the package");
        }
    }
    let specs = std::fs::read_dir(repository("specs")).unwrap().map(|e| e.unwrap().path());
    for spec in specs.filter(|p| p.is_file()) {
        let name = format!("specs/{}", spec.file_name().unwrap().to_string_lossy());
        assert!(files.contains(&name), "{name} is not in the package");
    }
}

/// The addresses of the links of a page in Markdown, except those in its code.
fn links(page: &str) -> Vec<String> {
    let mut is_code = false;
    let mut text = String::new();
    for line in page.lines() {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        if !is_fence && !is_code && !line.starts_with("    ") {
            text += line;
            text.push('\n');
        }
    }
    // Every second piece is code.
    let text: String = text.split('`').step_by(2).collect();
    let rests = text.split("](").skip(1);
    rests.filter_map(|rest| rest.split_once(')')).map(|(address, _)| address.to_owned()).collect()
}

/// A reader of the package has no other files of the repository.
#[test]
fn links_of_packaged_pages_lead_to_packaged_files() {
    let files = listed();
    let (mut count, mut dead) = (0, Vec::new());
    for page in files.iter().filter(|file| file.ends_with(".md")) {
        let text = std::fs::read_to_string(repository(page)).unwrap();
        for link in links(&text).into_iter().filter(|link| !link.contains("://") && !link.starts_with('#')) {
            count += 1;
            let address = link.split('#').next().unwrap();
            // A package has no folder without a file in it.
            let mut parts: Vec<&str> = page.split('/').collect();
            parts.pop();
            for part in address.split('/').filter(|part| !part.is_empty()) {
                match part {
                    ".." => drop(parts.pop()),
                    part => parts.push(part),
                }
            }
            let path = parts.join("/");
            let inside = format!("{path}/");
            if !files.iter().any(|file| *file == path || file.starts_with(&inside)) {
                dead.push(format!("{page}: {link}"));
            }
        }
    }
    assert!(count > 30, "{count}");
    assert!(dead.is_empty(), "not in the package:\n{}", dead.join("\n"));
}

/// Both packages as a registry would get them. The program depends on the kernels, so they are published
/// together.
/// The names behind `dependencies = [` of the package `trafoc` in a lock file.
fn locked(lock: &str) -> Vec<&str> {
    let package =
        lock.split("[[package]]").find(|package| package.contains("\nname = \"trafoc\"\n")).unwrap();
    let (_, names) = package.split_once("dependencies = [").unwrap();
    // A version follows the name if there are several.
    names.lines().filter_map(|line| line.trim().strip_prefix('"')?.split(['"', ' ']).next()).collect()
}

#[test]
fn the_lock_of_the_guided_fuzzer_has_every_dependency() {
    // It is a workspace of its own, whose lock file no other build renews.
    let manifest = std::fs::read_to_string(repository("Cargo.toml")).unwrap();
    let lock = std::fs::read_to_string(repository("fuzz/guided/Cargo.lock")).unwrap();
    let locked = locked(&lock);
    let manifest = toml::de::DeTable::parse(&manifest).unwrap();
    let dependencies = manifest.get_ref().get("dependencies").and_then(|d| d.get_ref().as_table()).unwrap();
    assert!(dependencies.len() > 20, "{dependencies:?}");
    for (name, value) in dependencies {
        let of = |key: &str| value.get_ref().as_table().and_then(|table| table.get(key));
        if of("optional").is_none() {
            let name = of("package").and_then(|p| p.get_ref().as_str()).unwrap_or(name.get_ref());
            assert!(locked.contains(&name), "`cargo metadata` in fuzz/guided adds {name}");
        }
    }
}

#[test]
fn both_packages_can_be_made() {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let folder = tempfile::tempdir().unwrap();
    let arguments =
        ["package", "--no-verify", "--allow-dirty", "--offline", "-p", "trafoc-kernels", "-p", "trafoc"];
    let mut command = Command::new(cargo);
    command.current_dir(repository("")).args(arguments).arg("--target-dir").arg(folder.path());
    let said = command.output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    for name in ["trafoc-kernels-0.1.0.crate", "trafoc-0.1.0.crate"] {
        let bytes = std::fs::metadata(folder.path().join("package").join(name)).unwrap().len();
        assert!(bytes > 10_000 && bytes < MOST, "{name}: {bytes} bytes");
    }
}

/// What `--version` prints in a release build of a clone, of a package, and of a plain copy.
#[test]
fn a_release_names_its_commit_if_it_can_be_known() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("build");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let built = Command::new(rustc)
        .args(["--edition", "2024", "-o"])
        .arg(&program)
        .arg(repository("build.rs"))
        .status();
    assert!(built.unwrap().success());
    let version = |root: &Path, given: Option<&str>| -> String {
        let mut command = Command::new(&program);
        command.current_dir(root).env("CARGO_MANIFEST_DIR", root).env("PROFILE", "release");
        command.env("CARGO_PKG_VERSION", "0.1.0").env_remove("TRAFOC_COMMIT");
        if let Some(commit) = given {
            command.env("TRAFOC_COMMIT", commit);
        }
        let text = String::from_utf8(command.output().unwrap().stdout).unwrap();
        text.lines().find_map(|l| l.strip_prefix("cargo::rustc-env=TRAFOC_VERSION=")).unwrap().to_owned()
    };
    let place = |name: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(&path).unwrap();
        path
    };
    let plain = place("plain");
    assert_eq!(version(&plain, None), "0.1.0");
    assert_eq!(version(&plain, Some("abc123")), "0.1.0 (abc123)");
    // What is no commit is not printed.
    assert_eq!(version(&plain, Some("a\nb")), "0.1.0");
    let package = place("package");
    let info = r#"{"git": {"sha1": "3b937b49cb6255d88ee6f7fada52ec89b72fc8f2"}, "path_in_vcs": ""}"#;
    std::fs::write(package.join(".cargo_vcs_info.json"), info).unwrap();
    assert_eq!(version(&package, None), "0.1.0 (3b937b49c)");
    let info = info.replace("\"}, ", "\", \"dirty\": true}, ");
    std::fs::write(package.join(".cargo_vcs_info.json"), info).unwrap();
    assert_eq!(version(&package, None), "0.1.0 (3b937b49c-dirty)");
    let clone = place("clone");
    let git = |arguments: &[&str]| {
        // A machine may have no name for the author of a commit.
        let names = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
        let said = Command::new("git").current_dir(&clone).args(names).args(arguments).output().unwrap();
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        String::from_utf8(said.stdout).unwrap()
    };
    git(&["init", "-q"]);
    std::fs::write(clone.join("a"), "a").unwrap();
    git(&["add", "a"]);
    git(&["commit", "-q", "-m", "a"]);
    let commit = git(&["rev-parse", "HEAD"]);
    assert_eq!(version(&clone, None), format!("0.1.0 ({})", &commit[..9]));
    std::fs::write(clone.join("a"), "b").unwrap();
    assert_eq!(version(&clone, None), format!("0.1.0 ({}-dirty)", &commit[..9]));
    // A copy inside of another clone does not take that one's commit.
    assert_eq!(version(&place("clone/inside"), None), "0.1.0");
}

/// A build for development has no commit; what is printed is the version all the same.
#[test]
fn the_version_is_told() {
    let said = crate::compiled::program().arg("--version").output().unwrap();
    let text = String::from_utf8(said.stdout).unwrap();
    assert!(text.starts_with(&format!("trafoc {}", env!("CARGO_PKG_VERSION"))), "{text}");
}

#[cfg(feature = "flex")]
#[test]
fn the_library_does_what_its_example_says() {
    let made = library::make(library::SPEC).unwrap();
    assert_eq!(made.logits, [1, 3, 30]);
    // A layer: four projections with bias, up and down with bias, two norms. Then a norm, two tables of
    // words.
    let layer = 4 * 16 * 17 + (16 * 64 + 64) + (64 * 16 + 16) + 4 * 16;
    assert_eq!(made.parameters, 2 * layer + 2 * 16 + 2 * 30 * 16);
    assert!(made.rust.contains("pub struct") && made.rust.contains("fn forward"));
    let wrong = library::make("trafo: 2\n").unwrap_err().to_string();
    assert!(wrong.contains("error[unknown-version]") && wrong.contains("little.yaml:1:8"), "{wrong}");
}
