//! Data prepared once: training with it is training with the files it was made of, to the bit.

use serde_json::Value as Json;

use super::{Folder, Printed, said, same};

impl Folder {
    fn prepare(&self, folder: &str, more: &[&str]) -> Printed {
        let mut command = self.command(&["data", "spec.yaml", "--recipe", "recipe.yaml", "--out", folder]);
        said(command.args(more).output().unwrap())
    }

    /// Replaces the path of the data in the recipe.
    fn copy_data(&self, name: &str) {
        let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("data/isimler.txt");
        std::fs::copy(data, self.path(name)).unwrap();
        let recipe = super::RECIPE.replace("DATA", name);
        std::fs::write(self.path("recipe.yaml"), recipe).unwrap();
    }
}

#[test]
fn a_run_with_prepared_data_is_the_same_to_the_bit() {
    let place = Folder::new();
    place.copy_data("names.txt");
    let first = place.prepare("data", &[]);
    assert_eq!((first.code, first.out.as_str()), (Some(0), "data\n"), "{}", first.err);
    assert!(first.err.contains("train: 2,850 examples, "), "{}", first.err);
    assert!(first.err.contains("--data data --out run"), "{}", first.err);
    place.trained("files", &[]);
    let half = ["--data", "data", "--with", "checkpoint.keep=9"];
    let kept = place.trained("kept", &["--with", "checkpoint.keep=9"]);
    place.trained("half", &half);
    place.trained("whole", &["--data", "data"]);
    same(&place.bytes("files", 12), &place.bytes("whole", 12));
    assert_eq!(kept.code, Some(0));
    // Without the files, a run goes on with the prepared data with which it began, and is measured with it.
    std::fs::remove_file(place.path("names.txt")).unwrap();
    for step in [12, 9] {
        let name = format!("half/checkpoints/step-{step:09}");
        std::fs::remove_dir_all(place.path(&name)).unwrap();
    }
    let more = said(place.command(&["train", "--resume", "--out", "half"]).output().unwrap());
    assert_eq!(more.code, Some(0), "{}", more.err);
    same(&place.bytes("kept", 12), &place.bytes("half", 12));
    let eval = said(place.command(&["eval", "half"]).output().unwrap());
    assert_eq!(eval.code, Some(0), "{}", eval.err);
    let lost = said(place.command(&["eval", "files"]).output().unwrap());
    assert!(lost.code == Some(4) && lost.err.contains("names.txt"), "{}", lost.err);
}

#[test]
fn a_folder_is_only_used_for_what_it_was_prepared_for() {
    let place = Folder::new();
    assert_eq!(place.prepare("data", &[]).code, Some(0));
    let train = |more: &[&str]| {
        let more = [&["--data", "data"], more].concat();
        said(place.train("run", &more).output().unwrap())
    };
    let cases: [(&[&str], i32, &str); 4] = [
        (&["--set", "vocab=31"], 2, "prepared for a spec whose `vocab` is 30, but that of this spec is 31"),
        (&["--with", "data.limit=20"], 2, "prepared by another recipe: it says `limit: 3000` where this"),
        (&["--with", "seed=8"], 2, "it says `seed: 7` where this one says `seed: 8`"),
        (&["--with", "tokens=bytes", "--set", "vocab=259"], 2, "whose `vocab` is 30"),
    ];
    for (more, code, why) in cases {
        let said = train(more);
        assert_eq!(said.code, Some(code), "{more:?}: {}", said.err);
        assert!(said.err.contains(why), "{more:?}: {}", said.err);
        assert!(said.err.contains("prepares it again"), "{}", said.err);
    }
    let array = place.path("data/train.ids.i32");
    let mut bytes = std::fs::read(&array).unwrap();
    bytes[5] ^= 4;
    std::fs::write(&array, bytes).unwrap();
    let damaged = train(&[]);
    assert_eq!(damaged.code, Some(4), "{}", damaged.err);
    assert!(damaged.err.contains("train.ids.i32 is damaged: its checksum is wrong"), "{}", damaged.err);
    std::fs::remove_file(place.path("data/whole.json")).unwrap();
    let begun = train(&[]);
    assert!(begun.code == Some(4) && begun.err.contains("holds no prepared data"), "{}", begun.err);
    let none = said(place.train("run", &["--data", "nowhere"]).output().unwrap());
    assert!(none.code == Some(4) && none.err.contains("`nowhere`"), "{}", none.err);
    assert!(!place.path("run").exists());
    // What was interrupted is prepared again.
    assert_eq!(place.prepare("data", &[]).code, Some(0));
    assert_eq!(train(&[]).code, Some(0));
}

/// A line ends with LF, CR LF or CR, in texts as in tables.
#[test]
fn every_usual_end_of_a_line_is_one() {
    let place = Folder::new();
    let examples = |file: &str, text: &str| {
        std::fs::write(place.path(file), text).unwrap();
        let format = if file.ends_with(".csv") { "{table: {text: text}}" } else { "lines" };
        let recipe =
            format!("recipe: 1\ndata: {{format: {format}, train: {file}}}\ntokens: characters\nsteps: 1\n");
        std::fs::write(place.path("recipe.yaml"), recipe).unwrap();
        let said = place.prepare("ends", &["--format", "json"]);
        assert_eq!(said.code, Some(0), "{}", said.err);
        let json: Json = serde_json::from_str(&said.out).unwrap();
        json["data"]["parts"][0].clone()
    };
    for (file, text) in [("a.txt", "one\ntwo\n\nthree"), ("a.csv", "text\none\ntwo\n\nthree\n")] {
        let usual = examples(file, text);
        assert_eq!(usual["examples"], 3);
        for end in ["\r\n", "\r"] {
            assert_eq!(examples(file, &text.replace('\n', end)), usual, "{file} {end:?}");
        }
    }
}

/// A preparation that was killed has left a draft of a file, with the ids of its call and its process in its name. One that
/// is still being written is locked.
#[test]
fn what_a_killed_preparation_left_is_no_obstacle() {
    let place = Folder::new();
    for (folder, name) in
        [("killed", ".trafoc.0.7.tmp"), ("written", ".trafoc.1.7.tmp"), ("mine", ".trafoc.tmp")]
    {
        std::fs::create_dir(place.path(folder)).unwrap();
        std::fs::write(place.path(folder).join(name), "[").unwrap();
    }
    let writer = std::fs::File::open(place.path("written/.trafoc.1.7.tmp")).unwrap();
    writer.lock().unwrap();
    for folder in ["written", "mine"] {
        let said = place.prepare(folder, &[]);
        assert!(said.code == Some(3) && said.err.contains("is not empty"), "{}", said.err);
        assert_eq!(std::fs::read_dir(place.path(folder)).unwrap().count(), 1);
    }
    drop(writer);
    for folder in ["killed", "written"] {
        let said = place.prepare(folder, &[]);
        assert_eq!(said.code, Some(0), "{}", said.err);
        let mut names = std::fs::read_dir(place.path(folder)).unwrap().map(|e| e.unwrap().file_name());
        assert!(names.all(|name| !name.to_string_lossy().ends_with(".tmp")));
    }
}

#[test]
fn a_folder_of_somebody_else_is_not_written_into() {
    let place = Folder::new();
    std::fs::create_dir(place.path("mine")).unwrap();
    std::fs::write(place.path("mine/data.json"), "{\"mine\": true}").unwrap();
    let said = place.prepare("mine", &[]);
    assert_eq!(said.code, Some(3), "{}", said.err);
    assert!(said.err.contains("is not empty, and trafoc did not prepare it"), "{}", said.err);
    assert_eq!(std::fs::read_to_string(place.path("mine/data.json")).unwrap(), "{\"mine\": true}");
    std::fs::write(place.path("mine/notes.txt"), "mine").unwrap();
    assert_eq!(place.prepare("mine", &["--force"]).code, Some(0));
    assert_eq!(std::fs::read_to_string(place.path("mine/notes.txt")).unwrap(), "mine");
    let again = place.prepare("mine", &["--format", "json", "--with", "data.limit=100"]);
    assert_eq!(again.code, Some(0), "{}", again.err);
    let json: Json = serde_json::from_str(&again.out).unwrap();
    let data = &json["data"];
    assert_eq!((&data["vocab"], &data["parts"][1]["part"]), (&29.into(), &"validation".into()));
    assert_eq!(data["parts"][0]["examples"], 95);
    let files = std::fs::read_dir(place.path("mine")).unwrap().count() as u64;
    assert_eq!(data["files"].as_u64().unwrap() + 1, files, "one file is not trafoc's");
    // A file where the folder should be.
    let file = place.prepare("spec.yaml", &[]);
    assert_eq!(file.code, Some(4), "{}", file.err);
    let bad = place.prepare("other", &["--with", "data.train=none.txt"]);
    assert!(bad.code == Some(4) && bad.err.contains("none.txt") && !place.path("other").exists());
}

/// A run that an earlier version began, which shuffled a list of all examples, does not go on with other
/// examples than it would have seen.
#[test]
fn an_unfinished_run_of_another_order_is_refused() {
    let place = Folder::new();
    place.trained("run", &[]);
    let folder = place.path("run/checkpoints/step-000000009");
    std::fs::remove_dir_all(place.path("run/checkpoints/step-000000012")).unwrap();
    let old = |file: &str, change: &dyn Fn(String) -> String| {
        let path = folder.join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        let changed = change(text.clone());
        assert_ne!(text, changed);
        std::fs::write(path, changed).unwrap();
    };
    old("state.json", &|text| text.replace("  \"order\": 2,\n", ""));
    let sum = trafoc::learn::whole::Sum::of_file(&folder.join("state.json")).unwrap();
    old("whole.json", &|text| {
        let mut list: Json = serde_json::from_str(&text).unwrap();
        list["files"]["state.json"] = serde_json::to_value(&sum).unwrap();
        // A `Value` would write the keys in another order, so only the text is changed.
        let before: Json = serde_json::from_str(&text).unwrap();
        let of = |list: &Json, key: &str| list["files"]["state.json"][key].to_string();
        let text = text.replace(&of(&before, "sha256"), &of(&list, "sha256"));
        text.replace(
            &format!("\"bytes\": {},\n      \"sha256\": {}", of(&before, "bytes"), of(&list, "sha256")),
            &format!("\"bytes\": {},\n      \"sha256\": {}", of(&list, "bytes"), of(&list, "sha256")),
        )
    });
    let said = said(place.command(&["train", "--resume", "--out", "run"]).output().unwrap());
    assert_eq!(said.code, Some(4), "{}", said.err);
    assert!(said.err.contains("begun by an earlier version of trafoc"), "{}", said.err);
    assert!(said.err.contains("--weights"), "{}", said.err);
}

/// How a run is trained for longer is said, and its own spec, in which every default is written out, is not blamed
/// for a change.
#[test]
fn a_run_that_continues_is_not_changed() {
    let place = Folder::new();
    place.trained("run", &[]);
    let further = "`trafoc train run --recipe RECIPE --out NEW` trains its weights further";
    for (change, why) in [
        (["--with", "steps=24"], "the recipe is not the one the run began with"),
        (["--set", "d_model=32"], "a run continues with its own spec"),
    ] {
        let line = [&["train", "--resume", "--out", "run"][..], &change].concat();
        let other = said(place.command(&line).output().unwrap());
        assert_eq!(other.code, Some(2), "{}", other.err);
        assert!(other.err.contains(why) && other.err.contains(further), "{}", other.err);
        assert!(!other.err.contains("error["), "{}", other.err);
    }
    let latest = said(place.command(&["eval", "run", "--checkpoint", "latest"]).output().unwrap());
    for part in ["did you mean `last`?", "there are `last`, `best` and, by step, 9, 12"] {
        assert!(latest.code == Some(4) && latest.err.contains(part), "{part}: {}", latest.err);
    }
    let force = said(place.train("run", &["--force"]).output().unwrap());
    assert!(force.code == Some(2) && force.err.contains("another `--out` begins a new one"), "{}", force.err);
}
