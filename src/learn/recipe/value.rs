//! Types of values that occur only in recipes: paths of files, patterns of parameter paths, numbers by
//! path.

use std::ops::Deref;
use std::path::{Path, PathBuf};

use crate::diag::{Code, Diagnostic};
use crate::field::record::entry;
use crate::field::value::{Shape, plain, wrong_kind};
use crate::field::{Context, NotNegative, Positive, Share, Value};
use crate::source::{SourceMap, Span};
use crate::syntax::tree::{Kind, Node};

/// The path of a file or folder, and where the recipe names it.
#[derive(Clone, Debug)]
pub struct Location {
    /// The path as it is written.
    pub text: String,
    /// The place in the recipe.
    pub span: Span,
}

// Two recipes that say the same are equal, wherever in their files they say it.
impl PartialEq for Location {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Location {
    /// The path as the program opens it: relative to the folder of the recipe that names it, or to the
    /// working folder where it was given on the command line. What begins with `@` comes with trafoc.
    pub fn path(&self, sources: &SourceMap) -> PathBuf {
        let name = sources.get(self.span.source).map_or("", |s| s.name.as_str());
        // Data that comes with trafoc is the same wherever the recipe is.
        if self.text.starts_with('@') {
            return PathBuf::from(&self.text);
        }
        // A recipe that comes with trafoc names files of the repository's folder `data`. Those directly in
        // it come with trafoc; those in its subfolders are the user's own copies.
        if name.starts_with('@')
            && let Some(within) = self.text.strip_prefix("../../")
        {
            return match within.strip_prefix("data/").filter(|file| !file.contains('/')) {
                Some(file) => PathBuf::from(format!("@{file}")),
                None => PathBuf::from(within),
            };
        }
        match Path::new(name).parent() {
            // Recipes that were given on the command line or through a pipe have no folder.
            Some(folder) if !name.starts_with("--") && !name.starts_with('<') && !name.starts_with('@') => {
                folder.join(&self.text)
            }
            Some(_) | None => PathBuf::from(&self.text),
        }
    }
}

impl Value for Location {
    fn decode(node: &Node, cx: &mut Context<'_>) -> Option<Self> {
        String::decode(node, cx).map(|text| Self { text, span: node.span })
    }
    fn encode(&self) -> Node {
        plain(self.text.clone())
    }
    fn describe() -> Shape {
        Shape::Text
    }
}

/// One path, or a list of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Locations(pub Vec<Location>);

impl Value for Locations {
    fn decode(node: &Node, cx: &mut Context<'_>) -> Option<Self> {
        match &node.kind {
            // An empty list would be data without a file.
            Kind::List(items) if !items.is_empty() => Vec::decode(node, cx).map(Self),
            Kind::List(_) | Kind::Map(_) | Kind::Null | Kind::Delete => {
                wrong_kind(node, "a path or a list of paths", cx);
                None
            }
            Kind::Scalar(_) => Location::decode(node, cx).map(|path| Self(vec![path])),
        }
    }
    fn encode(&self) -> Node {
        match self.0.as_slice() {
            // In the shorter form in which most recipes are written.
            [only] => only.encode(),
            all => Node { kind: Kind::List(all.iter().map(Value::encode).collect()), span: Span::default() },
        }
    }
    fn describe() -> Shape {
        Shape::Texts
    }
}

/// A pattern of parameter paths, in which `*` matches any text.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// The pattern as it is written.
    pub text: String,
    /// The place in the recipe.
    pub span: Span,
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Value for Pattern {
    fn decode(node: &Node, cx: &mut Context<'_>) -> Option<Self> {
        String::decode(node, cx).map(|text| Self { text, span: node.span })
    }
    fn encode(&self) -> Node {
        plain(self.text.clone())
    }
    fn describe() -> Shape {
        Shape::Text
    }
}

/// A list of patterns of parameter paths, whose order does not matter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Patterns(pub Vec<Pattern>);

impl Patterns {
    /// Whether one of them matches the whole path.
    pub fn matches(&self, path: &str) -> bool {
        self.0.iter().any(|p| crate::parts::pattern::matches(&p.text, path))
    }
}

impl Value for Patterns {
    fn decode(node: &Node, cx: &mut Context<'_>) -> Option<Self> {
        Vec::decode(node, cx).map(Self)
    }
    fn encode(&self) -> Node {
        self.0.encode()
    }
    fn describe() -> Shape {
        Shape::List(Pattern::describe, None)
    }
}

/// Numbers by parameter path; the last pattern that matches applies.
#[derive(Clone, Debug, PartialEq)]
pub struct ByPath<T>(pub Vec<(Pattern, T)>);

/// Weight decay by parameter path.
pub type Decay = ByPath<NotNegative>;

/// Learning rates by parameter path.
pub type Rates = ByPath<Positive>;

impl<T> Default for ByPath<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Deref<Target = f64>> ByPath<T> {
    /// The number of a parameter; `otherwise` is the optimizer's own, which applies if no pattern matches.
    pub fn of(&self, path: &str, otherwise: f64) -> f64 {
        let mut hits = self.0.iter().filter(|(p, _)| crate::parts::pattern::matches(&p.text, path));
        // The last one, so that a general pattern is followed by its exceptions, as in ignore files of git.
        hits.next_back().map_or(otherwise, |(_, number)| **number)
    }
}

impl<T> ByPath<T> {
    /// The patterns, in the order in which they apply.
    pub fn patterns(&self) -> impl Iterator<Item = &Pattern> {
        self.0.iter().map(|(pattern, _)| pattern)
    }
}

impl<T: Value> Value for ByPath<T> {
    fn decode(node: &Node, cx: &mut Context<'_>) -> Option<Self> {
        let Some(entries) = node.entries() else {
            wrong_kind(node, "a map from path patterns to numbers", cx);
            return None;
        };
        // All entries are decoded before the first wrong one ends it, so that each wrong number is reported.
        let rules: Vec<Option<(Pattern, T)>> = entries
            .iter()
            .map(|e| {
                let pattern = Pattern { text: e.key.clone(), span: e.key_span };
                // A rate of 0 trains nothing, which has a key of its own.
                if let (Shape::Number(range), Some(0.0)) =
                    (T::describe(), e.value.text().and_then(|text| text.parse::<f64>().ok()))
                    && range.least > 0.0
                {
                    let message = format!("0 is not {}", range.words);
                    let help = format!("write `freeze: [{:?}]` for parameters that are not trained", e.key);
                    cx.report(Diagnostic::error(Code::OutOfRange, e.value.span, message).help(help));
                    return None;
                }
                T::decode(&e.value, cx).map(|number| (pattern, number))
            })
            .collect();
        rules.into_iter().collect::<Option<_>>().map(Self)
    }
    fn encode(&self) -> Node {
        let entries = self.0.iter().map(|(p, number)| entry(&p.text, number.encode())).collect();
        Node::map(entries, Span::default())
    }
    fn describe() -> Shape {
        Shape::Map(T::describe)
    }
}

/// Adam's decay rates of the running mean and of the running square.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Betas(pub f64, pub f64);

impl Value for Betas {
    fn decode(node: &Node, cx: &mut Context<'_>) -> Option<Self> {
        match &node.kind {
            // Each is a share below 1: with 1 a running mean would never take in a gradient.
            Kind::List(items) if items.len() == 2 => {
                let all: Vec<Share> = Vec::decode(node, cx)?;
                let mut all = all.iter();
                Some(Self(**all.next()?, **all.next()?))
            }
            Kind::List(_) | Kind::Map(_) | Kind::Null | Kind::Scalar(_) | Kind::Delete => {
                wrong_kind(node, "a list of two numbers, such as `[0.9, 0.999]`", cx);
                None
            }
        }
    }
    fn encode(&self) -> Node {
        vec![Share(self.0), Share(self.1)].encode()
    }
    fn describe() -> Shape {
        Shape::List(Share::describe, None)
    }
}
