//! Names of tensors and paths of parameters with variables for whole numbers.

/// A name with variables for whole numbers: `h.{i}.attn`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Variable(String),
}

/// The values of the variables of a pattern.
pub type Bindings = Vec<(String, usize)>;

impl Piece {
    fn variable(&self) -> Option<&str> {
        match self {
            Piece::Variable(name) => Some(name),
            Piece::Text(_) => None,
        }
    }
}

impl std::fmt::Display for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.pieces.iter().try_for_each(|piece| match piece {
            Piece::Text(text) => f.write_str(text),
            Piece::Variable(name) => write!(f, "{{{name}}}"),
        })
    }
}

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// A brace is not closed, or there is no name in it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let (name, left) = after.split_once('}').ok_or(format!("a brace of `{text}` is not closed"))?;
            // Letters alone, so that a brace with anything else is seen as a mistake and not as a name.
            if name.is_empty() || !name.chars().all(|c| c.is_ascii_lowercase()) {
                return Err(format!("`{{{name}}}` is not a variable; write `{{i}}`"));
            }
            pieces.push(Piece::Text(before.to_owned()));
            pieces.push(Piece::Variable(name.to_owned()));
            rest = left;
        }
        pieces.push(Piece::Text(rest.to_owned()));
        Ok(Self { pieces })
    }

    /// The name with the given values for the variables.
    pub fn fill(&self, bindings: &Bindings) -> String {
        let piece = |piece: &Piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Variable(name) => bindings
                .iter()
                .find(|(n, _)| n == name)
                // A variable without a value stays, as in messages about all tensors of a row.
                .map_or_else(|| format!("{{{name}}}"), |(_, value)| value.to_string()),
        };
        self.pieces.iter().map(piece).collect()
    }

    /// Matches the beginning of a name: the values of the variables, and the rest of the name.
    pub fn begins<'n>(&self, name: &'n str) -> Option<(Bindings, &'n str)> {
        let mut bindings = Bindings::new();
        let mut rest = name;
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => rest = rest.strip_prefix(text.as_str())?,
                Piece::Variable(variable) => {
                    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
                    let (digits, left) = rest.split_at_checked(end)?;
                    // `01` is another name than `1`.
                    let value: usize = digits.parse().ok().filter(|n: &usize| n.to_string() == digits)?;
                    match bindings.iter().find(|(n, _)| n == variable) {
                        // A variable that occurs twice has one value.
                        Some((_, known)) if *known != value => return None,
                        Some(_) => {}
                        None => bindings.push((variable.clone(), value)),
                    }
                    rest = left;
                }
            }
        }
        Some((bindings, rest))
    }

    /// Matches a name, or a name without its last word: the values of the variables, and what follows, which
    /// is `.weight`, `.bias` or nothing.
    pub fn matches<'n>(&self, name: &'n str) -> Option<(Bindings, &'n str)> {
        let (bindings, rest) = self.begins(name)?;
        matches!(rest, "" | ".weight" | ".bias").then_some((bindings, rest))
    }

    /// The names of the variables, in order.
    pub fn variables(&self) -> Vec<&str> {
        self.pieces.iter().filter_map(Piece::variable).collect()
    }

    /// [`Self::matches`] for a path with `*` in place of its numbers.
    pub fn fits(&self, folded: &str) -> bool {
        let mut rest = folded;
        for (i, piece) in self.pieces.iter().enumerate() {
            // In a folded path a variable's number is `*`.
            let left = match piece {
                Piece::Variable(_) => rest.strip_prefix('*'),
                Piece::Text(text) => after(text, rest, i == 0),
            };
            match left {
                Some(left) => rest = left,
                None => return false,
            }
        }
        matches!(rest, "" | ".weight" | ".bias")
    }

    /// The pattern with the variables replaced that have a value; the others remain.
    pub fn bound(&self, bindings: &Bindings) -> Self {
        let piece = |piece: &Piece| match piece {
            Piece::Variable(name) => match bindings.iter().find(|(n, _)| n == name) {
                Some((_, value)) => Piece::Text(value.to_string()),
                None => piece.clone(),
            },
            Piece::Text(_) => piece.clone(),
        };
        Self { pieces: self.pieces.iter().map(piece).collect() }
    }

    /// The pattern of a path with `*` in place of its numbers, which become the variables `a`, `b` and so on.
    pub fn of_folded(folded: &str) -> Self {
        let mut texts = folded.split('*');
        let mut pieces = vec![Piece::Text(texts.next().unwrap_or_default().to_owned())];
        // A path has far fewer numbers than there are letters.
        for (text, name) in texts.zip('a'..='z') {
            pieces.extend([Piece::Variable(name.to_string()), Piece::Text(text.to_owned())]);
        }
        Self { pieces }
    }

    /// The pattern followed by a text, such as `.weight`.
    pub fn followed(mut self, last: &str) -> Self {
        self.pieces.push(Piece::Text(last.to_owned()));
        self
    }

    /// The rest of the pattern after a prefix; `None` if it does not begin with it.
    pub fn without(&self, prefix: &str) -> Option<Self> {
        let (first, rest) = self.pieces.split_first()?;
        // Patterns begin with a text, which may be empty.
        let Piece::Text(text) = first else { return None };
        let text = text.strip_prefix(prefix)?;
        let mut pieces = vec![Piece::Text(text.to_owned())];
        pieces.extend(rest.iter().cloned());
        Some(Self { pieces })
    }

    /// The pattern with a prefix before it.
    pub fn with_prefix(&self, prefix: &str) -> Self {
        let mut pieces = vec![Piece::Text(prefix.to_owned())];
        pieces.extend(self.pieces.iter().cloned());
        Self { pieces }
    }
}

/// The rest of `path` after `text`, if it begins with it. A number in `text` may be `*` in the path.
fn after<'p>(text: &str, path: &'p str, is_first: bool) -> Option<&'p str> {
    let mut rest = path;
    for (i, word) in text.split('.').enumerate() {
        if i > 0 {
            rest = rest.strip_prefix('.')?;
        }
        // Digits right after a variable belong to its word.
        let is_number = !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit()) && (i > 0 || is_first);
        rest = rest.strip_prefix(word).or_else(|| rest.strip_prefix('*').filter(|_| is_number))?;
    }
    Some(rest)
}
