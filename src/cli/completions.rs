//! `trafoc completions`: a script with which a shell completes commands, options, and the names of what comes
//! with trafoc.
//!
//! The script for commands and options is generated from the grammar. Names begin with `@`, in bash, zsh and
//! fish: of recipes after an option that takes one, else of specs.

use std::collections::BTreeSet;

use clap::{Args, ValueHint};
use clap_complete::Shell;
use schemars::JsonSchema;
use serde::Serialize;

use super::command::Command;
use super::format::{Format, FormatArg};
use super::outcome::{Failure, Output};
use super::shelf::{RECIPES, SHELF, Shipped};
use super::ui::Ui;

/// How the script is used in every session of a shell.
pub const INSTALLATION: &str = "\
In every session of the shell:

  bash: echo 'source <(trafoc completions bash)' >> ~/.bashrc
  zsh:  echo 'source <(trafoc completions zsh)' >> ~/.zshrc
        (after the line with compinit)
  fish: echo 'trafoc completions fish | source' >> ~/.config/fish/config.fish";

/// The command line of `completions`.
#[derive(Debug, Args)]
pub struct Completions {
    /// bash, elvish, fish, powershell or zsh
    #[arg(value_enum, value_name = "SHELL", hide_possible_values = true)]
    shell: Shell,
    /// `--format`: how the result and the diagnostics are printed.
    #[command(flatten)]
    pub format: FormatArg,
}

/// The data of `completions` in JSON.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Data {
    /// The shell as the command line names it, such as `bash`.
    shell: String,
    /// The script, which the shell reads when it starts.
    script: String,
}

impl Command for Completions {
    type Data = Data;

    fn format(&self) -> Format {
        self.format.format
    }

    /// Prints clap's script for the shell, extended by the names of specs and recipes where the shell
    /// allows it.
    fn run(&self, ui: &mut Ui) -> Result<Output<Data>, Failure> {
        let mut script = Vec::new();
        let mut grammar = with_hints((ui.program().grammar)());
        clap_complete::generate(self.shell, &mut grammar, "trafoc", &mut script);
        let script = String::from_utf8(script).map_err(|e| Failure::bug(e.to_string()))?;
        let names = Names::of(&grammar);
        let script = match self.shell {
            Shell::Bash => script + &names.bash(),
            Shell::Zsh => names.zsh(&script)?,
            Shell::Fish => script + &names.fish(),
            // Elvish and PowerShell complete commands and options alone.
            _ => script,
        };
        let data = Data { shell: self.shell.to_string(), script: script.clone() };
        Ok(Output::new(script, data))
    }
}

/// The names that are completed after `@`.
struct Names {
    specs: String,
    recipes: String,
    /// The options after which a recipe is named.
    options: Vec<Recipe>,
}

/// An option that takes a recipe, with the command that has it; `long` and `short` are without dashes.
struct Recipe {
    command: String,
    long: Option<String>,
    short: Option<char>,
}

impl Names {
    fn of(grammar: &clap::Command) -> Self {
        let all =
            |shelf: &[Shipped]| shelf.iter().map(|s| format!("@{}", s.name)).collect::<Vec<_>>().join(" ");
        // The name of the value tells what an option takes, so a new option with a recipe is completed too.
        let takes_recipe = |argument: &&clap::Arg| taken(argument) == Some("RECIPE");
        let options = below(grammar).into_iter().flat_map(|command| {
            command.get_arguments().filter(takes_recipe).map(|argument| Recipe {
                command: command.get_name().to_owned(),
                long: argument.get_long().map(str::to_owned),
                short: argument.get_short(),
            })
        });
        Self { specs: all(SHELF), recipes: all(RECIPES), options: options.collect() }
    }

    /// The spellings of all options, for `case`.
    fn spellings(&self) -> String {
        let long = self.options.iter().filter_map(|o| o.long.as_ref()).map(|long| format!("--{long}"));
        let short = self.options.iter().filter_map(|o| o.short).map(|short| format!("-{short}"));
        // Several commands have the same option, and a pattern of `case` needs it once.
        long.chain(short).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join("|")
    }

    /// A function around the generated one. It takes the word from the whole line, because bash divides words
    /// at `@` and at `=`, and completes what follows the latter.
    fn bash(&self) -> String {
        // The last `complete` for a command counts, so this one replaces that of the generated script. Like
        // that, it falls back to files.
        let Self { specs, recipes, .. } = self;
        let spellings = self.spellings();
        format!(
            r#"
_trafoc_names() {{
    local line="${{COMP_LINE:0:COMP_POINT}}"
    local word="${{line##*[[:space:]]}}" before="${{line%[[:space:]]*}}" names option
    option="${{before##*[[:space:]]}}"
    if [[ "$word" == --*=* ]]; then
        option="${{word%%=*}}" word="${{word#*=}}"
        set -- "$1" "$word" "$option"
    fi
    if [[ "$word" != @* ]]; then
        _trafoc "$@"
        return
    fi
    case "$option" in
        {spellings}) names="{recipes}" ;;
        *) names="{specs}" ;;
    esac
    COMPREPLY=($(compgen -W "$names" -- "$word"))
}}
complete -F _trafoc_names -o bashdefault -o default trafoc
"#
        )
    }

    /// The generated function with a beginning that completes names.
    fn zsh(&self, script: &str) -> Result<String, Failure> {
        let Self { specs, recipes, .. } = self;
        let spellings = self.spellings();
        // zsh calls the generated function by its name, so it is extended and not wrapped as in bash.
        let start = "_trafoc() {\n";
        // With `*::`, nothing but further arguments would be completed after the first one of a list: no option.
        let script = script.replace("\n'*::", "\n'*:");
        let Some((before, after)) = script.split_once(start) else {
            return Err(Failure::bug("the generated script has no function `_trafoc`"));
        };
        Ok(format!(
            r#"{before}{start}    local named="$words[CURRENT-1]"
    if [[ "$PREFIX" == --*=@* ]]; then
        named="${{PREFIX%%=*}}"
        compset -P '*='
    fi
    if [[ "$PREFIX" == @* ]]; then
        case "$named" in
            ({spellings}) compadd -- {recipes} ;;
            (*) compadd -- {specs} ;;
        esac
        return
    fi
{after}"#
        ))
    }

    /// More rules: one for specs, and one for each option that takes a recipe.
    fn fish(&self) -> String {
        let Self { specs, recipes, options } = self;
        // With `-f`, because what begins with `@` is never a file.
        let mut rules = format!(
            "\ncomplete -c trafoc -n 'string match -q \"@*\" -- (commandline -ct)' -f -a \"{specs}\"\n"
        );
        for Recipe { command, long, short } in options {
            let long = long.as_ref().map_or(String::new(), |long| format!(" -l {long}"));
            let short = short.map_or(String::new(), |short| format!(" -s {short}"));
            // With `-r` the option takes a value, and with `-F` files are completed too, since a recipe may
            // be one.
            rules += &format!(
                "complete -c trafoc -n \"__fish_seen_subcommand_from {command}\"{short}{long} -r -F -a \"{recipes}\"\n"
            );
        }
        rules
    }
}

/// The grammar in which shells know where files are named: without this, zsh offers the names of commands for a list of
/// specs.
fn with_hints(command: clap::Command) -> clap::Command {
    // The name of the value tells what an argument takes, as above.
    let hint = |argument: &clap::Arg| match taken(argument)? {
        "FILE" | "PATH" | "JSON|FILE" => Some(ValueHint::FilePath),
        "DIR" | "RUN" => Some(ValueHint::DirPath),
        // A model or a spec is a file or a folder.
        "SPEC" | "MODEL" | "RECIPE" | "N|SPEC" | "CODE|KEY|SPEC" => Some(ValueHint::AnyPath),
        _ => None,
    };
    let command = command.mut_args(|argument| match hint(&argument) {
        Some(hint) => argument.value_hint(hint),
        None => argument,
    });
    command.mut_subcommands(with_hints)
}

/// The name of the value that an argument takes. A flag has a name for one, too.
fn taken(argument: &clap::Arg) -> Option<&str> {
    argument
        .get_value_names()?
        .first()
        .filter(|_| argument.get_action().takes_values())
        .map(|name| name.as_str())
}

/// A command and all commands below it.
fn below(command: &clap::Command) -> Vec<&clap::Command> {
    let further = command.get_subcommands().flat_map(below);
    std::iter::once(command).chain(further).collect()
}
