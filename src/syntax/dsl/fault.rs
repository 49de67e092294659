//! Turns a parse error of pest into a diagnostic in the author's terms.

use pest::error::{Error, ErrorVariant, InputLocation};

use crate::diag::suggest::suggest;
use crate::diag::{Code, Diagnostic};
use crate::source::{SourceId, Span};

use super::grammar::Rule;
use crate::syntax::text::{COMMENTS, NO_COMMENT};

/// The diagnostic for a text that does not match the grammar.
pub fn syntax(error: &Error<Rule>, text: &str, id: SourceId) -> Diagnostic {
    let at = match error.location {
        InputLocation::Pos(at) | InputLocation::Span((at, _)) => at.min(text.len()),
    };
    let rest = text.get(at..).unwrap_or("");
    // The parser stops at one place; a reader wants to see the whole word there.
    let len = match rest.chars().next() {
        Some(c) if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
        Some(c) => c.len_utf8(),
        None => 0,
    };
    let span = Span::new(id, at, at.saturating_add(len));
    if let Some(diagnostic) = elsewhere(text, at, id) {
        return diagnostic;
    }
    let positives = match &error.variant {
        ErrorVariant::ParsingError { positives, .. } => positives.as_slice(),
        // pest reports that its call limit was reached as an error of this kind.
        ErrorVariant::CustomError { .. } => {
            let message = "reading the text takes too many steps";
            let help =
                "a spec describes an architecture in a page or two: check that this is the file you mean";
            return Diagnostic::error(Code::TooLarge, Span::new(id, 0, 0), message).help(help);
        }
    };
    if positives.contains(&Rule::EOI)
        && let Some(diagnostic) = no_beginning(text, at, id)
    {
        return diagnostic;
    }
    let found = match rest.get(..len).unwrap_or("") {
        "" => "the end of the text".to_owned(),
        "\n" | "\r" => "the end of the line".to_owned(),
        word => format!("`{word}`"),
    };
    let expected = expected(positives);
    let message = format!("found {found}, expected {}", list(&expected));
    let diagnostic = Diagnostic::error(Code::Syntax, span, message);
    match help(rest, text.get(..at).unwrap_or(""), positives) {
        Some(help) => diagnostic.help(help),
        None => diagnostic,
    }
}

/// The diagnostic for `modl m {`, whose first word was taken for a value, which would be all of the text.
fn no_beginning(text: &str, at: usize, id: SourceId) -> Option<Diagnostic> {
    let (before, rest) = text.split_at_checked(at)?;
    // A text may begin with comments.
    let is_comment = |line: &str| line.starts_with('#') || line.starts_with("//");
    let (above, last) = before.trim_end().rsplit_once('\n').unwrap_or(("", before));
    let is_above = above.lines().map(str::trim).all(|line| line.is_empty() || is_comment(line));
    let word = Some(last.trim()).filter(|_| is_above)?;
    let is_one = !word.is_empty() && word.chars().all(is_word) && rest.starts_with(is_word);
    let start = before.rfind(word).filter(|_| is_one)?;
    let span = Span::new(id, start, start.saturating_add(word.len()));
    let message = format!("a text cannot begin with `{word}` and a name");
    let diagnostic = Diagnostic::error(Code::Syntax, span, message);
    Some(match suggest(word, &["model"]) {
        Some(near) => diagnostic.meant(word, &near),
        None => diagnostic.help("a text begins with `model NAME {`"),
    })
}

/// The diagnostic for a mistake before or after the place where the parser stops.
fn elsewhere(text: &str, at: usize, id: SourceId) -> Option<Diagnostic> {
    let (before, rest) = (text.get(..at)?, text.get(at..)?);
    let begin = if rest.starts_with('*') && before.ends_with('/') { at.saturating_sub(1) } else { at };
    if text.get(begin..)?.starts_with("/*") {
        let place = Span::new(id, begin, begin.saturating_add(2));
        return Some(Diagnostic::error(Code::Syntax, place, NO_COMMENT).help(COMMENTS));
    }
    if let Some((place, written)) = hyphenated(text, at) {
        let place = Span::new(id, place.start, place.end);
        let message = format!("nothing is named `{written}`: `-` subtracts");
        let diagnostic = Diagnostic::error(Code::Syntax, place, message);
        return Some(diagnostic.meant(written, &written.replace('-', "_")));
    }
    if let Some(equals) = unassigned(text, at) {
        let place = Span::new(id, equals, equals.saturating_add(1));
        let message = "found the end of the line after `=`, expected a value";
        return Some(Diagnostic::error(Code::Syntax, place, message));
    }
    // `block(x) -> x {`: the word is taken for a key, which no parentheses follow.
    if rest.starts_with('(') && last_word(before) == "block" {
        let end = at.saturating_add(rest.find(')')?.saturating_add(1));
        let after = text.get(end..)?;
        let start = end.saturating_add(after.len().saturating_sub(after.trim_start().len()));
        let found: String =
            text.get(start..)?.chars().take_while(|c| !c.is_whitespace() && *c != '{').collect();
        if !found.is_empty() {
            let place = Span::new(id, start, start.saturating_add(found.len()));
            let message = format!("found `{found}`, expected `{{`");
            let help = "write `block(x) { ... }`: the last line in the braces is the result";
            return Some(Diagnostic::error(Code::Syntax, place, message).help(help));
        }
    }
    None
}

/// A name with dashes that is given fields, `layer-norm(eps: 1e-5)`, and its place. It was taken for a difference, whose
/// second operand has no fields in a value.
fn hyphenated(text: &str, at: usize) -> Option<(std::ops::Range<usize>, &str)> {
    let (before, rest) = text.split_at_checked(at)?;
    let written = last_key(before.trim_end().strip_suffix('(')?);
    let field = rest.trim_start_matches(is_word);
    let is_field = field.len() < rest.len() && field.trim_start().starts_with(':');
    let is_name = |piece: &str| piece.starts_with(|c: char| c.is_alphabetic() || c == '_');
    let is_one = written.contains('-') && written.split('-').all(is_name);
    let start = before.rfind(written).filter(|_| is_field && is_one)?;
    Some((start..start.saturating_add(written.len()), written))
}

/// Where `key =` ends its line and the next line, in which the parser stops, is an entry of its own or closes the map, so
/// that its first word was taken for the value: the place of the `=`.
fn unassigned(text: &str, at: usize) -> Option<usize> {
    let start = text.get(..at)?.rfind('\n')?.saturating_add(1);
    let next = text.get(start..)?.lines().next()?.trim_start();
    let after = next.trim_start_matches(is_word).trim_start();
    let is_entry = match next.strip_suffix(after)?.trim_end() {
        "" => next.starts_with('}'),
        "block" => after.starts_with('('),
        "layers" => after.starts_with(|c: char| c.is_ascii_digit() || c == '.'),
        "part" => after.starts_with(is_word),
        _ => {
            let count = after.strip_prefix('x').filter(|rest| !rest.starts_with(is_word));
            after.starts_with(['=', '{']) || count.is_some_and(|rest| rest.contains('{'))
        }
    };
    let mut end = start;
    let above = text.get(..start)?.split_inclusive('\n').rev().find_map(|line| {
        end = end.saturating_sub(line.len());
        // What looks like a comment may be in a text in quotes, which no `key =` before it ends.
        let code = line.find(['#', '/']).and_then(|mark| line.get(..mark)).unwrap_or(line).trim_end();
        (!code.is_empty()).then_some(code)
    })?;
    let key = above.strip_suffix('=').filter(|key| key.trim_end().ends_with(is_word))?;
    is_entry.then(|| end.saturating_add(key.len()))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The word at the end of a text.
fn last_word(text: &str) -> &str {
    text.trim_end().rsplit(|c| !is_word(c)).next().unwrap_or_default()
}

/// The key at the end of a text, which may have dashes in it.
fn last_key(text: &str) -> &str {
    let key = text.trim_end().rsplit(|c| !is_word(c) && c != '-').next().unwrap_or_default();
    key.trim_start_matches('-')
}

/// What is in the parentheses with which a text begins.
fn inside(rest: &str) -> Option<&str> {
    Some(rest.strip_prefix('(')?.split_once(')')?.0.trim())
}

/// A number of layers that is written after the name of a stack in another way than `x 2`.
fn layers(rest: &str) -> Option<&str> {
    let before = rest.get(..rest.find('{')?)?;
    let count = before.trim_matches(|c: char| {
        c.is_whitespace() || matches!(c, '(' | ')' | 'x' | 'X' | '×' | '*' | ':' | ',')
    });
    (!count.is_empty() && count.bytes().all(|b| b.is_ascii_digit())).then_some(count)
}

/// A stack that is written like a setting, `decoder = x 4 {` or `stack = decoder x 4 {`, as it should be. The text so far
/// ends with the `x`, which was taken for a value or a key.
fn stack_after_equals(rest: &str, before: &str) -> Option<String> {
    let (key, value) = before.rsplit('\n').next()?.rsplit_once('=')?;
    let name = match value.trim().strip_suffix('x')?.trim() {
        "" => last_word(key),
        name => name,
    };
    let is_name = !name.is_empty() && name.chars().all(is_word);
    is_name.then(|| format!("write `{name} x {} {{`, without `=`", layers(rest).unwrap_or_default()))
}

/// What is allowed at this place, in words, each once, in the order of the grammar's rules.
fn expected(positives: &[Rule]) -> Vec<&'static str> {
    let mut words: Vec<&'static str> = Vec::new();
    for rule in positives {
        let word = name(*rule);
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words
}

/// The name of a rule for authors.
fn name(rule: Rule) -> &'static str {
    match rule {
        Rule::EOI => "the end of the text",
        Rule::file | Rule::model | Rule::model_word => "`model NAME { ... }`",
        Rule::model_name | Rule::title => "the model's name",
        Rule::body => "`{`",
        Rule::entry | Rule::setting | Rule::key | Rule::dashed | Rule::word | Rule::path => "a key",
        Rule::assigned | Rule::equals => "`=`",
        Rule::repeated | Rule::times => "`x` and a number of layers",
        Rule::ranges | Rule::layers_word | Rule::which | Rule::interval => "a range of layers",
        Rule::equation | Rule::block_word | Rule::wiring => "a block's equation",
        Rule::library | Rule::part | Rule::part_word => "a part of your own, `part NAME(x) { ... }`",
        Rule::params => "the block's parameters, `(x)`,",
        Rule::value | Rule::plain | Rule::number | Rule::call | Rule::arguments => "a value",
        Rule::deletion => "`delete!`",
        Rule::list => "a list",
        Rule::named => "`field: value`",
        Rule::text | Rule::quoted | Rule::long_text | Rule::long_quoted | Rule::fence => "a quoted text",
        Rule::colon => "`:`",
        Rule::close_brace => "`}`",
        Rule::close_bracket => "`]`",
        Rule::close_paren => "`)`",
        // Silent rules never appear in an error.
        Rule::sum
        | Rule::factor
        | Rule::atom
        | Rule::application
        | Rule::operator
        | Rule::function
        | Rule::bound
        | Rule::digits
        | Rule::start
        | Rule::letter
        | Rule::WHITESPACE
        | Rule::COMMENT
        | Rule::comment
        | Rule::gap => "something else",
    }
}

/// A list for sentences: `a`, `a or b`, `a, b or c`.
fn list(words: &[&str]) -> String {
    match words {
        [] => "something else".to_owned(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// A suggestion of what the author probably meant.
fn help(rest: &str, before: &str, positives: &[Rule]) -> Option<String> {
    // The two mistakes of people who know YAML or Python come first.
    let wants = |rule: Rule| positives.contains(&rule);
    let first = rest.chars().next();
    match first {
        Some(':') if wants(Rule::equals) || wants(Rule::assigned) => {
            let key = last_key(before);
            if !key.is_empty()
                && rest.strip_prefix(':').is_some_and(|rest| rest.trim_start().starts_with('{'))
            {
                return Some(format!("write `{key} {{ ... }}`, without `:`"));
            }
            let value = simple_value(rest).filter(|_| !key.is_empty());
            let written = value.map_or("key = value".to_owned(), |value| format!("{key} = {value}"));
            Some(format!("write `{written}` in braces; `key: value` is for parentheses"))
        }
        Some('=') if wants(Rule::colon) => {
            let key = last_word(before);
            let value = simple_value(rest).filter(|_| !key.is_empty());
            let written = value.map_or("key: value".to_owned(), |value| format!("{key}: {value}"));
            Some(format!("write `{written}` in parentheses; `key = value` is for braces"))
        }
        Some('(') if follows_value(before) && before.ends_with(char::is_whitespace) => {
            let part = last_word(before);
            if inside(rest) == Some("") {
                return Some(format!("write `{part}` alone: a part without fields has no parentheses"));
            }
            let fields = listed_fields(rest, ": ")?.join(", ");
            Some(format!("write `{part}({fields})`, without a blank before the parenthesis"))
        }
        // `norm (rms_norm)`: a word in parentheses is the value.
        Some('(')
            if wants(Rule::body)
                && keyword(before).is_none()
                && layers(rest).is_none()
                && let Some(value) =
                    inside(rest).filter(|value| !value.is_empty() && value.chars().all(is_word)) =>
        {
            Some(format!("write `{} = {value}`, without parentheses", last_key(before)))
        }
        Some('(')
            if wants(Rule::body)
                && keyword(before).is_none()
                && let Some(fields) = listed_fields(rest, " = ") =>
        {
            let key = last_key(before);
            Some(format!("write `{key} {{ {} }}`: parentheses are for a part after `=`", fields.join("  ")))
        }
        Some('\'') => Some("quote with `\"`".to_owned()),
        Some('=') if before.trim_end().ends_with('=') => Some("assign a value with a single `=`".to_owned()),
        Some('{') if follows_value(before) => {
            Some("write the fields of a part in parentheses: `glu(hidden: 64)`".to_owned())
        }
        Some(_) if before.trim_end().ends_with("= (") || before.trim_end().ends_with("=(") => {
            Some("write a map in braces, without `=`: `bias { qkv = false }`".to_owned())
        }
        Some('.') if wants(Rule::equals) => nested(rest, before),
        Some('[') if wants(Rule::equals) => label(rest, before),
        Some('@') => quoted_name(rest),
        Some(_)
            if wants(Rule::body)
                && let Some(file) = extended(rest, before) =>
        {
            Some(format!("write `extends = {file}` inside the braces"))
        }
        Some(_) if let Some(help) = layers_block(rest, before) => Some(help),
        Some(_) if let Some(help) = layers_within(rest, before) => Some(help),
        Some(_) if layers(rest).is_some() && last_word(before) == "x" => stack_after_equals(rest, before),
        Some(_)
            if wants(Rule::equals)
                && let Some(help) = list_without_brackets(rest, before) =>
        {
            Some(help)
        }
        Some(_) if wants(Rule::repeated) || wants(Rule::times) => match layers(rest) {
            Some(count) => Some(format!("write `{} x {count} {{`", last_word(before))),
            None => {
                keyword(before).map(|word| format!("did you mean `{word}`?")).or_else(|| assign(rest, before))
            }
        },
        Some(_) if before.trim().is_empty() => Some("a text begins with `model NAME {`".to_owned()),
        Some(_) if wants(Rule::equals) || wants(Rule::assigned) => {
            keyword(before).map(|word| format!("did you mean `{word}`?"))
        }
        Some(_) | None => None,
    }
}

/// How a call is named in a key: `attn = none` for `norm[attn] = none`, and `norm1 = none` for `norm[1] = none`.
fn label(rest: &str, before: &str) -> Option<String> {
    let (label, after) = rest.strip_prefix('[')?.split_once(']')?;
    let key = last_key(before);
    if label.is_empty() || !label.chars().all(is_word) || key.is_empty() {
        return None;
    }
    let value = simple_value(after.trim_start()).unwrap_or("...");
    Some(match label.parse::<u64>() {
        Ok(_) => {
            format!("write `{key}{label} = {value}`: calls without a label have numbers after their word")
        }
        Err(_) => format!("write `{label} = {value}`: a call is named by its label alone"),
    })
}

/// How a setting whose key has dots is written with braces: `attention { heads = 3 }` for `attention.heads = 3`.
fn nested(rest: &str, before: &str) -> Option<String> {
    let (path, value) = rest.lines().next()?.split_once('=')?;
    let mut keys = vec![last_key(before)];
    keys.extend(path.trim().strip_prefix('.')?.split('.'));
    let is_key = |key: &&str| !key.is_empty() && key.chars().all(|c| is_word(c) || c == '-');
    let value = simple_value(&format!("={value}")).unwrap_or("...").to_owned();
    let closed = " }".repeat(keys.len().saturating_sub(1));
    keys.iter().all(is_key).then(|| format!("write `{} = {value}{closed}`", keys.join(" { ")))
}

/// The name of a shipped spec without its quotation marks.
fn quoted_name(rest: &str) -> Option<String> {
    let name: String =
        rest.chars().take_while(|c| is_word(*c) || matches!(c, '@' | '-' | '.' | '/')).collect();
    (name.len() > 1).then(|| format!("write `\"{name}\"`, in quotation marks"))
}

/// The file after `extends`, in its quotation marks, where it is written before the braces of a model.
fn extended<'t>(rest: &'t str, before: &str) -> Option<&'t str> {
    let after = rest.strip_prefix("extends").filter(|_| before.trim_start().starts_with("model"))?;
    let file = after.trim_start().trim_start_matches(['=', ':']).trim_start();
    let length = file.strip_prefix('"')?.find(['"', '\n'])?.checked_add(2)?;
    file.get(..length).filter(|file| file.ends_with('"'))
}

/// The words that mean the layers to which a map belongs.
const LAYERS: [&str; 3] = ["layers", "range", "ranges"];

/// Layers with a map of their own whose word or numbers are written in another way: `range 0..1 {`, `layers 0-1 {`.
fn layers_block(rest: &str, before: &str) -> Option<String> {
    let line = before.rsplit('\n').next()?;
    let (shown, _) = rest.lines().next()?.split_once('{')?;
    // The parser stops before the numbers or within them.
    let whole = format!("{line}{shown}");
    let entry = whole.rsplit(['{', ';', '}']).next()?.trim();
    let (word, numbers) = entry.split_once(char::is_whitespace)?;
    let meant = LAYERS.contains(&word) || suggest(word, &LAYERS).is_some();
    let numbers: Vec<&str> = numbers.split(',').map(str::trim).collect();
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let written = |text: &&str| match text.split_once('-') {
        Some(("", last)) if is_number(last) => Some("layers LAYER { ... }".to_owned()),
        // The end of a range is the first layer that is not in it.
        Some((first, last)) if is_number(first) && is_number(last) => {
            let end = last.parse::<u64>().ok()?.checked_add(1)?;
            Some(format!("layers {first}..{end} {{ ... }}"))
        }
        Some(_) => None,
        None => {
            let is_range = text.split_once("..").map_or(is_number(text), |(first, last)| {
                (first.is_empty() || is_number(first)) && (last.is_empty() || is_number(last))
            });
            is_range.then(|| format!("layers {text} {{ ... }}"))
        }
    };
    let all: Vec<String> = numbers.iter().map(written).collect::<Option<_>>()?;
    let counted =
        if all.iter().any(|one| one.contains("LAYER")) { "; layers are counted from 0" } else { "" };
    meant.then(|| format!("write `{}`{counted}", all.join("` and `")))
}

/// Layers in a map of all of them, as they are written in YAML: `ranges { 0..2 { ... } }`.
fn layers_within(rest: &str, before: &str) -> Option<String> {
    let key = last_key(before.trim_end().strip_suffix('{')?);
    let (range, _) = rest.lines().next()?.split_once('{')?;
    let range = range.trim();
    let is_range = range.contains("..") && range.chars().all(|c| c.is_ascii_digit() || c == '.');
    (LAYERS.contains(&key) && is_range)
        .then(|| format!("write `layers {range} {{ ... }}`, without `{key}` around it"))
}

/// A list whose brackets are missing, so that its last word was taken for a key: `pattern = local, global`, where the map or the
/// line ends.
fn list_without_brackets(rest: &str, before: &str) -> Option<String> {
    let whole = before.trim_end();
    let ends = rest.starts_with('}') || before.get(whole.len()..)?.contains('\n');
    let line = whole.rsplit(['\n', '{', ';']).next()?;
    let (key, values) = line.split_once('=').filter(|_| ends)?;
    let key = key.trim();
    let values: Vec<&str> = values.split(',').map(str::trim).collect();
    // After a number, the word is a key without its value.
    let is_one = |text: &&str| text.starts_with(char::is_alphabetic) && text.chars().all(is_word);
    let is_list = values.len() > 1 && is_one(&key) && values.iter().all(is_one);
    is_list.then(|| format!("write `{key} = [{}]`: a list has brackets", values.join(", ")))
}

/// The value after a sign, if it is on the same line and no map or list.
fn simple_value(rest: &str) -> Option<&str> {
    let after = rest.get(1..)?.lines().next()?;
    let end = after.find([',', ';', '}', ')', '{', '[', '(']).unwrap_or(after.len());
    let (value, next) = after.split_at_checked(end)?;
    let value = value.split(['#']).next()?.split("//").next()?.trim();
    // Several words are several settings, and the text of a comment is none.
    let is_one = !value.is_empty() && !value.contains(char::is_whitespace);
    // A quoted text may go on after what ends a value, and help has its texts in backticks.
    let is_plain = !value.contains(['"', '\'', '`']);
    (is_one && is_plain && !next.starts_with(['{', '[', '('])).then_some(value)
}

/// The fields in the parentheses with which a text begins, each with this sign between its key and its value. `None` if
/// anything there is no field with a value of one word.
fn listed_fields(rest: &str, sign: &str) -> Option<Vec<String>> {
    let inside = inside(rest)?;
    let written = |field: &str| {
        let (key, value) = field.split_once(['=', ':'])?;
        let (key, value) = (key.trim(), value.trim());
        let is_value =
            !value.is_empty() && !value.contains(|c: char| c.is_whitespace() || "{[(\"'`".contains(c));
        (!key.is_empty() && key.chars().all(is_word) && is_value).then(|| format!("{key}{sign}{value}"))
    };
    let fields: Vec<&str> = inside.split(',').map(str::trim).filter(|field| !field.is_empty()).collect();
    (!fields.is_empty()).then(|| fields.into_iter().map(written).collect())?
}

/// The setting that a key and a value without `=` between them are: `vocab 1000`.
fn assign(rest: &str, before: &str) -> Option<String> {
    let key = before.rsplit(['\n', '{', ';', ',']).next()?.trim();
    let value: String = rest.chars().take_while(|c| is_word(*c) || matches!(c, '.' | '-' | '"')).collect();
    let is_setting = !key.is_empty() && key.chars().all(is_word) && !value.is_empty() && before.contains('{');
    is_setting.then(|| format!("write `{key} = {value}`"))
}

/// Whether the last line of a text so far is `key = word`.
fn follows_value(before: &str) -> bool {
    let line = before.rsplit('\n').next().unwrap_or_default();
    line.rsplit_once('=').is_some_and(|(_, value)| {
        let value = value.trim();
        !value.is_empty() && value.chars().all(is_word)
    })
}

/// The words that begin an entry other than `key = value`.
const KEYWORDS: [&str; 3] = ["block", "part", "layers"];

/// The word of the grammar for which the last word of a text was probably meant, where it was taken for a key.
fn keyword(before: &str) -> Option<String> {
    suggest(last_word(before), &KEYWORDS)
}
