//! Inputs of a graph by name, from tensors or from JSON lists, checked against what the graph takes.

use std::fmt;

use burn::prelude::*;
use indexmap::IndexMap;
use serde_json::Value as Json;

use super::plan::{Input, Plan};
use super::value::{Ranked, Value};
use crate::diag::suggest::suggest;
use crate::ir::DType;

/// The named tensors a graph is run on.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    pub(super) values: IndexMap<String, Value>,
    /// Where a sequence without a mask has padding.
    pub(super) padded: Option<Value>,
}

/// Everything that is wrong with the inputs, one sentence each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputsError(pub Vec<String>);

impl fmt::Display for InputsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for InputsError {}

impl Inputs {
    /// An empty set of inputs.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an input. The ids in the tensor must be rows of the tables in which they are looked up; this is
    /// not checked here, unlike in [`Inputs::from_json`].
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.values.insert(name.to_owned(), value.into());
        self
    }

    /// Adds an input with numbers of the program's own, as many as the shape has places. They are not checked.
    ///
    /// # Errors
    /// The shape has more axes than a tensor can have.
    pub fn with_numbers(
        self,
        input: &Input,
        shape: Vec<usize>,
        numbers: impl Iterator<Item = f64>,
        device: &Device,
    ) -> Result<Self, super::Fault> {
        Ok(self.with(&input.name, tensor(input, numbers, shape, device)?))
    }

    /// Says which positions of the tokens are padding, `[B, T]` with 0 for padding, where the graph is given no mask that
    /// says so. Only losses of parts ask for it.
    pub fn with_padded(mut self, keep: impl Into<Value>) -> Self {
        self.padded = Some(keep.into());
        self
    }

    /// The input with this name.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.values.get(name)
    }

    /// The names of the inputs that are given.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.values.keys().map(String::as_str)
    }

    /// Reads an object of nested lists, `{"tokens": [[1, 2, 3]], "mask": [[1, 1, 0]]}`.
    ///
    /// # Errors
    /// Lists every name that is not an input, every list that is ragged or has the wrong depth, and every
    /// number that the graph cannot take.
    pub fn from_json(plan: &Plan, json: &Json, device: &Device) -> Result<Self, InputsError> {
        let Json::Object(object) = json else {
            return Err(InputsError(vec!["inputs must be an object that maps names to nested lists".into()]));
        };
        let mut errors = Vec::new();
        let mut inputs = Self::new();
        for (name, json) in object {
            let Some(input) = plan.inputs().iter().find(|input| input.name == *name) else {
                errors.push(unknown(name, plan.inputs()));
                continue;
            };
            match read(input, json, device) {
                Ok(value) => {
                    inputs.values.insert(name.clone(), value);
                }
                Err(why) => errors.push(format!("input `{name}`: {why}")),
            }
        }
        if errors.is_empty() { Ok(inputs) } else { Err(InputsError(errors)) }
    }
}

/// The message about a name that is not an input.
pub(super) fn unknown(name: &str, inputs: &[Input]) -> String {
    let names: Vec<&str> = inputs.iter().map(|input| input.name.as_str()).collect();
    match suggest(name, &names) {
        Some(like) => format!("the model has no input `{name}`; did you mean `{like}`?"),
        None => format!("the model has no input `{name}`; it takes {}", names.join(", ")),
    }
}

fn read(input: &Input, json: &Json, device: &Device) -> Result<Value, String> {
    let rank = input.ty.shape.len();
    let mut numbers = Numbers { rank, shape: vec![None; rank], place: Vec::new(), found: Vec::new() };
    numbers.walk(json, input)?;
    // No list of that depth was read if the lists around it are empty.
    let shape: Vec<usize> = numbers.shape.iter().map(|n| n.unwrap_or(0)).collect();
    if shape.contains(&0) {
        return Err("it is empty".into());
    }
    tensor(input, numbers.found.into_iter(), shape, device).map_err(|fault| fault.to_string())
}

/// A tensor of an input's element type.
fn tensor(
    input: &Input,
    numbers: impl Iterator<Item = f64>,
    shape: Vec<usize>,
    device: &Device,
) -> Result<Value, super::Fault> {
    let data = match input.ty.dtype {
        DType::Float => TensorData::new(numbers.map(|x| x as f32).collect(), shape),
        // Burn converts them to the integers and booleans of the device.
        DType::Int | DType::Bool => TensorData::new(numbers.map(|x| x as i64).collect::<Vec<i64>>(), shape),
    };
    Ok(match input.ty.dtype {
        DType::Float => Value::Float(Ranked::from_data(data, device)?),
        DType::Int => Value::Int(Ranked::from_data(data, device)?),
        DType::Bool => Value::Bool(Ranked::from_data(data, device)?),
    })
}

/// Collects the numbers of nested lists in row-major order. They are `f64`, so integers up to 2^53 are exact.
struct Numbers {
    /// How deep numbers must be nested: the rank of the input.
    rank: usize,
    /// The length of each axis, which the first list of that depth determines.
    shape: Vec<Option<usize>>,
    /// The indices of the list or number that is being read, outermost first.
    place: Vec<usize>,
    found: Vec<f64>,
}

impl Numbers {
    fn walk(&mut self, json: &Json, input: &Input) -> Result<(), String> {
        let depth = self.place.len();
        let place = || self.place.iter().map(|i| format!("[{i}]")).collect::<String>();
        match json {
            Json::Array(items) if depth < self.rank => {
                let size = self.shape[depth].get_or_insert(items.len());
                if *size != items.len() {
                    let place = place();
                    return Err(format!(
                        "the list at {place} has {}, but the first one has {size}",
                        items.len()
                    ));
                }
                for (i, item) in items.iter().enumerate() {
                    self.place.push(i);
                    self.walk(item, input)?;
                    self.place.pop();
                }
                Ok(())
            }
            Json::Number(number) if depth == self.rank => {
                // NaN passes none of the checks, whatever the element type.
                let x = number.as_f64().unwrap_or(f64::NAN);
                check(x, input).map_err(|why| format!("{number} at {} {why}", place()))?;
                self.found.push(x);
                Ok(())
            }
            Json::Number(_) => {
                Err(format!("its numbers are nested {depth} deep, but {} needs {}", input.ty, self.rank))
            }
            Json::Array(_) => {
                Err(format!("there is a list at {}, where {} must have a number", place(), input.ty))
            }
            Json::Null | Json::Bool(_) | Json::String(_) | Json::Object(_) => {
                Err(format!("`{json}` at {} is not a number", place()))
            }
        }
    }
}

fn check(x: f64, input: &Input) -> Result<(), String> {
    if input.ty.dtype == DType::Float {
        // JSON has numbers beyond single precision.
        return if (x as f32).is_finite() { Ok(()) } else { Err("is too large".into()) };
    }
    // Integers have 32 bits on Flex and on CubeCL's backends.
    if x.fract() != 0.0 || !(0.0..=f64::from(i32::MAX)).contains(&x) {
        return Err("is not an id".into());
    }
    if (input.keep || input.ty.dtype == DType::Bool) && x > 1.0 {
        return Err("is neither 1 (keep) nor 0 (padding)".into());
    }
    match &input.rows {
        Some((rows, path)) if x >= *rows as f64 => {
            Err(format!("is outside of {path}, whose rows are 0 to {}", rows.saturating_sub(1)))
        }
        Some(_) | None => Ok(()),
    }
}
