//! `--format agent`: compact, uncut, with tabs in the place of columns.

use super::{Printed, each_command, is_absent, program, trafoc, trafoc_in};

/// Nothing steers a terminal, nothing is aligned, and no line is for people alone.
fn is_plain(said: &Printed) {
    for line in said.out.lines().chain(said.err.lines()) {
        assert!(!line.contains(['\r', '\u{1b}']), "{line:?}");
        assert_eq!(line.trim_end(), line);
        assert!(!line.starts_with("next: "), "{line}");
    }
}

#[test]
fn every_command_is_plain() {
    let folder = tempfile::tempdir().unwrap();
    for line in each_command(folder.path()) {
        let mut command = program();
        command.env("TRAFOC_COLOR", "always").args(&line).args(["--format", "agent"]);
        let said = Printed::from(command.output().unwrap());
        assert_eq!(said.code, if is_absent(&line[0]) { 5 } else { 0 }, "{line:?}: {}", said.err);
        is_plain(&said);
    }
    // Those that `each_command` leaves out, and every report.
    let grammar = trafoc::cli::grammar(&[]);
    let inspect = grammar.find_subcommand("inspect").unwrap();
    for command in grammar.get_subcommands().chain(inspect.get_subcommands()) {
        if command.has_subcommands() || command.get_name() == "help" {
            continue;
        }
        let format = command.get_arguments().find(|argument| argument.get_long() == Some("format"));
        let format = format.unwrap_or_else(|| panic!("`{}` has no format", command.get_name()));
        let words = format.get_possible_values();
        assert!(words.iter().any(|word| word.get_name() == "agent"), "{}", command.get_name());
    }
}

// The reader of CSV is there with this feature.
#[cfg(feature = "learn")]
#[test]
fn tables_have_the_rows_of_csv() {
    let mut tables = 0;
    for line in [
        &["show", "@gpt2-small"][..],
        &["show", "@t5-small", "--depth", "2"],
        &["compare", "@gpt1", "@gpt2-small"],
        &["compare", "@gpt1", "@gpt2-small", "@llama3-8b"],
        &["fit", "@gbt-mulm", "--params", "3e5"],
    ] {
        let rows = |format: &str| trafoc(&[line, &["--format", format]].concat());
        let (csv, agent) = (rows("csv"), rows("agent"));
        is_plain(&agent);
        let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(csv.out.as_bytes());
        let wanted: Vec<Vec<String>> = reader
            .records()
            .map(|record| {
                record
                    .unwrap()
                    .iter()
                    .map(|cell| if cell.is_empty() { "-" } else { cell }.to_owned())
                    .collect()
            })
            .collect();
        let found: Vec<Vec<String>> =
            agent.out.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect();
        assert!(found.len() > 3, "{line:?}");
        assert_eq!(found, wanted, "{line:?}");
        tables += 1;
    }
    assert_eq!(tables, 5);
}

#[test]
fn a_diagnostic_is_one_line() {
    let line =
        ["check", "@gpt1", "--set", "vocab=many", "--set", "decoder.attention.heads=7", "--format", "agent"];
    let said = trafoc(&line);
    assert!(said.out.is_empty());
    let lines: Vec<&str> = said.err.lines().collect();
    assert_eq!(
        lines,
        [
            "--set #1:1:7: error[unknown-name]: nothing is named `many` here; help: only numbers are allowed here",
            "--set #2:1:25: error[not-divisible]: `head_dim` would be d_model / heads = 768/7, which is not a whole \
             number; note: heads is 7 here; note: @gpt1:7:10: d_model is 768 here; help: d_model 763 or 770 would \
             work, or heads 6 or 8; help: or give `head_dim` itself: it does not have to be d_model / heads",
            "error: `@gpt1` has 2 errors",
        ]
    );
    // A name with a line feed begins no line, and all of many diagnostics are there.
    let folder = tempfile::tempdir().unwrap();
    let keys: String = (0..60).map(|i| format!("key{i}: 1\n")).collect();
    std::fs::write(folder.path().join("a\nb.yaml"), format!("{}{keys}", super::TINY)).unwrap();
    let many = trafoc_in(folder.path(), &["check", "a\nb.yaml", "--format", "agent"]);
    assert_eq!(many.err.lines().filter(|line| line.starts_with("a\\nb.yaml:")).count(), 60, "{}", many.err);
    assert_eq!(many.err.lines().count(), 61, "{}", many.err);
    // A wrong command line and a file that cannot be read are one line as well.
    for (line, wanted) in [
        (
            &["chekc", "--format", "agent"][..],
            "error: unrecognized subcommand 'chekc'; help: a similar subcommand exists: 'check'\n",
        ),
        (
            &["check", "gpt1", "--format", "agent"],
            "error: cannot read `gpt1`: there is no such file; help: `@gpt1` is a spec that comes with trafoc\n",
        ),
    ] {
        assert_eq!(trafoc(line).err, wanted);
    }
}

#[test]
fn pages_have_tabs_and_no_width() {
    let page = trafoc(&["check", "@t5-small", "--format", "agent"]).out;
    let people = trafoc(&["check", "@t5-small"]).out;
    // The formula of the operations is broken into several lines for people.
    let line = |page: &str| page.lines().find(|line| line.starts_with("FLOPs")).unwrap().to_owned();
    let last = "+ 76,939,264·B·T";
    assert!(line(&page).ends_with(last) && !line(&people).ends_with(last), "{page}");
    assert!(page.lines().any(|line| line.starts_with("weights\t")), "{page}");
    let words = |page: &str| page.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(&page), words(&people));
    let topic = trafoc(&["explain", "attention.kv_heads", "--format", "agent"]).out;
    assert!(topic.lines().any(|line| line.chars().count() > 80), "{topic}");
    assert_eq!(words(&topic), words(&trafoc(&["explain", "attention.kv_heads"]).out));
}
