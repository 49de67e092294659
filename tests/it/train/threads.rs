//! The number of threads of training.

use super::*;

#[test]
fn the_number_of_threads_changes_no_bit() {
    let place = Folder::new();
    let run = |threads: &str| {
        place.trained(threads, &["--with", "steps=6", "--threads", threads]);
        place.bytes(threads, 6)
    };
    let one = run("1");
    for threads in ["2", "5"] {
        same(&run(threads), &one);
    }
}

#[test]
fn a_number_of_threads_without_effect_is_refused() {
    let place = Folder::new();
    for more in [&["--threads", "0"][..], &["--threads", "2", "--dry-run"]] {
        let refused = said(place.train("run", more).output().unwrap());
        assert_eq!(refused.code, Some(2), "{}", refused.err);
    }
}
