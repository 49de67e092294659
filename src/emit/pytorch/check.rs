//! Checks the text of a file as Python's tokenizer would, before it is written: strings end, brackets match,
//! lines are indented in whole steps, and nothing but a name, a number or a sign is outside of strings and
//! comments.
//!
//! Python may not be installed where trafoc runs, so it cannot be asked. This finds what a fault in printing
//! or an author's text could break; `tests/pytorch` also gives the files to Python, ruff and pyright.

/// Reads a file token by token.
///
/// # Errors
/// The first line that Python could not read, and why.
pub fn check(text: &str) -> Result<(), String> {
    let mut reader = Reader { rest: text, line: 1, open: Vec::new(), indents: vec![0], opens_block: false };
    reader.run().map_err(|why| format!("line {}: {why}", reader.line))
}

struct Reader<'a> {
    rest: &'a str,
    line: usize,
    /// Brackets that are open, the innermost last.
    open: Vec<char>,
    /// The indentation of the blocks around the line, the innermost last.
    indents: Vec<usize>,
    /// Whether the last line ended in a colon, so that the next must be indented.
    opens_block: bool,
}

impl Reader<'_> {
    fn run(&mut self) -> Result<(), String> {
        while !self.rest.is_empty() {
            self.indentation()?;
            self.logical_line()?;
        }
        if let Some(bracket) = self.open.last() {
            return Err(format!("`{bracket}` is not closed"));
        }
        if self.opens_block {
            return Err("the file ends where a block begins".to_owned());
        }
        Ok(())
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn skip(&mut self, c: char) {
        if c == '\n' {
            self.line += 1;
        }
        self.rest = self.rest.get(c.len_utf8()..).unwrap_or_default();
    }

    /// The indentation of a line that has anything on it.
    fn indentation(&mut self) -> Result<(), String> {
        let trimmed = self.rest.trim_start_matches(' ');
        let width = self.rest.len() - trimmed.len();
        // Python ignores how lines without code are indented.
        if trimmed.is_empty() || trimmed.starts_with(['\n', '#']) {
            return Ok(());
        }
        let current = self.indents.last().copied().unwrap_or(0);
        match (self.opens_block, width.cmp(&current)) {
            (true, std::cmp::Ordering::Greater) => self.indents.push(width),
            (true, _) => return Err("a block is not indented".to_owned()),
            (false, std::cmp::Ordering::Greater) => {
                return Err("a line is indented without a block".to_owned());
            }
            (false, _) => {
                // One line may end several blocks.
                self.indents.retain(|indent| *indent <= width);
                if self.indents.last() != Some(&width) {
                    return Err("a line is indented like no block around it".to_owned());
                }
            }
        }
        self.opens_block = false;
        Ok(())
    }

    /// Tokens up to the end of a line outside of brackets.
    fn logical_line(&mut self) -> Result<(), String> {
        let mut last = None;
        let mut has_token = false;
        while let Some(c) = self.peek() {
            match c {
                '\n' if self.open.is_empty() => {
                    self.skip(c);
                    break;
                }
                // Between brackets Python takes the end of a line for a space.
                '\n' | ' ' => self.skip(c),
                '#' => self.comment()?,
                // What is printed has double quotes only, so a single one belongs to a text that is outside
                // of its string.
                '"' => {
                    self.string()?;
                    (last, has_token) = (Some(c), true);
                }
                '(' | '[' | '{' => {
                    self.open.push(c);
                    self.skip(c);
                    (last, has_token) = (Some(c), true);
                }
                ')' | ']' | '}' => {
                    let matching = match c {
                        ')' => '(',
                        ']' => '[',
                        _ => '{',
                    };
                    if self.open.pop() != Some(matching) {
                        return Err(format!("`{c}` closes no bracket"));
                    }
                    self.skip(c);
                    (last, has_token) = (Some(c), true);
                }
                // Names are ASCII, although Python allows letters of other scripts: such a letter here comes
                // from an author's text that is outside of a string.
                c if c.is_ascii_alphanumeric() || "_.,:;=+-*/%<>!&|^@~".contains(c) => {
                    self.skip(c);
                    (last, has_token) = (Some(c), true);
                }
                other => {
                    return Err(format!("`{}` is outside of strings and comments", other.escape_default()));
                }
            }
        }
        // A comment between a colon and its block changes nothing.
        if has_token {
            self.opens_block = last == Some(':');
        }
        Ok(())
    }

    fn comment(&mut self) -> Result<(), String> {
        let end = self.rest.find('\n').unwrap_or(self.rest.len());
        let (comment, rest) = self.rest.split_at(end);
        self.rest = rest;
        // Python ends a line, and with it the comment, at a carriage return too.
        match comment.chars().find(|c| c.is_control()) {
            Some(c) => Err(format!("`{}` is in a comment", c.escape_default())),
            None => Ok(()),
        }
    }

    /// A string in double quotes, single or triple.
    fn string(&mut self) -> Result<(), String> {
        let start = self.line;
        let is_long = self.rest.starts_with("\"\"\"");
        let end = if is_long { "\"\"\"" } else { "\"" };
        self.rest = self.rest.get(end.len()..).unwrap_or_default();
        while let Some(c) = self.peek() {
            if self.rest.starts_with(end) {
                self.rest = self.rest.get(end.len()..).unwrap_or_default();
                return Ok(());
            }
            if c == '\n' && !is_long {
                return Err("a string does not end on its line".to_owned());
            }
            if c.is_control() && c != '\n' {
                return Err(format!("`{}` is in a string", c.escape_default()));
            }
            self.skip(c);
            // What follows a backslash has lost its meaning, so an escaped quotation mark ends nothing.
            if c == '\\'
                && let Some(escaped) = self.peek()
            {
                self.skip(escaped);
            }
        }
        Err(format!("the string that begins in line {start} does not end"))
    }
}
