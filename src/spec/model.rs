//! Decodes a whole spec, and checks what concerns more than one of its parts.

use std::sync::Arc;

use super::idle;
use super::kind::PartKind;
use super::lets::Lets;
use super::library;
use super::stack::{self, Stack, Surroundings};
use super::unused;
use super::used::Used;
use super::version;
use super::weights::Weights;
use super::wiring;
use crate::diag::count::counted;
use crate::diag::{Code, Diagnostic};
use crate::field::definition::Definitions;
use crate::field::mend::{mended, mended_deep};
use crate::field::record::{Reader, entry};
use crate::field::seek::STACKS;
use crate::field::value::{DefaultDoc, Field, Shape, Value, plain};
use crate::field::{Context, Count, Places, Real, Size};
use crate::ir::ModelKind;
use crate::parts::head::pool::Pool;
use crate::parts::head::{Classify, EmbedHead};
use crate::parts::{Embed, Head, Init, StackNorm, init, own};
use crate::source::Span;
use crate::syntax::set;
use crate::syntax::tree::{Entry, Kind, Node};

/// The version of the language that this compiler reads.
pub const VERSION: u64 = version::SPEC;

/// A decoded spec. Equal specs describe the same model.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelSpec {
    /// The name, after which the emitted file and type are called.
    pub name: String,
    /// The number of tokens in the vocabulary; absent for images.
    pub vocab: Option<u64>,
    /// The number of tokens in the vocabulary of the source, if it is not that of the target.
    pub source_vocab: Option<u64>,
    /// The length of the longest sequence in tokens; absent for images.
    pub context: Option<u64>,
    /// The width of the residual stream.
    pub d_model: u64,
    /// The encoder; `None` in a model that has only a decoder.
    pub encoder: Option<Stack>,
    /// The decoder; `None` in a model that has only an encoder.
    pub decoder: Option<Stack>,
    /// The head, which determines what the model is for.
    pub head: Head,
    /// The initial values of the parameters.
    pub init: Init,
    /// The author's own names for the tensors of a checkpoint.
    pub weights: Option<Weights>,
    /// The parts that the spec defines, and those that it uses of others.
    pub parts: Arc<Definitions>,
    /// The places of the fields in the text.
    pub places: Places,
}

/// The fields of a spec.
pub fn fields() -> Vec<Field> {
    let field = Field::new;
    fn stack_shape() -> Shape {
        Shape::Record("stack", stack::fields)
    }
    fn any() -> Shape {
        Shape::Any
    }
    fn sweep() -> Shape {
        Shape::Map(any)
    }
    vec![
        field("trafo", "Version of the language.", Count::describe, DefaultDoc::Value(|| plain("1"))),
        field(
            "name",
            "The model's name; the emitted file and type are called after it.",
            String::describe,
            DefaultDoc::Required,
        ),
        field(
            "extends",
            "Another spec, whose keys this one adds to or replaces; `!delete` removes a key.",
            String::describe,
            DefaultDoc::Absent,
        ),
        field(
            "let",
            "Named numbers for expressions and equations. The equation of a part has its own fields instead.",
            || Shape::Map(Real::describe),
            DefaultDoc::Absent,
        ),
        field(
            "parts",
            "Parts of your own: each name with an equation over layers and ops. `NAME = ...` without a tensor is a \
             field with its default, the last line is the result: `unit: linear(silu(x), d_model)`. A part goes \
             into `ffn`, or is called by its name in a block's equation.",
            || Shape::Map(|| Shape::Part),
            DefaultDoc::Absent,
        ),
        field(
            "uses",
            "Files of parts, which this spec may use as if it defined them: `uses: [parts.trafo]`. Such a file has \
             parts and nothing else.",
            || Shape::Texts,
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
            "How many words the source of an encoder-decoder has, if they are not the target's.",
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
        field("embed", "Turns tokens or an image into vectors.", Embed::describe, DefaultDoc::Absent),
        field(
            "norm",
            "What `norm(x)` and the final norms are, unless a stack says otherwise.",
            StackNorm::describe,
            DefaultDoc::Value(|| plain("layer_norm")),
        ),
        field("encoder", "A stack whose positions see each other.", stack_shape, DefaultDoc::Absent),
        field(
            "decoder",
            "A stack whose positions see earlier positions, and the encoder if there is one.",
            stack_shape,
            DefaultDoc::Absent,
        ),
        field("head", "What the model is for.", Head::describe, DefaultDoc::Required),
        field(
            "init",
            "How parameters are initialised.",
            Init::describe,
            DefaultDoc::Value(|| plain("normal")),
        ),
        field(
            "weights",
            "The tensor names of your own checkpoint, each with the path of its parameter: \
             `blocks.{i}.ln_1: decoder.blocks.{i}.norm1`. A list of paths is a tensor with several parameters one after \
             the other, and `none` is a buffer. A row may also be a map with keys of its own, in whose braces YAML needs \
             quotes around a name with `{i}`: `h.{i}.c_fc: {to: \"decoder.blocks.{i}.ffn.up\", transpose: true}`. Other \
             parameters are found by their own paths.",
            Weights::describe,
            DefaultDoc::Absent,
        ),
        field(
            "sweep",
            "Variants of this spec. `NAME: {...}` holds what a variant changes, and its keys may be paths: \
             `wide: {d_model: 1024, decoder.layers: 24}`. `grid: {PATH: [values], ...}` gives every combination of \
             the values. `--variant NAME` takes one.",
            sweep,
            DefaultDoc::Absent,
        ),
    ]
}

impl ModelSpec {
    /// Decodes a merged tree and reports all errors. The result is not `None` after every error, so the
    /// caller must ask the sink whether there are any.
    pub fn decode(node: &Node, cx: &mut Context<'_>) -> Option<Self> {
        if let Some(wrong) = version::later_tree(node, "trafo", VERSION) {
            cx.report(wrong);
            return None;
        }
        let wirings = wiring::prelude(cx.sources());
        let fields = fields();
        // A key in the wrong place may belong to a stack that is not written yet.
        cx.note_stacks(stacks_meant(node));
        let has_foreign = node.entries().unwrap_or(&[]).iter().any(|e| stack::is_foreign(e, &fields));
        let mut tree = mended(node, "spec", &fields, &[], cx).into_owned();
        mend_embeddings(&mut tree, cx);
        let node = &tree;
        let mut reader = Reader::open(node, "spec", &fields, cx)?;
        // The version is no number of the model, so expressions must not be able to use it.
        let mark = cx.mark();
        let version: Option<Count> = reader.or_value("trafo", Count(VERSION), cx);
        cx.forget_since(mark);
        if let Some(wrong) = version.and_then(|v| version::check("trafo", *v, VERSION, reader.place("trafo")))
        {
            cx.report(wrong);
        }
        let used = node.entry("uses");
        // Both have been read where the spec was, unless they came later: by `--set`, or in a variant.
        let late = used.filter(|e| e.value.entries().is_none());
        for e in node.entry("extends").into_iter().chain(late) {
            cx.report(set::too_late(&e.key, e.value.span));
        }
        let library = library::parts(cx.sources());
        let given = own::definitions::Given { own: node.get("parts"), used: used.map(|e| &e.value), library };
        let definitions = own::definitions::read(given, &is_word, cx);
        cx.define(definitions);
        let lets = Lets::new(node, cx);
        // The names under `let` that need no other size are defined now, and more of them after each size
        // below.
        lets.resolve(cx);
        let name: Option<String> = reader.required("name", cx);
        let vocab: Option<Option<Size>> = reader.or_value("vocab", None, cx);
        let source_vocab: Option<Option<Size>> = reader.or_value("source_vocab", None, cx);
        let context: Option<Option<Size>> = reader.or_value("context", None, cx);
        lets.resolve(cx);
        let d_model: Option<Size> = reader.required("d_model", cx);
        lets.resolve(cx);
        // From the tree and not from what is decoded, which may have errors.
        let both = node.get("encoder").is_some() && node.get("decoder").is_some();
        // The encoder reads the target's vocabulary unless it has its own; after an error in its own, the
        // size is not known.
        let vocab_of = |own: &'static str| match (own, source_vocab, vocab) {
            ("encoder", Some(Some(size)), _) => Some((*size, reader.place("source_vocab"))),
            ("encoder", None, _) => None,
            (_, _, Some(Some(size))) => Some((*size, reader.place("vocab"))),
            (_, _, Some(None) | None) => None,
        };
        let mut used = Used::default();
        let mut stack = |key: &'static str, given: Option<&Entry>, cx: &mut Context<'_>| {
            let Some(entry) = given else { return Some(None) };
            let around = Surroundings {
                name: key,
                key: entry.key_span,
                embed: node.get("embed"),
                norm: node.get("norm"),
                has_memory: both && key == "decoder",
                both,
                vocab: vocab_of(key),
                lets: &lets,
                wirings,
                used: &mut used,
            };
            stack::decode(&entry.value, around, cx).map(Some)
        };
        let encoder = stack("encoder", node.entry("encoder"), cx);
        let decoder = stack("decoder", node.entry("decoder"), cx);
        if node.entry("encoder").is_none() && node.entry("decoder").is_none() {
            // What a stack takes over from the spec is checked in the smallest one, or it would be checked only
            // once there is a stack.
            let smallest = entry("decoder", stack::smallest());
            let before = std::mem::take(cx.sink());
            stack("decoder", Some(&smallest), cx);
            let found = std::mem::replace(cx.sink(), before);
            // What is said about the smallest stack itself has no place in the spec's text.
            let inherited = || node.get("embed").into_iter().chain(node.get("norm"));
            let is_inherited = |d: &Diagnostic| inherited().any(|value| value.span.contains(d.span()));
            found.into_sorted().into_iter().filter(is_inherited).for_each(|d| cx.report(d));
        }
        // After the stacks, whose names are forgotten by now: a head has no use for `layers`.
        let head: Option<Head> = reader.required("head", cx);
        let init = reader.or_value("init", Init::default(), cx);
        // The help for the names of tensors says which stacks there are.
        cx.note_stacks(STACKS.into_iter().filter(|key| node.get(key).is_some()).collect());
        let weights: Option<Option<Weights>> = reader.or_value("weights", None, cx);
        let form = Form { node, both, has_foreign, used, head_place: reader.place("head") };
        form.check(head.as_ref(), cx);
        if let (Some(Some(vocab)), Some(Some(source_vocab))) = (vocab, source_vocab) {
            form.check_shared(
                (*vocab, reader.place("vocab")),
                (*source_vocab, reader.place("source_vocab")),
                cx,
            );
        }
        if let Some(e) = node.entry("sweep") {
            let decode = |tree: &Node, cx: &mut Context<'_>| drop(Self::decode(tree, cx));
            let blocks = [&encoder, &decoder].into_iter().flatten().flatten().flat_map(|stack| &stack.blocks);
            let calls = blocks.map(|block| block.instances.len()).fold(0, usize::saturating_add);
            let base = super::sweep::Base { spec: node, keys: &fields, calls, decode: &decode };
            super::sweep::check(e, base, cx);
        }
        unused::report(&lets, node, cx);
        // Only now may a missing value end this: everything has been decoded, so all errors are reported.
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
            weights: weights?,
            parts: Arc::new(cx.definitions().complete(&|name| cx.uses_part(name))),
            places,
        };
        Some(spec)
    }

    /// The kind of the model, according to the stacks that it has.
    pub fn kind(&self) -> ModelKind {
        match (&self.encoder, &self.decoder) {
            (Some(_), Some(_)) => ModelKind::EncoderDecoder,
            (None, Some(_)) => ModelKind::Decoder,
            (_, None) => ModelKind::Encoder,
        }
    }

    /// The stack whose output is the input of the head: the decoder if there is one, otherwise the encoder.
    pub fn last_stack(&self) -> Option<&Stack> {
        self.decoder.as_ref().or(self.encoder.as_ref())
    }

    /// The tree of the spec with all defaults written out. It decodes to an equal spec.
    pub fn encode(&self) -> Node {
        let number = |n: u64| plain(n.to_string());
        let mut entries = vec![entry("trafo", number(VERSION)), entry("name", plain(self.name.clone()))];
        let optional =
            [("vocab", self.vocab), ("source_vocab", self.source_vocab), ("context", self.context)];
        entries.extend(optional.iter().filter_map(|(key, n)| n.map(|n| entry(key, number(n)))));
        entries.push(entry("d_model", number(self.d_model)));
        if !self.parts.all.is_empty() {
            let parts = self.parts.all.iter().map(|definition| definition.encode()).collect();
            entries.push(entry("parts", Node::map(parts, Span::default())));
        }
        let stacks = [("encoder", &self.encoder), ("decoder", &self.decoder)];
        entries.extend(stacks.iter().filter_map(|(key, s)| s.as_ref().map(|s| entry(key, s.encode()))));
        entries.push(entry("head", self.head.encode()));
        entries.push(entry("init", self.init.encode()));
        entries.extend(self.weights.as_ref().map(|w| entry("weights", w.encode())));
        Node::map(entries, Span::default())
    }
}

/// Whether the language has a word already, so that no part of an author's own can have it as its name: a
/// part, a key of a stack, or what an equation can call.
pub fn is_word(word: &str) -> bool {
    let unnumbered = word.trim_end_matches(|c: char| c.is_ascii_digit());
    super::is_part(word)
        || PartKind::from_word(unnumbered).is_some()
        || stack::fields().iter().any(|field| field.name == word)
}

/// Corrects and reports misspelled keys in the descriptions of embeddings. This happens before anything is
/// decoded, because the tree is examined for whether the input is an image.
fn mend_embeddings(tree: &mut Node, cx: &mut Context<'_>) {
    let Kind::Map(entries) = &mut tree.kind else { return };
    for e in entries {
        match e.key.as_str() {
            "embed" => e.value = mended_deep(&e.value, Embed::describe(), cx),
            "encoder" | "decoder" => {
                if let Kind::Map(inner) = &mut e.value.kind
                    && let Some(embed) = inner.iter_mut().find(|e| e.key == "embed")
                {
                    embed.value = mended_deep(&embed.value, Embed::describe(), cx);
                }
            }
            _ => {}
        }
    }
}

/// The kinds of models that a head is for, and whether it needs tokens, by the head's name.
pub const HEADS: &[(&str, &[ModelKind], bool)] = {
    use ModelKind::{Decoder, Encoder, EncoderDecoder};
    const ANY: &[ModelKind] = &[Decoder, Encoder, EncoderDecoder];
    &[
        ("lm", &[Decoder], true),
        ("translate", &[EncoderDecoder], true),
        ("mlm", &[Encoder], true),
        ("span", &[Encoder], true),
        ("tag", ANY, true),
        ("classify", ANY, false),
        ("embed", ANY, false),
    ]
};

/// The stacks that a spec has; if it has none, those that its head is for.
fn stacks_meant(node: &Node) -> Vec<&'static str> {
    let given: Vec<&str> = STACKS.into_iter().filter(|key| node.get(key).is_some()).collect();
    if !given.is_empty() {
        return given;
    }
    let first = |head: &'_ Node| Some(head.entries()?.first()?.key.clone());
    let named = |head: &'_ Node| head.text().map(str::to_owned).or_else(|| first(head));
    let head = node.get("head").and_then(named);
    let row = HEADS.iter().find(|(name, ..)| Some(*name) == head.as_deref());
    match row.map_or(&[ModelKind::Decoder][..], |(_, kinds, _)| kinds) {
        [ModelKind::Decoder] => vec!["decoder"],
        [ModelKind::EncoderDecoder] => STACKS.to_vec(),
        // What reads the whole input sees all of it.
        _ => vec!["encoder"],
    }
}

/// The checks of a spec as a whole that need only its keys, so that they run even if values have errors.
struct Form<'a> {
    node: &'a Node,
    both: bool,
    /// Whether a block that trafoc does not have is written in place of a stack.
    has_foreign: bool,
    used: Used,
    head_place: Span,
}

impl Form<'_> {
    fn has(&self, key: &str) -> bool {
        self.node.get(key).is_some()
    }

    /// Whether the input of a stack is an image.
    fn reads_image(&self, stack: &Node) -> bool {
        let own = stack.get("embed").and_then(|embed| embed.get("patches"));
        let given = own.or(self.node.get("embed").and_then(|embed| embed.get("patches")));
        // A stack says `none` to have no patches where the model's `embed` has some.
        given.is_some_and(|patches| patches.text() != Some("none"))
    }

    /// Whether the input is an image with a distillation token.
    fn is_distilled(&self) -> bool {
        self.patches_say("distillation_token", "true")
    }

    /// Whether the patches of the input have this value at a key. A stack's own `patches` replace single keys
    /// of the model's.
    fn patches_say(&self, key: &str, value: &str) -> bool {
        let stacks = ["encoder", "decoder"].iter().filter_map(|key| self.node.get(key));
        let found = stacks.chain([self.node]).find_map(|node| node.get("embed")?.get("patches")?.get(key));
        found.and_then(Node::text) == Some(value)
    }

    fn check(&self, head: Option<&Head>, cx: &mut Context<'_>) {
        let stacks: Vec<(&str, &Node)> =
            ["encoder", "decoder"].iter().filter_map(|key| Some((*key, self.node.get(key)?))).collect();
        if stacks.is_empty() && self.has_foreign {
            return;
        }
        if stacks.is_empty() {
            let message = "the spec has neither an encoder nor a decoder";
            let stack = "{layers: 12, attention: {heads: 12}}";
            let help = match stacks_meant(self.node).as_slice() {
                ["encoder"] => format!("add `encoder: {stack}`, or `decoder:`"),
                ["decoder"] => format!("add `decoder: {stack}`, or `encoder:`"),
                _ => format!("add `encoder: {stack}` and `decoder:`, each with its own keys"),
            };
            cx.report(Diagnostic::error(Code::MissingKey, self.node.span, message).help(help));
            return;
        }
        // The decoder of an encoder-decoder reads tokens, whatever the spec says.
        let reads_tokens =
            stacks.iter().any(|(key, stack)| self.both && *key == "decoder" || !self.reads_image(stack));
        for name in ["vocab", "context"] {
            let entry = self.node.entry(name);
            let is_given = entry.is_some_and(|e| e.value.text() != Some("none"));
            if reads_tokens && !is_given {
                let message = format!("the spec needs `{name}`");
                cx.report(
                    Diagnostic::error(Code::MissingKey, self.node.span, message)
                        .help(format!("add `{name}: ...`, a whole number")),
                );
            }
            if let Some(e) = entry.filter(|_| !reads_tokens) {
                let message = format!("the input is an image, so `{name}` would have no effect");
                cx.report(Diagnostic::error(Code::UnusedKey, e.key_span, message).removable());
            }
        }
        if let Some(e) = self.node.entry("source_vocab").filter(|_| !self.both) {
            let message = "`source_vocab` is only for a model with an encoder and a decoder";
            cx.report(Diagnostic::error(Code::UnusedKey, e.key_span, message).help("use `vocab`"));
        }
        if let Some(head) = head {
            self.check_head(head, reads_tokens, cx);
        }
        // What a stack would use is not known if it is no map.
        if stacks.iter().any(|(_, stack)| stack.entries().is_none()) {
            return;
        }
        if let Some(e) = self.node.entry("norm").filter(|e| !self.used.any_of(&e.value)) {
            idle::report_norm(e, &stacks, cx);
        }
        if let Some(e) = self.node.get("embed").and_then(|embed| embed.entry("position")) {
            let of_stacks = stacks.iter().filter_map(|(_, stack)| {
                let of_embed = || stack.get("embed").and_then(|embed| embed.entry("position"));
                stack.entry("position").or_else(of_embed)
            });
            let others: Vec<&Entry> = of_stacks.collect();
            self.used.report_replaced(("embed.position", e), &others, "spec", cx);
        }
    }

    fn check_head(&self, head: &Head, reads_tokens: bool, cx: &mut Context<'_>) {
        let decodes = self.has("decoder");
        let kind = match (self.both, decodes) {
            (true, _) => ModelKind::EncoderDecoder,
            (false, true) => ModelKind::Decoder,
            (false, false) => ModelKind::Encoder,
        };
        let row = HEADS.iter().find(|(name, ..)| *name == head.part());
        let (fits, has_tokens) =
            row.map_or((true, true), |(_, kinds, tokens)| (kinds.contains(&kind), reads_tokens || !tokens));
        // The first fault only: with a head for another kind of model, the others would follow from it.
        let fault = match head {
            Head::Lm(_) if !fits && !decodes => Some((
                "`lm` predicts next tokens, so it is a head for a decoder",
                "use `mlm`, or write `decoder`",
            )),
            Head::Lm(_) if !fits => {
                Some(("`lm` is for a decoder alone", "`translate` is the head for an encoder-decoder"))
            }
            Head::Translate(_) if !fits => Some((
                "`translate` needs an encoder and a decoder",
                if decodes { "`lm` is the head for a decoder alone" } else { "add `decoder: {...}`" },
            )),
            Head::Mlm(_) if !fits => Some((
                "`mlm` fills in masked tokens, so it is a head for an encoder",
                if self.both { "`translate` is the head for both" } else { "use `lm`, or write `encoder`" },
            )),
            Head::Span(_) if !fits => Some((
                "`span` reads the whole text, so it is a head for an encoder",
                "it needs an `encoder` without a `decoder`",
            )),
            Head::Classify(Classify { distilled: true, .. }) if !self.is_distilled() => Some((
                "a distilled head reads a distillation token, but the input has none",
                "`embed: {patches: {distillation_token: true, ...}}`",
            )),
            Head::Classify(Classify { pool: Pool::ClsMean | Pool::Patches, .. })
            | Head::Embed(EmbedHead { pool: Pool::ClsMean | Pool::Patches, .. })
                if reads_tokens =>
            {
                Some((
                    "`cls_mean` and `patches` are for images, whose number of positions is fixed",
                    "`pool: cls` or `pool: mean` pool a text",
                ))
            }
            Head::Classify(Classify { pool: Pool::Cls, .. })
            | Head::Embed(EmbedHead { pool: Pool::Cls, .. })
                if !reads_tokens && self.patches_say("class_token", "false") =>
            {
                Some((
                    "`pool: cls` reads the class token, but this image has none (`class_token: false`)",
                    "`pool: first` takes the first patch, and `pool: mean` the mean of all",
                ))
            }
            Head::Lm(_) | Head::Translate(_) | Head::Mlm(_) | Head::Tag(_) | Head::Span(_) if !has_tokens => {
                Some((
                    "this head needs tokens, but the input is an image",
                    "`classify` and `embed` are heads for an image",
                ))
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
            cx.report(Diagnostic::error(Code::HeadMismatch, self.head_place, message).help(help));
        }
    }

    /// Reports an embedding table that source and target share if their vocabularies have different sizes.
    fn check_shared(&self, vocab: (u64, Span), source_vocab: (u64, Span), cx: &mut Context<'_>) {
        let shared = |node: &Node| node.get("embed").and_then(|embed| embed.get("shared")).cloned();
        let stacks = ["encoder", "decoder"].iter().filter_map(|key| self.node.get(key));
        let all = [self.node].into_iter().chain(stacks).filter_map(shared);
        for place in all.filter(|s| s.text() == Some("true") && vocab.0 != source_vocab.0) {
            let message = "a shared table has one vocabulary, but source and target have two";
            cx.report(
                Diagnostic::error(Code::KeysExclude, place.span, message)
                    .label(source_vocab.1, format!("{} of the source", counted(source_vocab.0, "word")))
                    .label(vocab.1, format!("{} of the target", counted(vocab.0, "word")))
                    .help("remove `source_vocab` or `shared`"),
            );
        }
    }
}

impl Default for Init {
    fn default() -> Self {
        Self(init::InitFields::usual())
    }
}
