//! What texts look like: expressions, equations, names of tensors, ranges of layers. A pattern says what a
//! regular language can; names that must exist and numbers that must fit are left to `trafoc check`.

use serde_json::{Map, Value as Json, json};

use super::super::library;
use super::super::wiring::{PRELUDE, PartKind};
use crate::names::layout::{self, Form, Key, Takes};
use crate::source::is_hidden;
use crate::syntax::expr::Function;
use crate::syntax::text::MAX_DEPTH;

/// A text without characters that hide what it says.
pub fn visible() -> Json {
    // Every hidden character is one of the basic plane.
    let codes = (0..=0xffff_u32).filter(|code| char::from_u32(*code).is_some_and(is_hidden_here));
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for code in codes {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(code) => *last = code,
            Some(_) | None => ranges.push((code, code)),
        }
    }
    let ranges: String = ranges.iter().map(|(a, b)| format!("\\u{a:04x}-\\u{b:04x}")).collect();
    json!({ "type": "string", "pattern": format!("^[^{ranges}]+$") })
}

fn is_hidden_here(c: char) -> bool {
    is_hidden(c) || c.is_control()
}

/// Ranges of layers, `0..3`, `3..`, `..3`, `7`, or the names of blocks; a range that ends where it begins
/// contains no layer.
pub fn ranges() -> String {
    r"^\s*(?:[0-9]+|(?!([0-9]+)\s*\.\.\s*\1\s*$)[0-9]*\s*\.\.\s*[0-9]*|[A-Za-z_][\w-]*)\s*$".to_owned()
}

/// Ranges of the layers of a stack with this number of layers.
pub fn ranges_within(layers: u64) -> String {
    let (first, end) = (number_up_to(layers.saturating_sub(1)), number_up_to(layers));
    format!(r"^\s*(?:0*{first}|(?:0*{first})?\s*\.\.\s*(?:0*{end})?)\s*$")
}

/// The whole numbers from 0 to this one, without zeros before them.
fn number_up_to(most: u64) -> String {
    let text = most.to_string();
    let mut ways = Vec::new();
    // Numbers of fewer digits, and those of as many that first differ by a smaller digit.
    if let Some(shorter) = text.len().checked_sub(2) {
        ways.push("[0-9]".to_owned());
        ways.extend((1..=shorter).map(|more| format!("[1-9][0-9]{{{more}}}")));
    }
    for (i, digit) in text.chars().enumerate() {
        let least = if i == 0 && text.len() > 1 { '1' } else { '0' };
        let before: String = text.chars().take(i).collect();
        let rest = text.len().saturating_sub(i.saturating_add(1));
        if digit > least {
            let below = char::from_u32(u32::from(digit).saturating_sub(1)).unwrap_or(least);
            ways.push(format!("{before}[{least}-{below}][0-9]{{{rest}}}"));
        }
    }
    ways.push(text);
    format!("(?:{})", ways.join("|"))
}

/// How deep pairs of parentheses are matched: each level makes the pattern several times longer. Deeper ones
/// pass, since a pattern cannot count.
const DEPTH: usize = 6;

/// A pattern of texts whose parentheses come in pairs.
fn balanced() -> String {
    let text = r"[^()]*";
    let inner = (0..DEPTH).fold(text.to_owned(), |inner, _| format!(r"{text}(?:\({inner}\){text})*"));
    format!(r"(?=(?:{inner})$|.*(?:\([^)]*){{{}}})", DEPTH + 1)
}

/// An expression: operands with operators between them, functions of as many arguments as they take, or a
/// text with a comment. A quoted number does not count as one.
pub fn expression() -> Json {
    let names: Vec<&str> = Function::NUMBERS.iter().map(|f| f.name()).collect();
    let number = r"(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?";
    let call = format!(r"(?:{})\s*\(", names.join("|"));
    let operand = format!(
        r"[-+(\s]*(?:{call}[-+(\s]*)*(?:{number}|[A-Za-z_][A-Za-z0-9_.]*(?![A-Za-z0-9_.]|\s*\())[)\s]*"
    );
    // A function of one argument has no comma between its parentheses, and one of at least two has one.
    let arity = |function: &Function| match function.arity() {
        (1, 1) => format!(r"(?!.*\b{}\s*\([^()]*,)", function.name()),
        (least, _) if least > 1 => format!(r"(?!.*\b{}\s*\([^(),]*\))", function.name()),
        _ => String::new(),
    };
    let arities: String = Function::NUMBERS.iter().map(arity).collect();
    // Without a function there is nothing that commas could separate.
    let comma = format!(r"(?!(?!.*(?:{})\s*\().*,)", names.join("|"));
    // A divisor that is a literal is not 0.
    let zero = r"(?!.*/\s*0+(?:\.0*)?\s*(?:[-+*/)]|$))";
    // What YAML reads as a number is one without quotes; with `_` in it, it is a text to YAML.
    let plain = format!(r"(?!\s*[-+]?{}\s*$)", number.replace('_', ""));
    let logarithm =
        format!(r"(?!.*\b(?:{}|{})\s*\(\s*-?0?\s*\))", Function::Log.name(), Function::Log2.name());
    let deep = format!(r"(?!.*(?:\([^()]*){{{}}})", MAX_DEPTH.saturating_add(1));
    let pattern = format!(
        "^(?:.*#|{deep}{}{plain}{arities}{comma}{zero}{logarithm}{operand}(?:[-+*/^,]{operand})*$)",
        balanced()
    );
    json!({ "type": "string", "pattern": pattern })
}

/// An expression whose value may be a whole number. If it consists of numbers only, an irreducible fraction
/// is excluded, and neither is a power that is larger than every size.
pub fn whole_expression() -> Json {
    // Odd over even, and a last digit other than 0 and 5 over one of them.
    let fraction = r"^\s*(?:[0-9_]*[13579]\s*/\s*[0-9_]*[02468]|[0-9_]*[1-46-9]\s*/\s*[0-9_]*[05])\s*$";
    // Without a quotient, a difference, a factor of 0 or a power of a power, a value is at least each of its
    // powers.
    let grows = r"(?=[0-9_+*^()\s]*$)(?!.*\^[^+*()]*\^)(?!.*\)\s*\^)(?!.*(?:^|[^0-9_])0)";
    let above = crate::field::value::MAX_SIZE.ilog2().saturating_add(1);
    let exponent = format!("(?!{}(?:[^0-9_]|$))[0-9]+", number_up_to(u64::from(above.saturating_sub(1))));
    let large = format!(r"^{grows}.*(?<![0-9_^])(?:[2-9]|[1-9][0-9_]+)\s*\^\s*{exponent}(?:[^0-9_]|$)");
    json!({
        "allOf": [{ "$ref": "#/definitions/expression" }],
        "not": { "anyOf": [{ "pattern": fraction }, { "pattern": large }] },
    })
}

/// Which parts an equation calls that the language does not have itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Own {
    /// None.
    Nothing,
    /// Those of the library.
    Library,
    /// Any that the spec may define.
    Any,
}

/// The name of a wiring, or an equation of calls and sums.
pub fn equation(own: Own) -> Json {
    let kinds: Vec<&str> = PartKind::ALL.iter().map(|kind| kind.word()).collect();
    let functions: Vec<&str> = Function::NUMBERS.iter().map(|f| f.name()).collect();
    let instance = r"[0-9]*\s*(?:\[\s*\w+\s*\])?";
    let library = library::all().iter().map(|part| part.name.as_str()).filter(|_| own == Own::Library);
    let parts: Vec<&str> = kinds.iter().copied().chain(library).collect();
    let calls = format!(r"(?:(?:{}){instance}|{})\s*\(", parts.join("|"), functions.join("|"));
    // A word before a parenthesis is a call of a part or a function.
    let known = format!(r"(?!(?:[\s\S]*[^\w\]])?(?!{calls})[A-Za-z_]\w*(?:\[\s*\w+\s*\])?[ \t]*\()");
    let known = if own == Own::Any { "" } else { known.as_str() };
    let one = |kind: &&PartKind| !matches!(kind, PartKind::Cross);
    let single: Vec<&str> = PartKind::ALL.iter().filter(one).map(|kind| kind.word()).collect();
    // What is between the parentheses of a call, its own calls aside.
    let inside = r"(?:[^(),]|\((?:[^()]|\([^()]*\))*\))*";
    let arguments = format!(r"(?![\s\S]*\b(?:{}){instance}\({inside},)", single.join("|"));
    let memory = format!(r"(?![\s\S]*\b{}{instance}\({inside}\))", PartKind::Cross.word());
    // A tensor is no divisor, a number no tensor that is summed or given to a part.
    let number = r"[0-9]+(?:\.[0-9]*)?";
    let every = kinds.join("|");
    let tensors = format!(
        r"(?![\s\S]*(?:/\s*(?:{every}){instance}\(|\b(?:{every}){instance}\(\s*{number}\s*\)|[-+]\s*{number}\s*[-+]))"
    );
    // A name belongs to one call.
    let names = r"(?![\s\S]*(\b[a-z]+\[\s*\w+\s*\])[\s\S]*\1)";
    let text = r"[\w\s+\-*/^=().,;:\[\]#]*[\w)]\s*(?:#[^\n]*\s*)?";
    // What a line gives a name is read somewhere; the result is `x`, unless the parameters have other names.
    let read = r"(?:[\s\S]*#|\s*\(|(?![\s\S]*(?:^|[\n;])\s*(?!x\s*=)([A-Za-z_]\w*)\s*=(?![\s\S]*\b\2\b)))";
    let read = format!("(?={read})");
    // A block takes `x`, or `x` and `memory`, under any names; what a line gives a name is no number.
    let inputs = r"(?!\s*\((?!\s*[A-Za-z_]\w*\s*(?:,\s*[A-Za-z_]\w*\s*)?\)\s*:)[^()]*\)\s*:)";
    let named = format!(r"(?![\s\S]*(?:^|[\n;])\s*[A-Za-z_]\w*\s*=\s*-?{number}\s*(?:[\n;#]|$))");
    // Without parameters of its own it has `x`, which is a tensor: no power is taken of it, nor a function of numbers.
    let of_numbers =
        format!(r"(?!(?!\s*\()(?:[\s\S]*\n)?[^#\n]*(?:\bx\s*\^|\b(?:{})\(\s*x\s*\)))", functions.join("|"));
    let balanced = balanced().replace(".*(?:", r"[\s\S]*(?:");
    let pattern = format!(
        "^{balanced}{inputs}{named}{known}{arguments}{memory}{tensors}{of_numbers}{names}{read}(?=[\\s\\S]*[=(+]){text}$"
    );
    json!({ "anyOf": [{ "enum": wirings() }, { "type": "string", "pattern": pattern }] })
}

/// A name with variables, `h.{i}.attn`.
const NAME: &str = r"^(?:[^{]|\{[a-z]+\})+$";

/// The rows of `weights`.
pub fn tensors() -> Json {
    json!({
        "propertyNames": { "pattern": NAME },
        "additionalProperties": { "$ref": "#/definitions/tensor" },
    })
}

/// A row of `weights`.
pub fn tensor() -> Json {
    let path = json!({ "type": "string", "pattern": NAME });
    let paths = json!({ "anyOf": [path, { "type": "array", "items": path, "minItems": 1 }] });
    let properties = |form: Form| {
        let property = |key: &'static Key| {
            let mut takes = match key.takes {
                Takes::Module => json!({ "type": "string" }),
                Takes::Path | Takes::Variable | Takes::Condition => path.clone(),
                Takes::Paths => paths.clone(),
                Takes::Groups => json!({ "type": ["integer", "string"] }),
                Takes::Flag => json!({ "type": "boolean" }),
                Takes::Axes => json!({ "type": "integer", "minimum": 0, "maximum": 4 }),
                Takes::Number => json!({ "type": "number" }),
            };
            if let Some(takes) = takes.as_object_mut() {
                let about = format!("{} Example: `{}`.", key.doc, key.example);
                takes.insert("description".to_owned(), json!(about));
            }
            (key.name.to_owned(), takes)
        };
        layout::keys(form).map(property).collect::<Map<String, Json>>()
    };
    let laid_out = json!({
        "type": "object",
        "properties": properties(Form::Layout),
        "anyOf": [{ "required": ["to"] }, { "required": ["fuse"] }],
        "not": { "required": ["fuse", "join"] },
        "additionalProperties": false,
    });
    let copy = json!({
        "type": "object", "properties": properties(Form::Copy), "required": ["copy"],
        "additionalProperties": false,
    });
    let below = json!({
        "type": "object", "properties": properties(Form::Below), "required": ["into"],
        "propertyNames": { "pattern": NAME }, "additionalProperties": { "$ref": "#/definitions/tensor" },
    });
    json!({ "anyOf": [paths, laid_out, copy, below] })
}

/// The names of the prelude's wirings, in their order.
pub fn wirings() -> Vec<&'static str> {
    let mut names: Vec<&str> =
        PRELUDE.lines().filter_map(|l| l.strip_prefix("block ")?.split('(').next()).collect();
    // A wiring with a memory follows the one without, under the same name.
    names.dedup();
    names
}
