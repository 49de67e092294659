//! A run that continues with other data than it began with.

use super::{Folder, said, same};

/// Later examples would follow the order of other data, and nobody would see it.
#[test]
fn data_that_have_changed_are_refused() {
    let place = Folder::new();
    let recipe = std::fs::read_to_string(place.path("recipe.yaml")).unwrap();
    let (before, after) = recipe.split_once("train: ").unwrap();
    let (data, after) = after.split_once(", limit: 3000").unwrap();
    std::fs::write(place.path("recipe.yaml"), format!("{before}train: names.txt{after}")).unwrap();
    let names = std::fs::read_to_string(data).unwrap();
    let names: String = names.lines().take(500).map(|line| format!("{line}\n")).collect();
    let write = |text: &str| std::fs::write(place.path("names.txt"), text).unwrap();
    write(&names);
    place.trained("run", &[]);
    let good = place.bytes("run", 12);
    std::fs::remove_dir_all(place.path("run/checkpoints/step-000000012")).unwrap();
    let again = || said(place.train("run", &["--resume"]).output().unwrap());

    // The same letters, so the vocabulary stays.
    let shorter: String = names.lines().skip(40).map(|line| format!("{line}\n")).collect();
    let reversed: String = names.lines().rev().map(|line| format!("{line}\n")).collect();
    for (text, message) in
        [(&shorter, "it had 475 examples and has 437"), (&reversed, "as many examples, but not the same")]
    {
        write(text);
        let said = again();
        assert_eq!(said.code, Some(2), "{}", said.err);
        assert!(said.err.contains("the training data is not what the run began with"), "{}", said.err);
        assert!(said.err.contains(message), "{}", said.err);
    }
    write(&names);
    let said = again();
    assert_eq!(said.code, Some(0), "{}", said.err);
    same(&good, &place.bytes("run", 12));
    // A finished run takes no more examples.
    write(&shorter);
    assert_eq!(again().code, Some(0));
}
