//! From tokens or an image to vectors: `norm(scale * E[token] + positions + segments + language)`,
//! then dropout.

use super::init::InitPlan;
use super::norm::{self, NoNorm, Norm};
use super::position::{EmbedSite, Position};
use crate::diag::count::counted;
use crate::diag::fix::REMOVE_IT;
use crate::diag::{Code, Diagnostic};
use crate::field::record::{choice, record};
use crate::field::rule::{Is, Rule};
use crate::field::{Count, Factor, Probability, Size};
use crate::ir::build::{Arena, Builder};
use crate::ir::factor::Root;
use crate::ir::infer::Mismatch;
use crate::ir::op::{Op, Sequence};
use crate::ir::{self, Dim, Extent, MemberId, ModuleId, Part, Role, Rows, Slot, Sym, Type, ValueId};
use crate::source::Span;

choice! {
    /// Where a factorised embedding is widened to `d_model`.
    pub enum Widen {
        /// After positions, segments and norm (ALBERT)
        "last" => Last,
        /// Before positions are added (OPT)
        "first" => First,
    }
}

record! {
    /// An image cut into square patches, each projected to a vector (Dosovitskiy et al. 2020).
    pub struct Patches as "patches" {
        /// Side of the image in pixels.
        image: Size = value(Size(224));
        /// Side of a patch in pixels.
        size: Size = value(Size(16));
        /// Colour channels of the image: 3 for RGB, 1 for grey.
        channels: Size = value(Size(3));
        /// Whether a learned class token comes first.
        class_token: bool = value(true);
        /// Whether a learned distillation token follows it (DeiT).
        distillation_token: bool = value(false);
        /// Learned tokens without positions between the class token and the patches (Darcet et al. 2023).
        registers: Count = value(Count(0));
        /// Whether the projection has a bias.
        bias: bool = value(true);
    } rules [
        Rule::divides("size", "image"),
        Rule::excludes(
            ("distillation_token", Is::True),
            ("class_token", Is::False),
            "a distillation token follows a class token, but there is none",
        )
        .label("no class token here")
        .help("`class_token: true`"),
    ];
}

impl Patches {
    /// The number of patches, `(image / size)^2`.
    fn patches(&self) -> Extent {
        // The rules of the record ensure that this is a whole number.
        let side = self.image.checked_div(*self.size).unwrap_or(0);
        Extent::by_rule("patches", side.saturating_mul(side))
    }

    /// The number of vectors that get positions: class and distillation token and patches.
    pub fn positions(&self) -> Extent {
        // DeiT's and ViT's tables of positions have rows for these tokens, too; registers came later,
        // without.
        self.patches() + Extent::from(self.tokens())
    }

    /// How many of these vectors are no patches.
    fn tokens(&self) -> u64 {
        u64::from(self.class_token).saturating_add(u64::from(self.distillation_token))
    }

    /// Length of the sequence of the stack.
    pub fn length(&self) -> Extent {
        match *self.registers {
            0 => self.positions(),
            registers => self.positions() + Extent::new("registers", registers),
        }
    }
}

fn none() -> Norm {
    Norm::None(NoNorm { places: Default::default() })
}

record! {
    /// Turns tokens or an image into vectors.
    pub struct Embed as "embed" {
        /// How order enters the model.
        position: Position = value(Position::nowhere());
        /// Factor on the token vectors (`sqrt(d_model)` in the first Transformer).
        scale: Factor = value(Factor::plain(1.0));
        /// Width of the embedding table, if it is narrower than `d_model` (ALBERT, OPT).
        dim: Option<Size> = absent;
        /// Where a narrower table is widened.
        widen: Widen = value(Widen::Last);
        /// Row of the table that starts at 0: the padding token.
        padding: Option<Count> = absent;
        /// Token types with a learned vector each (BERT).
        segments: Option<Size> = absent;
        /// Languages with a learned vector each, added to every position.
        languages: Option<Size> = absent;
        /// An image in place of tokens.
        patches: Option<Patches> = absent;
        /// Whether source and target of an encoder-decoder use one table.
        shared: bool = value(false);
        /// Norm of the sum.
        norm: Norm = value(none());
        /// Dropout of the sum.
        dropout: Probability = value(Probability(0.0));
    } rules [
        Rule::excludes(
            ("widen", Is::Word("first")),
            ("dim", Is::Absent),
            "`widen` says where a narrower table is widened, but this one is not narrower",
        )
        .code(Code::UnusedKey)
        .help("give `dim`, or remove it"),
        of_tokens("segments"),
        of_tokens("padding"),
    ];
}

/// A field that an image does not have.
const fn of_tokens(field: &'static str) -> Rule {
    Rule::excludes(
        (field, Is::Given),
        ("patches", Is::Given),
        "`{field}` is for tokens, but the input is an image",
    )
    .code(Code::UnusedKey)
    .label("the image")
    .help(REMOVE_IT)
}

/// The rest of the model, as far as an embedding depends on it.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings {
    /// Whether it is the embedding of a decoder that has an encoder.
    pub has_encoder: bool,
    /// Whether there are an encoder and a decoder.
    pub both: bool,
    /// Rows of its table with their place, if they are known.
    pub vocab: Option<(u64, Span)>,
}

impl Embed {
    /// The faults of this embedding.
    pub fn check(&self, at: &Surroundings) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        if self.shared && !at.both {
            let message = "`shared` ties the source's table to the target's, but there is only one";
            let place = self.places.of("shared");
            found.push(Diagnostic::error(Code::UnusedKey, place, message).removable());
        }
        // Not a rule of the record, which does not know the number of rows.
        if let (Some(padding), Some((vocab, place))) = (self.padding, at.vocab)
            && *padding >= vocab
        {
            let message = format!("the padding row {} is not in a table of {vocab}", *padding);
            found.push(
                Diagnostic::error(Code::OutOfRange, self.places.of("padding"), message)
                    .label(place, format!("{} here", counted(vocab, "row")))
                    .help(format!("rows are counted from 0, so the last one is {}", vocab.saturating_sub(1))),
            );
        }
        if self.segments.is_some() && at.has_encoder {
            let message = "token types are an input of the source; the target has none";
            found.push(
                Diagnostic::error(Code::WrongPlace, self.places.of("segments"), message)
                    .help("put `segments` under `encoder.embed`"),
            );
        }
        if let Some(patches) = self.patches.as_ref().filter(|_| at.has_encoder) {
            let message = "the decoder of an encoder-decoder reads tokens, not an image";
            found.push(
                Diagnostic::error(Code::WrongPlace, patches.places.whole(), message)
                    .help("put `patches` under `encoder.embed`"),
            );
        }
        found
    }
}

/// Where an embedding is lowered.
pub struct Site<'a> {
    /// The modules built so far.
    pub arena: &'a Arena,
    /// The initial values of parameters.
    pub init: &'a InitPlan,
    /// The path of the embedding: `embed`, `source_embed`, `target_embed`.
    pub path: &'a str,
    /// The name of the module in the graph and in emitted code.
    pub module: &'a str,
    /// The number of rows of the token table.
    pub vocab: Extent,
    /// The width of the stack, to which a narrower table is widened.
    pub d_model: Extent,
    /// The sequence of the stack; for an image it includes all learned tokens.
    pub sequence: Sequence,
    /// The longest sequence of the model, in positions; the number of learned positions.
    pub context: Extent,
    /// Whether the table is given as an argument and not owned.
    pub borrows_table: bool,
}

/// Inputs an embedding module takes, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// Token ids `[B, T]`.
    Tokens,
    /// An image `[B, C, H, W]`.
    Image,
    /// Token types `[B, T]`, may be absent.
    TokenTypes,
    /// One language a sequence, `[B]`.
    Language,
    /// The table of another embedding.
    Table,
}

/// The module of an embedding, and where its token table is.
#[derive(Clone, Copy, Debug)]
pub struct Lowered {
    /// The module of the embedding.
    pub module: ModuleId,
    /// Its member that is the table of the tokens, unless it borrows one or reads an image.
    pub table: Option<MemberId>,
}

impl Embed {
    /// What the module takes, in the order of its arguments.
    pub fn inputs(&self, borrows_table: bool) -> Vec<Input> {
        // The order is part of the emitted interface: what every model has comes first.
        let mut inputs = vec![if self.patches.is_some() { Input::Image } else { Input::Tokens }];
        if self.segments.is_some() {
            inputs.push(Input::TokenTypes);
        }
        if self.languages.is_some() {
            inputs.push(Input::Language);
        }
        if borrows_table {
            inputs.push(Input::Table);
        }
        inputs
    }

    /// The factor on the token vectors.
    fn factor(&self, d_model: Extent) -> ir::Factor {
        ir::Factor::of(&self.scale, &[("d_model", d_model)])
    }

    /// What is added up, as the documentation of the module.
    fn formula(&self, d_model: Extent) -> String {
        let source = if self.patches.is_some() { "patches" } else { "token" };
        let scale = self.factor(d_model);
        let scaled = match scale.root() {
            _ if scale == 1.0 => source.to_owned(),
            Some(Root { is_inverse: false, .. }) => format!("sqrt(d_model) {source}"),
            Some(Root { is_inverse: true, .. }) => format!("{source} / sqrt(d_model)"),
            None => format!("{} {source}", *scale),
        };
        let added = [
            (self.segments.is_some(), "segment"),
            // All other schemes act in attention and add nothing to an embedding.
            (matches!(self.position, Position::Learned(_) | Position::Sinusoidal(_)), "position"),
            (self.languages.is_some(), "language"),
        ];
        let sum: Vec<&str> = std::iter::once(scaled.as_str())
            .chain(added.iter().filter(|(on, _)| *on).map(|(_, w)| *w))
            .collect();
        let sum = sum.join(" + ");
        if self.norm.is_none() { format!("Vectors `{sum}`.") } else { format!("Vectors `norm({sum})`.") }
    }

    /// How many vectors of an image come before its patches; 0 for tokens.
    pub fn before_patches(&self) -> u64 {
        self.patches.as_ref().map_or(0, |patches| patches.tokens().saturating_add(*patches.registers))
    }

    /// Width of the table: `dim` if it is given, else `d_model`.
    pub fn width(&self, d_model: Extent) -> Extent {
        self.dim.map_or(d_model, |dim| Extent::new("embed_dim", *dim))
    }

    /// The type of an input.
    pub fn input_type(&self, input: Input, site: &Site<'_>) -> Type {
        let batch = Dim::sym(Sym::Batch);
        match input {
            Input::Tokens => Type::int([batch, site.sequence.queries()]),
            Input::TokenTypes => Type::int([batch, site.sequence.queries()]).or_absent(),
            Input::Language => Type::int([batch]),
            Input::Table => Type::float([Dim::from(site.vocab), Dim::from(self.width(site.d_model))]),
            Input::Image => {
                // Only an embedding with patches has this input.
                let (channels, side) = self.patches.as_ref().map_or((3, 1), |p| (*p.channels, *p.image));
                let [channels, side] =
                    [Extent::new("channels", channels), Extent::new("image_size", side)].map(Dim::from);
                Type::float([batch, channels, side.clone(), side])
            }
        }
    }

    /// The module, which takes [`inputs`](Self::inputs) and returns `[B, T, d_model]`.
    pub fn lower(&self, site: &Site<'_>) -> Result<Lowered, Mismatch> {
        let mut b = Builder::new(site.arena, site.module, Role::Embedding);
        b.at(self.places.whole());
        b.part(Part::new(Slot::Embed, "Embedding"));
        b.doc(self.formula(site.d_model));
        let inputs = self.inputs(site.borrows_table);
        let mut given = Vec::new();
        for input in &inputs {
            let name = match input {
                Input::Tokens => "tokens",
                Input::Image => "image",
                Input::TokenTypes => "token_types",
                Input::Language => "language",
                Input::Table => "table",
            };
            given.push((*input, b.argument(name, self.input_type(*input, site))));
        }
        let find = |wanted: Input| given.iter().find(|(input, _)| *input == wanted).map(|(_, id)| *id);
        let width = self.width(site.d_model);
        let mut tokens_table = None;
        let mut x = match (&self.patches, find(Input::Image), find(Input::Tokens)) {
            (Some(patches), Some(image), _) => patches.lower(&mut b, site, width, image)?,
            (_, _, Some(tokens)) => match find(Input::Table) {
                // A borrowed table is a value and no layer of this module.
                Some(table) => b.op("x", Op::Lookup, &[table, tokens])?,
                None => {
                    let path = format!("{}.tokens", site.path);
                    let table =
                        site.init.embedding(&path, Rows::Tokens, site.vocab, width, self.padding.map(|p| *p));
                    let member = b.layer("tokens", table);
                    tokens_table = Some(member);
                    b.op("x", Op::Layer { member }, &[tokens])?
                }
            },
            _ => return Err(Mismatch("an embedding without an input".into())),
        };
        // Only token vectors are scaled, and not the positions that are added later (Vaswani et al. 2017).
        if *self.scale != 1.0 {
            x = b.op("x", Op::Scale { by: self.factor(site.d_model) }, &[x])?;
        }
        // ALBERT's projection after the norm has a bias, OPT's before the positions has none.
        let widen = |b: &mut Builder, x: ValueId| {
            let layer = site.init.linear(
                &format!("{}.project", site.path),
                width,
                site.d_model,
                self.widen == Widen::Last,
            );
            let member = b.layer("project", layer);
            b.op("x", Op::Layer { member }, &[x])
        };
        let is_narrow = self.dim.is_some();
        // The width that the vectors have while positions and segments are added to them.
        let inner = if is_narrow && self.widen == Widen::Last { width } else { site.d_model };
        if is_narrow && self.widen == Widen::First {
            x = widen(&mut b, x)?;
        }
        if let (Some(types), Some(tokens), Some(count)) =
            (find(Input::TokenTypes), find(Input::Tokens), self.segments)
        {
            // Without token types, all tokens have type 0.
            let types = b.op("token_types", Op::OrZeros, &[types, tokens])?;
            let table = site.init.embedding(
                &format!("{}.segments", site.path),
                Rows::Segments,
                Extent::new("segments", *count),
                inner,
                None,
            );
            let segments = b.apply("segments", table, types)?;
            x = b.op("x", Op::Add, &[x, segments])?;
        }
        let at = EmbedSite {
            init: site.init,
            path: site.path,
            dim: inner,
            sequence: self.patches.as_ref().map_or(site.sequence, |p| Sequence::Fixed(p.positions())),
            context: self.patches.as_ref().map_or(site.context, |p| p.positions()),
        };
        x = self.position.scheme().on_embedding(&mut b, &at, x)?;
        // Registers have no positions, so they come after these were added.
        if let Some(patches) = &self.patches {
            x = patches.add_registers(&mut b, site, inner, x)?;
        }
        if let (Some(language), Some(count)) = (find(Input::Language), self.languages) {
            // An embedding looks up `[B, T]` of indices, so each sequence gets one position, which is
            // broadcast.
            let language = b.op("language", Op::Unsqueeze, &[language])?;
            let table = site.init.embedding(
                &format!("{}.languages", site.path),
                Rows::Languages,
                Extent::new("languages", *count),
                inner,
                None,
            );
            let vector = b.apply("languages", table, language)?;
            x = b.op("x", Op::Add, &[x, vector])?;
        }
        // Norm before dropout, as in BERT.
        let normed = norm::Site { init: site.init, path: format!("{}.norm", site.path), member: "norm" };
        x = self.norm.lower(&mut b, &normed, "x", inner, x)?;
        if *self.dropout > 0.0 {
            x = b.op("x", Op::Dropout { p: *self.dropout }, &[x])?;
        }
        if is_narrow && self.widen == Widen::Last {
            x = widen(&mut b, x)?;
        }
        Ok(Lowered { module: b.finish(&[x]), table: tokens_table })
    }
}

impl Patches {
    fn lower(
        &self,
        b: &mut Builder,
        site: &Site<'_>,
        width: Extent,
        image: ValueId,
    ) -> Result<ValueId, Mismatch> {
        let layer = site.init.patches(
            &format!("{}.patches", site.path),
            Extent::new("channels", *self.channels),
            width,
            Extent::new("patch_size", *self.size),
            self.bias,
        );
        let member = b.layer("patches", layer);
        let mut x = b.op("x", Op::Layer { member }, &[image])?;
        // Each is put before what is already there, so the class token comes first.
        for (name, is_there) in
            [("distillation_token", self.distillation_token), ("class_token", self.class_token)]
        {
            if is_there {
                let token =
                    site.init.param(&format!("{}.{name}", site.path), vec![Extent::from(1), width], None);
                let token = b.param(name, token)?;
                x = b.op("x", Op::Prepend, &[token, x])?;
            }
        }
        Ok(x)
    }

    fn add_registers(
        &self,
        b: &mut Builder,
        site: &Site<'_>,
        width: Extent,
        x: ValueId,
    ) -> Result<ValueId, Mismatch> {
        if *self.registers == 0 {
            return Ok(x);
        }
        let registers = site.init.param(
            &format!("{}.registers", site.path),
            vec![Extent::new("registers", *self.registers), width],
            None,
        );
        let registers = b.param("registers", registers)?;
        let first = self.tokens();
        if first == 0 {
            return b.op("x", Op::Prepend, &[registers, x]);
        }
        // Registers are between the tokens and the patches, so the sequence is taken apart.
        let rows = |start: u64, len: Extent| Op::Slice { axis_from_last: 1, start: Extent::from(start), len };
        let tokens = b.op("tokens", rows(0, Extent::from(first)), &[x])?;
        let rest = b.op("rest", rows(first, self.patches()), &[x])?;
        let rest = b.op("rest", Op::Prepend, &[registers, rest])?;
        b.op("x", Op::Concat { axis_from_last: 1 }, &[tokens, rest])
    }
}
