//! The whole spec.

use super::stack::{self, Stack, Surroundings};
use super::wiring;
use crate::diag::{Code, Diagnostic};
use crate::field::record::{Reader, entry, listed};
use crate::field::value::{DefaultDoc, Field, Shape, Value, plain};
use crate::field::{Context, Places, Size};

use crate::parts::{Embed, Head, Init, Norm, Position, init};
use crate::source::Span;
use crate::syntax::expr::{self, Scope};
use crate::syntax::tree::{Entry, Node};

/// The version of the language this compiler reads.
pub const VERSION: u64 = 1;

/// A decoded spec. Equal specs are the same model.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelSpec {
    /// Its name.
    pub name: String,
    /// Words the embedding knows; absent for images.
    pub vocab: Option<u64>,
    /// Words of the source, where they are not those of the target.
    pub source_vocab: Option<u64>,
    /// The longest sequence; absent for images.
    pub context: Option<u64>,
    /// Width of the residual stream.
    pub d_model: u64,
    /// The encoder.
    pub encoder: Option<Stack>,
    /// The decoder.
    pub decoder: Option<Stack>,
    /// What the model is for.
    pub head: Head,
    /// How parameters start.
    pub init: Init,
    /// Where its fields stand.
    pub places: Places,
}

/// The fields of a spec.
pub fn fields() -> Vec<Field> {
    fn field(name: &'static str, doc: &'static str, shape: fn() -> Shape, default: DefaultDoc) -> Field {
        Field { name, doc, shape, default }
    }
    fn stack_shape() -> Shape {
        Shape::Record("stack", stack::fields)
    }
    fn any() -> Shape {
        Shape::Any
    }
    vec![
        field("trafo", "Version of the language.", Size::describe, DefaultDoc::Value(|| plain("1"))),
        field(
            "name",
            "The model's name; the emitted file and type are called after it.",
            String::describe,
            DefaultDoc::Required,
        ),
        field(
            "extends",
            "Another spec this one is laid over; `!delete` takes a key away.",
            String::describe,
            DefaultDoc::Absent,
        ),
        field(
            "let",
            "Names for numbers, for expressions and equations.",
            || Shape::Map(Size::describe),
            DefaultDoc::Absent,
        ),
        field(
            "vocab",
            "How many words the embedding knows. Needed unless the input is an image.",
            Size::describe,
            DefaultDoc::Absent,
        ),
        field(
            "source_vocab",
            "Words of an encoder-decoder's source, where they are not the target's.",
            Size::describe,
            DefaultDoc::Absent,
        ),
        field(
            "context",
            "The longest sequence. Needed unless the input is an image.",
            Size::describe,
            DefaultDoc::Absent,
        ),
        field("d_model", "Width of the residual stream.", Size::describe, DefaultDoc::Required),
        field("embed", "From tokens or an image to vectors.", Embed::describe, DefaultDoc::Absent),
        field(
            "norm",
            "What `norm(x)` and the final norms are, unless a stack says otherwise.",
            Norm::describe,
            DefaultDoc::Value(|| plain("layer_norm")),
        ),
        field("encoder", "A stack whose positions see each other.", stack_shape, DefaultDoc::Absent),
        field(
            "decoder",
            "A stack whose positions see what came before, and the encoder if there is one.",
            stack_shape,
            DefaultDoc::Absent,
        ),
        field("head", "What the model is for.", Head::describe, DefaultDoc::Required),
        field("init", "How parameters start.", Init::describe, DefaultDoc::Value(|| plain("normal"))),
        field("sweep", "Variants of this spec, by name or as a grid.", any, DefaultDoc::Absent),
    ]
}

/// `let` entries whose names are not all known yet.
#[derive(Debug, Default)]
pub struct Lets {
    waiting: Vec<Entry>,
    resolved: Vec<Entry>,
}

impl Lets {
    fn new(node: Option<&Node>, cx: &mut Context<'_>) -> Self {
        let Some(node) = node else { return Self::default() };
        let Some(entries) = node.entries() else {
            crate::field::value::wrong_kind(node, "a map from names to numbers", cx);
            return Self::default();
        };
        Self { waiting: entries.to_vec(), resolved: Vec::new() }
    }

    /// Makes every entry known whose expression can be evaluated by now.
    pub fn resolve(&mut self, cx: &mut Context<'_>) {
        // Stacks forget what was bound in them, so what waited is tried again in the next one.
        loop {
            let ready = self.waiting.iter().position(|e| {
                let parsed = expr::parse(cx.sources(), &e.value);
                parsed.map_or(true, |x| x.names().iter().all(|(n, _)| cx.lookup(n).is_some()))
            });
            let Some(ready) = ready else { return };
            let e = self.waiting.remove(ready);
            match expr::parse(cx.sources(), &e.value).and_then(|x| expr::eval(&x, cx)) {
                Ok(number) => cx.bind(&e.key, number, Some(e.value.span)),
                Err(diagnostic) => cx.report(diagnostic),
            }
            self.resolved.push(e);
        }
    }

    /// Entries still waiting are put back after a stack that could resolve them.
    fn again(&mut self, outer: usize) {
        let later = self.resolved.split_off(outer.min(self.resolved.len()));
        self.waiting.extend(later);
    }

    fn report(&self, ever: &[Entry], cx: &mut Context<'_>) {
        for e in self.waiting.iter().filter(|e| !ever.iter().any(|r| r.key == e.key)) {
            let names: Vec<String> = expr::parse(cx.sources(), &e.value)
                .map(|x| x.names().into_iter().map(|(n, _)| n.to_owned()).collect())
                .unwrap_or_default();
            let among = self.waiting.iter().find(|o| names.contains(&o.key));
            match among {
                Some(other) => {
                    let message = format!("`{}` and `{}` need each other's value", e.key, other.key);
                    cx.report(
                        Diagnostic::error(Code::LetCycle, e.value.span, message)
                            .label(other.value.span, "the other one")
                            .help("give one of them as a number"),
                    );
                }
                None => {
                    if let Err(diagnostic) =
                        expr::parse(cx.sources(), &e.value).and_then(|x| expr::eval(&x, cx))
                    {
                        cx.report(diagnostic);
                    }
                }
            }
        }
    }
}

impl ModelSpec {
    /// Decodes a merged tree. Everything that is wrong is reported; `None` if anything is.
    pub fn decode(node: &Node, cx: &mut Context<'_>) -> Option<Self> {
        let wirings = {
            let sources = cx.sources();
            wiring::prelude(sources, cx.sink())
        };
        let fields = fields();
        let mut reader = Reader::open(node, "spec", &fields, cx)?;
        let mut lets = Lets::new(node.get("let"), cx);
        lets.resolve(cx);
        let version: Option<Size> = reader.or_value("trafo", Size(VERSION), cx);
        if let Some(version) = version.filter(|v| **v != VERSION) {
            let message =
                format!("this is version {} of the language; trafoc reads version {VERSION}", *version);
            let diagnostic = Diagnostic::error(Code::UnknownVersion, reader.place("trafo"), message);
            cx.report(diagnostic.help(format!("write `trafo: {VERSION}`")));
        }
        let name: Option<String> = reader.required("name", cx);
        let vocab: Option<Option<Size>> = reader.or_value("vocab", None, cx);
        let source_vocab: Option<Option<Size>> = reader.or_value("source_vocab", None, cx);
        let context: Option<Option<Size>> = reader.or_value("context", None, cx);
        let d_model: Option<Size> = reader.required("d_model", cx);
        lets.resolve(cx);
        let outer = lets.resolved.len();
        let mut ever = Vec::new();
        let mut uses_norm = false;
        let mut stack = |key: &'static str, has_memory: bool, lets: &mut Lets, cx: &mut Context<'_>| {
            let Some(stack_node) = node.get(key) else { return Some(None) };
            let around = Surroundings {
                name: key,
                embed: node.get("embed"),
                norm: node.get("norm"),
                has_memory,
                lets,
                wirings: &wirings,
                uses_norm: &mut uses_norm,
            };
            let stack = stack::decode(stack_node, around, cx);
            ever.extend(lets.resolved.iter().cloned());
            lets.again(outer);
            stack.map(Some)
        };
        let encoder = stack("encoder", false, &mut lets, cx);
        let decoder = stack("decoder", node.get("encoder").is_some(), &mut lets, cx);
        lets.report(&ever, cx);
        let head: Option<Head> = reader.required("head", cx);
        let init = reader.or_value("init", Init::default(), cx);
        if node.get("encoder").is_none() && node.get("decoder").is_none() {
            let message = "the spec has neither an encoder nor a decoder";
            cx.report(
                Diagnostic::error(Code::MissingKey, node.span, message)
                    .help("add `decoder: {layers: 12, attention: {heads: 12}}`, or `encoder:`"),
            );
        }
        if let Some(e) = node.get("sweep") {
            super::sweep::check(e, cx);
        }
        let places = reader.close(cx);
        let spec = Self {
            name: name?,
            vocab: vocab?.map(|v| *v),
            source_vocab: source_vocab?.map(|v| *v),
            context: context?.map(|c| *c),
            d_model: *d_model?,
            encoder: encoder?,
            decoder: decoder?,
            head: head?,
            init: init?,
            places,
        };
        spec.check(node, uses_norm, cx);
        Some(spec)
    }

    /// The stack the head reads.
    pub fn last_stack(&self) -> Option<&Stack> {
        self.decoder.as_ref().or(self.encoder.as_ref())
    }

    /// Rules between fields of different parts.
    fn check(&self, node: &Node, uses_norm: bool, cx: &mut Context<'_>) {
        let both = self.encoder.is_some() && self.decoder.is_some();
        let stacks = || self.encoder.iter().chain(&self.decoder);
        let reads_tokens = stacks().any(|s| s.embed.patches.is_none());
        let here = self.places.whole();
        for (name, is_there) in [("vocab", self.vocab.is_some()), ("context", self.context.is_some())] {
            if reads_tokens && !is_there {
                let message = format!("`spec` needs `{name}`");
                cx.report(
                    Diagnostic::error(Code::MissingKey, here, message)
                        .help(format!("add `{name}: ...`, a whole number")),
                );
            }
            if !reads_tokens && is_there && !(name == "vocab" && self.head.needs_vocab()) {
                let message = format!("the input is an image, and `{name}` would do nothing");
                cx.report(
                    Diagnostic::error(Code::UnusedKey, self.places.of(name), message).help("take it away"),
                );
            }
        }
        self.check_head(both, reads_tokens, cx);
        if !both {
            for (key, given) in [("source_vocab", self.source_vocab.is_some())] {
                if given {
                    let message = format!("`{key}` is for an encoder beside a decoder");
                    cx.report(
                        Diagnostic::error(Code::UnusedKey, self.places.of(key), message).help("use `vocab`"),
                    );
                }
            }
        }
        for stack in stacks() {
            self.check_stack(stack, both, cx);
        }
        if let Some(e) = node.entry("norm").filter(|_| !uses_norm) {
            let message = "no block calls `norm` and no final norm is the model's";
            cx.report(Diagnostic::error(Code::UnusedKey, e.key_span, message).help("take it away"));
        }
    }

    fn check_head(&self, both: bool, reads_tokens: bool, cx: &mut Context<'_>) {
        let head = &self.head;
        let place = head.places().whole();
        let wrong = |message: &str, help: &str| Some((message.to_owned(), help.to_owned()));
        let fault = match head {
            Head::Lm(_) if self.decoder.is_none() => wrong(
                "`lm` predicts next tokens, and an encoder sees them all",
                "`mlm` is the head for an encoder",
            ),
            Head::Lm(_) if both => {
                wrong("`lm` is for a decoder alone", "`translate` is the head for an encoder-decoder")
            }
            Head::Translate(_) if !both => {
                wrong("`translate` needs an encoder and a decoder", "`lm` is the head for a decoder alone")
            }
            Head::Mlm(_) if self.decoder.is_some() => wrong(
                "`mlm` fills in hidden tokens, and a decoder does not see what follows",
                "`lm` is the head for a decoder",
            ),
            Head::Span(_) if self.decoder.is_some() => wrong(
                "`span` reads the whole text, and a decoder does not see what follows",
                "`span` is a head for an encoder",
            ),
            Head::Lm(_) | Head::Translate(_) | Head::Mlm(_) | Head::Tag(_) | Head::Span(_)
                if !reads_tokens =>
            {
                wrong(
                    "this head needs tokens, and the input is an image",
                    "`classify` or `embed` fit an image",
                )
            }
            Head::Lm(_)
            | Head::Translate(_)
            | Head::Mlm(_)
            | Head::Span(_)
            | Head::Tag(_)
            | Head::Classify(_)
            | Head::Embed(_) => None,
        };
        if let Some((message, help)) = fault {
            cx.report(Diagnostic::error(Code::HeadMismatch, place, message).help(help));
        }
    }

    fn check_stack(&self, stack: &Stack, both: bool, cx: &mut Context<'_>) {
        let embed = &stack.embed;
        if embed.shared && !both {
            let message = "`shared` ties the source's table to the target's, and there is only one";
            cx.report(
                Diagnostic::error(Code::UnusedKey, embed.places.of("shared"), message).help("take it away"),
            );
        }
        if embed.shared && self.source_vocab.is_some() && self.source_vocab != self.vocab {
            let message = "a shared table has one vocabulary, and source and target have two";
            cx.report(
                Diagnostic::error(Code::KeysExclude, embed.places.of("shared"), message)
                    .label(self.places.of("source_vocab"), "the source's")
                    .label(self.places.of("vocab"), "the target's"),
            );
        }
        if embed.patches.is_some() {
            let useless = [("segments", embed.segments.is_some()), ("padding", embed.padding.is_some())];
            for (key, given) in useless {
                if given {
                    let message = format!("`{key}` is about tokens, and the input is an image");
                    cx.report(
                        Diagnostic::error(Code::UnusedKey, embed.places.of(key), message)
                            .help("take it away"),
                    );
                }
            }
        }
        if let (Some(padding), Some(vocab)) = (embed.padding, self.vocab)
            && *padding >= vocab
        {
            let message = format!("the padding row {} is not in a table of {vocab}", *padding);
            cx.report(
                Diagnostic::error(Code::OutOfRange, embed.places.of("padding"), message)
                    .label(self.places.of("vocab"), format!("vocab is {vocab} here")),
            );
        }
        if embed.dim.is_none() && embed.places.has("widen") {
            let message = "`widen` says where a narrower table is widened, and it is not narrower";
            cx.report(
                Diagnostic::error(Code::UnusedKey, embed.places.of("widen"), message)
                    .help("give `dim`, or take it away"),
            );
        }
        for block in &stack.blocks {
            let on_embedding = matches!(block.position, Position::Learned(_) | Position::Sinusoidal(_));
            if on_embedding && block.position != embed.position {
                let message =
                    format!("`{}` positions are added to embeddings, not in a block", block.position.part());
                let names: Vec<&str> = vec!["rotary", "alibi", "t5", "none"];
                cx.report(
                    Diagnostic::error(Code::WrongPlace, block.position.places().whole(), message)
                        .help(format!("a block can have {}; put this one under `embed`", listed(&names))),
                );
            }
        }
    }

    /// The spec written out, every default in its place. Decodes to an equal spec.
    pub fn encode(&self) -> Node {
        let number = |n: u64| plain(n.to_string());
        let mut entries = vec![entry("trafo", number(VERSION)), entry("name", plain(self.name.clone()))];
        let optional =
            [("vocab", self.vocab), ("source_vocab", self.source_vocab), ("context", self.context)];
        entries.extend(optional.iter().filter_map(|(key, n)| n.map(|n| entry(key, number(n)))));
        entries.push(entry("d_model", number(self.d_model)));
        let stacks = [("encoder", &self.encoder), ("decoder", &self.decoder)];
        entries.extend(stacks.iter().filter_map(|(key, s)| s.as_ref().map(|s| entry(key, s.encode()))));
        entries.push(entry("head", self.head.encode()));
        entries.push(entry("init", self.init.encode()));
        Node::map(entries, Span::default())
    }
}

impl Default for Init {
    fn default() -> Self {
        Self(init::InitFields::usual())
    }
}
