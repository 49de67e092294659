//! Keys with a number in brackets, `decoder[0]`, as other languages write the items of a list.

use super::context::Context;
use super::value::{Field, Shape};
use crate::syntax::set::{argument_at, as_typed};
use crate::syntax::tree::{Entry, Kind, Node};

/// What to write in place of a key with a number in brackets after the name of one of these fields: an item of a list has its
/// number after a dot, a layer is a range, and what there is one of has no number.
pub(super) fn without_brackets(
    entry: &Entry,
    map: &Node,
    (given, other): (&[Field], &[Field]),
    cx: &Context<'_>,
) -> Option<String> {
    let (name, number) = entry.key.strip_suffix(']')?.split_once('[')?;
    let number: u32 = number.trim().parse().ok()?;
    let field = |name: &str| given.iter().chain(other).find(|f| f.name == name);
    let meant = match (field(name)?.shape)() {
        _ if matches!(map.get(name).map(|there| &there.kind), Some(Kind::List(_))) => {
            format!("{name}.{number}")
        }
        // Of the layers and of the blocks of a stack.
        Shape::Integer(_) | Shape::Map(_) if field("ranges").is_some() => format!("ranges.{number}"),
        Shape::Record(..) | Shape::Slot(_) => name.to_owned(),
        Shape::Bool
        | Shape::Integer(_)
        | Shape::Number(_)
        | Shape::Text
        | Shape::Texts
        | Shape::Choice(_)
        | Shape::List(..)
        | Shape::Map(_)
        | Shape::Equation
        | Shape::Part
        | Shape::Any => return None,
    };
    let (option, argument) = argument_at(cx.sources(), entry.key_span)?;
    let place = entry.key_span.range();
    let (before, after) = (argument.get(..place.start)?, argument.get(place.end..)?);
    // A key in the value of a setting, or of a variant, is no part of its path.
    let mut is_path = !before.contains('=') && after.starts_with(['.', '=']);
    // With another number in brackets it would still be wrong, and a range is a map.
    is_path &= !after.split('=').next().unwrap_or_default().contains('[');
    is_path &= !meant.starts_with("ranges.") || after.starts_with('.');
    let written = as_typed(option, &format!("{before}{meant}{after}")).filter(|_| is_path)?;
    Some(format!("a path is names with dots between them: write `{written}`"))
}
