//! What training starts from on the command line: a new head, or random weights.

use clap::Args;
use clap::builder::PossibleValuesParser;

use super::amount;
use super::next_step::quoted;
use super::outcome::Failure;
use super::subject::OverArgs;
use crate::hub::new_head::NewHead;
use crate::parts::Head;

/// The most classes of a new head, more than any data set distinguishes.
const MOST_CLASSES: u64 = 1_000_000;

/// The options with which training starts from a model that is trained already.
#[derive(Clone, Debug, Default, Args)]
pub struct StartArgs {
    /// A new head for another task, with fresh parameters: classify, tag, span, lm, mlm, ...
    #[arg(long, value_name = "PART", value_parser = PossibleValuesParser::new(Head::PARTS), hide_possible_values = true)]
    pub head: Option<String>,
    /// The number of classes of the new head
    #[arg(long, value_name = "N", requires = "head", value_parser = amount::between(1_u64, MOST_CLASSES))]
    pub classes: Option<u64>,
    /// Start from random weights even if the model has its own
    #[arg(long)]
    pub from_scratch: bool,
}

/// Whether a part of the slot `head` has a field `classes`, as `classify` and `tag` do.
fn has_classes(part: &str) -> bool {
    // From the slot's own documentation, so that a new head with classes needs no list here.
    let slot = Head::documentation();
    let found = slot.parts.iter().find(|known| known.name == part);
    found.is_some_and(|known| (known.fields)().iter().any(|field| field.name == "classes"))
}

impl StartArgs {
    /// The changes to a spec with the new head, if one is asked for.
    ///
    /// # Errors
    /// The number of classes is missing, or the head has none.
    pub fn over(&self, over: &OverArgs) -> Result<OverArgs, Failure> {
        // `--classes` without `--head` has been refused by clap.
        let Some(part) = &self.head else { return Ok(over.clone()) };
        match (has_classes(part), self.classes) {
            (true, None) => {
                let message = format!("the head `{part}` needs its number of classes");
                Err(Failure::usage(message).help(format!("`--head {part} --classes 8`")))
            }
            (false, Some(_)) => Err(Failure::usage(format!(
                "the head `{part}` has no classes, so `--classes` would have no effect"
            ))),
            (_, classes) => Ok(over.with_head(NewHead { part: part.clone(), classes, pooled: None })),
        }
    }

    /// The options as they would be written on a command line, each after a space.
    pub fn as_options(&self) -> String {
        let head = self.head.iter().map(|head| format!(" --head {}", quoted(head)));
        let classes = self.classes.iter().map(|count| format!(" --classes {count}"));
        let scratch = self.from_scratch.then(|| " --from-scratch".to_owned());
        head.chain(classes).chain(scratch).collect()
    }
}
