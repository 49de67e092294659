//! Values of settings as Python writes them.

use super::super::number;

/// A value of a setting.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `None`: the setting is absent or does not apply.
    None,
    /// `True` or `False`
    Bool(bool),
    /// A count or a seed: `1000`
    Int(u64),
    /// A real number, which Python reads back as the same float.
    Float(f64),
    /// A text in double quotes, with escapes for what is not ASCII.
    Text(String),
    /// `(a, b)`, or `(a,)` for a single item
    Tuple(Vec<Value>),
    /// `{"key": value}`, in this order
    Map(Vec<(&'static str, Value)>),
}

/// The longest line, as `ruff format` leaves it.
const WIDTH: usize = 88;

impl Value {
    /// A value that may be absent.
    pub fn maybe(number: Option<u64>) -> Self {
        number.map_or(Self::None, Self::Int)
    }

    /// The value in one line.
    fn line(&self) -> String {
        match self {
            Self::None => "None".to_owned(),
            Self::Bool(true) => "True".to_owned(),
            Self::Bool(false) => "False".to_owned(),
            Self::Int(n) => n.to_string(),
            Self::Float(x) => number::float(*x),
            Self::Text(text) => number::quoted(text),
            Self::Tuple(items) => match items.as_slice() {
                [one] => format!("({},)", one.line()),
                all => format!("({})", all.iter().map(Value::line).collect::<Vec<_>>().join(", ")),
            },
            Self::Map(entries) => {
                let entries = entries.iter().map(|(key, value)| format!("\"{key}\": {}", value.line()));
                format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
            }
        }
    }

    /// The value after `before`, which a line begins with after `indent` spaces. What does not fit into a
    /// line has a line for each item.
    pub fn after(&self, before: &str, indent: usize) -> String {
        let line = format!("{}{before}{}", " ".repeat(indent), self.line());
        let (open, close, items): (_, _, Vec<String>) = match self {
            _ if line.chars().count() <= WIDTH => return line,
            Self::Tuple(items) => ("(", ")", items.iter().map(|v| v.after("", indent + 4)).collect()),
            Self::Map(entries) => {
                let entry = |(key, value): &(&str, Value)| value.after(&format!("\"{key}\": "), indent + 4);
                ("{", "}", entries.iter().map(entry).collect())
            }
            // There is no place inside of these where Python allows a line to end.
            Self::None | Self::Bool(_) | Self::Int(_) | Self::Float(_) | Self::Text(_) => return line,
        };
        let space = " ".repeat(indent);
        let items: String = items.iter().map(|item| format!("{item},\n")).collect();
        format!("{space}{before}{open}\n{items}{space}{close}")
    }
}
