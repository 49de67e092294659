//! The words of a command line, for what has to be known before they are parsed.

use std::ffi::OsString;

/// Turns `trafoc help train` into `trafoc train --help`.
pub fn with_help(mut arguments: Vec<OsString>) -> Vec<OsString> {
    // Only the first word: later ones can be values, such as a file of this name.
    if arguments.get(1).is_some_and(|word| word == "help") {
        // At the end, so that `trafoc help inspect positions` is about the inner command.
        arguments.remove(1);
        arguments.push("--help".into());
    }
    arguments
}

/// The words that may be options: what follows `--` is none.
fn options(arguments: &[OsString]) -> impl Iterator<Item = &str> {
    arguments.iter().filter_map(|word| word.to_str()).take_while(|word| *word != "--")
}

/// Whether the arguments have a flag.
pub fn has_flag(arguments: &[OsString], flag: &str) -> bool {
    options(arguments).any(|word| word == flag)
}

/// The value of an option, `--option value` or `--option=value`: the last one, which counts.
pub fn value_of(arguments: &[OsString], option: &str) -> Option<String> {
    let mut words = options(arguments);
    let mut found = None;
    while let Some(word) = words.next() {
        match word.strip_prefix(option) {
            Some("") => found = words.next().map(str::to_owned),
            Some(rest) => found = rest.strip_prefix('=').map(str::to_owned).or(found),
            None => {}
        }
    }
    found
}
