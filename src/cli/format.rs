//! `--format`, and in what form diagnostics and results are printed for each of its values.

use clap::{Args, ValueEnum};

/// In what form a command prints its result, its notes and the diagnostics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    #[default]
    Text,
    /// Diagnostics in one line each, for editors
    Short,
    /// One object on stdout, for programs
    Json,
    /// Compact and uncut, with tabs, for language models that call programs
    ///
    /// There is no colour, no progress and no `next:` line. Tables are rows of tab-separated cells with a header, and have the
    /// numbers and names of CSV; an empty cell is `-`. Pages have a tab where they would have columns. Texts are not broken into
    /// lines, and a diagnostic is one line with its help. Nothing but `--format agent` chooses it.
    Agent,
    /// Diagnostics as workflow commands of GitHub Actions on stdout; only `check` offers it
    #[value(skip)]
    Github,
    /// Diagnostics as a SARIF log on stdout; only `check` offers it
    #[value(skip)]
    Sarif,
}

impl Format {
    /// Whether stdout is for a program, which gets the diagnostics there too, and stderr is empty.
    pub fn is_for_programs(self) -> bool {
        match self {
            Format::Json | Format::Github | Format::Sarif => true,
            Format::Text | Format::Short | Format::Agent => false,
        }
    }
}

/// The most columns of a text that has no limit: what a format of Rust takes.
const NO_LIMIT: usize = u16::MAX as usize;

/// How wide a text may be that is `usual` columns wide for people.
pub fn limit(format: Format, usual: usize) -> usize {
    match format {
        Format::Agent => NO_LIMIT,
        Format::Text | Format::Short | Format::Json | Format::Github | Format::Sarif => usual,
    }
}

/// A page whose columns are separated by tabs instead of being aligned. What is indented stays so, except for a value without a
/// label, which is below the value of the line above.
pub fn unaligned(page: &str) -> String {
    /// Deeper than any indentation of a page.
    const DEEP: usize = 8;
    let mut out = String::new();
    for line in page.lines() {
        let text = line.trim();
        let indent = line.len().saturating_sub(line.trim_start().len());
        out += &if indent < DEEP { " ".repeat(indent) } else { "\t".to_owned() };
        let cells: Vec<&str> = text.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
        out += &cells.join("\t");
        out.push('\n');
    }
    out
}

/// The values of `--format` that a command offers: most have [`Format`], tables have [`TableFormat`].
pub trait Formats: ValueEnum + Default + Send + Sync + 'static {
    /// Their names and what is not clear from a name, for `--help`.
    const HELP: &'static str;
}

impl Formats for Format {
    const HELP: &'static str = "text, short (one line per diagnostic), json or agent (compact, uncut)";
}

impl Formats for TableFormat {
    const HELP: &'static str = "text, json, csv, markdown or agent (tab-separated, uncut)";
}

/// `--format` of a command; without a parameter, that of a command that prints no table.
#[derive(Clone, Debug, Args)]
pub struct FormatArg<F: Formats = Format> {
    /// The format that the user chose, or the default.
    #[arg(
        long,
        value_enum,
        value_name = "FORMAT",
        help = F::HELP,
        default_value_t,
        hide_default_value = true,
        hide_possible_values = true
    )]
    pub format: F,
}

/// The format of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum TableFormat {
    /// Aligned columns
    #[default]
    Text,
    /// A JSON object
    Json,
    /// Comma-separated values with full paths and plain numbers
    Csv,
    /// A pipe table
    Markdown,
    /// Tab-separated values with full paths and plain numbers
    Agent,
}

impl From<TableFormat> for Format {
    fn from(format: TableFormat) -> Self {
        match format {
            TableFormat::Json => Format::Json,
            TableFormat::Agent => Format::Agent,
            // With a table on stdout, diagnostics are for people on stderr.
            TableFormat::Text | TableFormat::Csv | TableFormat::Markdown => Format::Text,
        }
    }
}
