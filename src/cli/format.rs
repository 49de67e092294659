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
            Format::Text | Format::Short => false,
        }
    }
}

/// The values of `--format` that a command offers: most have [`Format`], tables have [`TableFormat`].
pub trait Formats: ValueEnum + Default + Send + Sync + 'static {
    /// Their names and what is not clear from a name, for `--help`.
    const HELP: &'static str;
}

impl Formats for Format {
    const HELP: &'static str = "text, short (one line per diagnostic) or json";
}

impl Formats for TableFormat {
    const HELP: &'static str = "text, json, csv or markdown";
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
}

impl From<TableFormat> for Format {
    fn from(format: TableFormat) -> Self {
        match format {
            TableFormat::Json => Format::Json,
            // With a table on stdout, diagnostics are for people on stderr.
            TableFormat::Text | TableFormat::Csv | TableFormat::Markdown => Format::Text,
        }
    }
}
