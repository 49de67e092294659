//! Finds the commit of a release build, for `trafoc --version`.
//!
//! A clone asks git; a package from a registry contains a file with the commit; otherwise only the version
//! is shown. Development builds do not ask, because they would be compiled again after every commit.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=TRAFOC_COMMIT");
    let root = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let is_release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let given = std::env::var("TRAFOC_COMMIT").ok().filter(|commit| !commit.is_empty());
    let asked = || if is_release { of_clone(&root).or_else(|| of_package(&root)) } else { None };
    let is_plain = |commit: &String| commit.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    let version = std::env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let version = match given.or_else(asked).filter(is_plain) {
        Some(commit) => format!("{version} ({commit})"),
        None => version,
    };
    println!("cargo::rustc-env=TRAFOC_VERSION={version}");
}

/// The commit of a folder that is the root of a clone itself, and not a folder inside another clone.
fn of_clone(root: &Path) -> Option<String> {
    let git = |arguments: &[&str]| {
        let said = Command::new("git").current_dir(root).args(arguments).output().ok()?;
        let text = String::from_utf8(said.stdout).ok().filter(|_| said.status.success())?;
        Some(text.trim().to_owned())
    };
    let top = PathBuf::from(git(&["rev-parse", "--show-toplevel"])?);
    if top.canonicalize().ok()? != root.canonicalize().ok()? {
        return None;
    }
    // git writes this file at every commit and every change of branch.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={}", root.join(log).display());
    }
    git(&["describe", "--always", "--dirty", "--abbrev=9", "--exclude=*"])
}

/// The commit that `cargo package` has recorded.
fn of_package(root: &Path) -> Option<String> {
    let text = std::fs::read_to_string(root.join(".cargo_vcs_info.json")).ok()?;
    let (_, after) = text.split_once("\"sha1\"")?;
    let commit = after.split('"').nth(1)?;
    let is_dirty = after
        .split_once("\"dirty\"")
        .is_some_and(|(_, value)| value.trim_start_matches([':', ' ']).starts_with("true"));
    let dirty = if is_dirty { "-dirty" } else { "" };
    commit.get(..9).map(|short| format!("{short}{dirty}"))
}
