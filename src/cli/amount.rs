//! Whole numbers on the command line, with messages in words.

use std::fmt::Display;

use crate::report::number::exact;

/// Reads a whole number of at least `least`.
pub fn at_least<T: Whole>(least: T) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text| read(text, least, None)
}

/// Reads a whole number from `least` to `most`.
pub fn between<T: Whole>(
    least: T,
    most: T,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text| read(text, least, Some(most))
}

/// A type of whole numbers, none of which is negative.
pub trait Whole: Copy + Ord + Display + TryInto<u128> + TryFrom<u128> + Send + Sync + 'static {}
impl<T: Copy + Ord + Display + TryInto<u128> + TryFrom<u128> + Send + Sync + 'static> Whole for T {}

fn read<T: Whole>(text: &str, least: T, most: Option<T>) -> Result<T, String> {
    let read = text.parse::<u128>().ok();
    let value = read.and_then(|number| T::try_from(number).ok());
    if let Some(value) = value.filter(|value| *value >= least && most.is_none_or(|most| *value <= most)) {
        return Ok(value);
    }
    // A bound that cannot be shown in groups of digits is none of ours, which are all small.
    let shown = |bound: T| bound.try_into().map_or_else(|_| bound.to_string(), exact);
    Err(match most {
        Some(most) => format!("it must be a whole number from {} to {}", shown(least), shown(most)),
        // More than the type has.
        None if read.is_some() && value.is_none() => "it is too large".to_owned(),
        None => format!("it must be a whole number, {} or more", shown(least)),
    })
}
