//! `trafoc draw`: the architecture as a picture.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use schemars::JsonSchema;
use serde::Serialize;

use super::command::{Command, Printed};
use super::file;
use super::format::Format;
use super::outcome::{Failure, Output};
use super::overwrite::{self, ForceArg, Mark};
use super::subject::SpecArgs;
use super::ui::{Ui, path_line};
use super::watch::WatchArg;
use crate::diag::suggest::suggest;
use crate::draw::model::{dot, mermaid, outline, page, picture};

/// The command line of `draw`.
#[derive(Debug, Args)]
pub struct Draw {
    #[command(flatten)]
    spec: SpecArgs,
    /// The file to write; stdout if not given, or for `-`
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    force: ForceArg,
    #[command(flatten)]
    watch: WatchArg,
    /// svg, html, png, dot, mermaid, json or agent; if not given, the file's extension decides
    #[arg(long, value_enum, value_name = "FORMAT", hide_possible_values = true)]
    format: Option<Form>,
}

/// The form of the picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// A picture
    Svg,
    /// A page with the picture, the spec and the layers
    Html,
    /// A picture in pixels, if trafoc is built with the feature `png`
    Png,
    /// A graph for Graphviz
    Dot,
    /// A flowchart for Markdown
    Mermaid,
    /// The picture inside the JSON envelope
    Json,
    /// The picture, and what is said about it in one line each
    Agent,
}

/// The data of `draw` in JSON.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Data {
    /// The file that was written.
    Written {
        /// The path of the file, as the command line gives it.
        path: PathBuf,
    },
    /// The picture, if no file is given.
    Printed(Printed),
}

impl Command for Draw {
    type Data = Data;

    fn format(&self) -> Format {
        match self.format {
            Some(Form::Json) => Format::Json,
            Some(Form::Agent) => Format::Agent,
            // With these, stdout has the picture itself, and diagnostics are for people.
            Some(Form::Svg | Form::Html | Form::Png | Form::Dot | Form::Mermaid) | None => Format::Text,
        }
    }

    fn watch(&self) -> WatchArg {
        self.watch
    }

    /// Draws; the last line of output is the path of the file, if there is one.
    fn run(&self, ui: &mut Ui) -> Result<Output<Data>, Failure> {
        // Before the spec is compiled: no picture is needed if it cannot be written.
        let form = self.form()?;
        let out = overwrite::named(self.out.as_ref());
        self.force.refuse_unused(out.is_some())?;
        self.watch.agree(self.format(), [self.spec.spec.as_str()])?;
        if self.watch.is_on() && out.is_none() {
            let why = "`--watch` draws into a file, which `--out` names";
            return Err(Failure::usage(why).help("`--out FILE.svg`, which a browser shows"));
        }
        if let Some(path) = out {
            self.force.permit(path, Mark::Drawn, "another `--out`")?;
        }
        let subject = self.spec.compile(ui)?;
        let outline = outline(&subject.graph, &subject.sources);
        let text = match form {
            Form::Png => {
                let Some(path) = out else {
                    return Err(Failure::usage("a png cannot be written to stdout").help("`--out FILE.png`"));
                };
                // Without a seal, which is a comment at the end of a text; a png has its mark inside.
                file::write_png(path, &picture(&outline))?;
                return Ok(Output::new(path_line(path), Data::Written { path: path.clone() }));
            }
            // `form` gives a form of files.
            Form::Svg | Form::Json | Form::Agent => picture(&outline).svg(),
            Form::Html => page::page(&outline, &subject.graph, &subject.sources).html(),
            Form::Dot => dot::dot(&outline),
            Form::Mermaid => mermaid::mermaid(&outline),
        };
        match out {
            Some(path) => {
                overwrite::write(path, &text)?;
                Ok(Output::new(format!("{}\n", path.display()), Data::Written { path: path.clone() }))
            }
            None => Ok(Output::new(text.clone(), Data::Printed(Printed { text }))),
        }
    }
}

impl Draw {
    /// The form of the picture: what `--format` says, or else the ending of the file. They may not say different
    /// things, because whatever opens the file goes by its ending.
    fn form(&self) -> Result<Form, Failure> {
        let ending = overwrite::named(self.out.as_ref()).and_then(|p| p.extension()).and_then(|e| e.to_str());
        let by_ending = match ending {
            None => None,
            Some("svg") => Some(Form::Svg),
            Some("html" | "htm") => Some(Form::Html),
            Some("png") => Some(Form::Png),
            Some("dot" | "gv") => Some(Form::Dot),
            Some("mmd" | "mermaid") => Some(Form::Mermaid),
            Some(_) => None,
        };
        match (self.format, by_ending, ending) {
            // What is printed is JSON or a path, whatever the file is.
            (Some(Form::Json | Form::Agent) | None, Some(form), _) => Ok(form),
            (Some(Form::Json | Form::Agent) | None, None, None) => Ok(Form::Svg),
            (Some(Form::Json | Form::Agent) | None, None, Some(other)) => {
                let failure = Failure::usage(format!("`.{other}` is not one of svg, html, png, dot and mmd"));
                let near = suggest(other, &["svg", "html", "png", "dot", "mmd"]);
                let failure =
                    near.into_iter().fold(failure, |f, near| f.help(format!("did you mean `.{near}`?")));
                Err(failure.help("`--format` selects the form"))
            }
            (Some(form), Some(other), Some(ending)) if form != other => {
                let word = |form: Form| {
                    form.to_possible_value().map_or_else(String::new, |v| v.get_name().to_owned())
                };
                Err(Failure::usage(format!(
                    "`--format {}` contradicts `.{ending}`, the ending of `--out`",
                    word(form)
                ))
                .help(format!("leave `--format` out for {}, or change the ending", word(other))))
            }
            (Some(form), _, _) => Ok(form),
        }
    }
}
