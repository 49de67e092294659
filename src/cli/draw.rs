//! `trafoc draw`: the architecture as a picture.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::file;
use super::subject::SpecArgs;
use super::ui::{Failure, Format, Output, Ui};
use crate::draw::model::{dot, mermaid, outline, page, picture};

/// Arguments of `draw`.
#[derive(Debug, Args)]
pub struct Draw {
    #[command(flatten)]
    spec: SpecArgs,
    /// The file to write; stdout if not given
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// svg, html, png, dot, mermaid or json; the file's ending tells if not given
    #[arg(long, value_enum, value_name = "FORMAT", hide_possible_values = true)]
    format: Option<Form>,
}

/// What is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Form {
    /// A figure
    Svg,
    /// A page with the figure, the spec and the layers
    Html,
    /// A figure in pixels, where trafoc is built with the feature `png`
    Png,
    /// For Graphviz
    Dot,
    /// For Markdown
    Mermaid,
    /// The figure within the envelope
    Json,
}

impl Draw {
    /// How diagnostics are told.
    pub fn spoken(&self) -> Format {
        match self.format {
            Some(Form::Json) => Format::Json,
            Some(Form::Svg | Form::Html | Form::Png | Form::Dot | Form::Mermaid) | None => Format::Text,
        }
    }

    /// Draws; the last line is the file's path if there is one.
    pub fn run(&self, ui: &mut Ui) -> Result<Output, Failure> {
        let form = self.form()?;
        let subject = self.spec.compile(ui)?;
        let outline = outline(&subject.graph, &subject.sources);
        let text = match form {
            Form::Png => {
                let Some(path) = &self.out else {
                    return Err(Failure::usage("a png is no text for stdout").help("`--out FILE.png`"));
                };
                file::write_png(path, &picture(&outline))?;
                return Output::new(format!("{}\n", path.display()), json!({ "path": path }));
            }
            Form::Svg | Form::Json => picture(&outline).svg(),
            Form::Html => page::page(&outline, &subject.graph, &subject.sources).html(),
            Form::Dot => dot::dot(&outline),
            Form::Mermaid => mermaid::mermaid(&outline),
        };
        match &self.out {
            Some(path) => {
                file::write(path, &text)?;
                Output::new(format!("{}\n", path.display()), json!({ "path": path }))
            }
            None => Output::new(text.clone(), json!({ "text": text })),
        }
    }

    fn form(&self) -> Result<Form, Failure> {
        let ending = self.out.as_ref().and_then(|p| p.extension()).and_then(|e| e.to_str());
        match (self.format, ending) {
            (Some(form), _) => Ok(form),
            (None, None | Some("svg")) => Ok(Form::Svg),
            (None, Some("html" | "htm")) => Ok(Form::Html),
            (None, Some("png")) => Ok(Form::Png),
            (None, Some("dot" | "gv")) => Ok(Form::Dot),
            (None, Some("mmd" | "mermaid")) => Ok(Form::Mermaid),
            (None, Some(other)) => {
                Err(Failure::usage(format!("`.{other}` is none of svg, html, png, dot and mmd"))
                    .help("`--format` says what is drawn"))
            }
        }
    }
}
