//! The commands that run models, in a program that was built without the interpreter: each reports the
//! missing feature.

use super::command::Command;
use super::data::{self, Prepare};
use super::eval::{self, Eval};
use super::format::Format;
use super::generate::{self, Generate};
use super::outcome::{Failure, Output};
use super::predict::{self, Predict};
use super::reproduce::{self, Reproduce};
use super::run::{self, Run};
use super::train::{self, Train};
use super::ui::{Ui, without_interp};

macro_rules! without {
    ($($arguments:ty, $data:ty, $what:literal;)*) => {$(
        impl Command for $arguments {
            type Data = $data;

            fn format(&self) -> Format {
                self.format.format
            }

            fn run(&self, _: &mut Ui) -> Result<Output<$data>, Failure> {
                Err(without_interp($what))
            }
        }
    )*};
}

without! {
    Prepare, data::Data, "prepare data";
    Train, train::Data, "train models";
    Reproduce, reproduce::Data, "train models";
    Eval, eval::Data, "evaluate models";
    Generate, generate::Data, "generate text";
    Predict, predict::Data, "predict";
}

impl Command for Run {
    type Data = run::Data;

    fn format(&self) -> Format {
        self.format.format
    }

    /// Checks the spec before it reports the missing feature.
    fn run(&self, ui: &mut Ui) -> Result<Output<run::Data>, Failure> {
        self.spec.compile(ui)?;
        Err(without_interp("run models"))
    }
}
