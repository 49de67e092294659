//! The code of a model as plain data.

use super::choice::Choice;
use super::constants::{Constants, Scalar, Size};
use super::function::Function;
use crate::ir::{DType, Dim, Graph, Layer, MemberId, ModuleId, Sym, Value};

/// A program before it is verified.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The modules that are left after merging, with their values, members and nodes.
    pub graph: Graph,
    /// The code of each, by module id, children before parents.
    pub modules: Vec<Module>,
    /// The numbers that have names in the code.
    pub constants: Constants,
}

/// The code of one module: what it owns and what it computes.
#[derive(Clone, Debug, PartialEq)]
pub struct Module {
    /// Its name, which no other module has: `DecoderBlock`.
    pub name: String,
    /// What it computes, a formula or sentence per line.
    pub doc: Vec<String>,
    /// Where it comes from: `specs/gpt1.yaml:12`.
    pub places: Vec<String>,
    /// Whether it is no more than a function: it owns nothing and is not a block of a stack.
    pub is_function: bool,
    /// What it owns: members in the order of the graph, then dropouts.
    pub fields: Vec<Field>,
    /// Its functions: one, or two in a model with a source and a target.
    pub body: Body,
}

/// A member that a module owns, or a dropout.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Its name, the segment of a parameter's path.
    pub name: String,
    /// Whether it is a layer, a module, a stack or a dropout.
    pub kind: FieldKind,
}

/// What a module can own.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldKind {
    /// A layer with parameters.
    Layer(Layer),
    /// A child module; one that owns nothing is a function and no field.
    Module(ModuleId),
    /// The blocks of a stack, in paths `blocks.0`, `blocks.1`, ...
    Stack(Stack),
    /// Dropout with this probability, one for all ops of the module that have it.
    Dropout(Scalar),
}

/// Numbered blocks that a module owns.
#[derive(Clone, Debug, PartialEq)]
pub struct Stack {
    /// The member of the graph that contains them.
    pub member: MemberId,
    /// The number of blocks.
    pub count: Size,
    /// The modules that are blocks, each once.
    pub kinds: Vec<ModuleId>,
    /// Which of them is the block of an index.
    pub blocks: Choice<ModuleId>,
}

/// The functions of a module.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// One, from its arguments to its results.
    Whole(Function),
    /// Two, of a model with a source and a target.
    Translation {
        /// From the inputs of the source to the memory.
        encode: Function,
        /// From the inputs of the target and the memory to the outputs.
        decode: Function,
    },
}

impl Body {
    /// The functions in the order in which a forward pass calls them.
    pub fn functions(&self) -> Vec<&Function> {
        match self {
            Body::Whole(one) => vec![one],
            Body::Translation { encode, decode } => vec![encode, decode],
        }
    }
}

impl Draft {
    /// The code of a module; `None` if the program has no module with this id.
    pub fn code(&self, id: ModuleId) -> Option<&Module> {
        self.modules.get(id.0)
    }

    /// The code of the root module, which computes the whole model.
    pub fn model(&self) -> Option<&Module> {
        self.code(self.graph.root)
    }

    /// Whether a tensor may be absent where a function takes it: what is optional in the graph, and every
    /// mask. Modules that differ only in whether a mask is always given are merged, so one function serves
    /// both.
    pub fn may_be_absent(value: &Value) -> bool {
        value.ty.optional || value.ty.dtype == DType::Bool
    }

    /// Whether the model reads a source in addition to what it computes.
    pub fn reads_source(&self) -> bool {
        // An image is no source in this sense: its patches have no length `S`.
        let source = Dim::sym(Sym::Source);
        self.graph.root().arguments().iter().any(|value| value.ty.shape.contains(&source))
    }

    /// How many caches the whole model fills, as a size: the length of the stack whose blocks fill one each,
    /// where there is one.
    pub fn cache_count(&self) -> Size {
        // The encoding half of a translation fills no cache, so the largest number is that of the half that
        // decodes.
        let caches = self.model().map_or(0, |model| {
            model.body.functions().iter().map(|function| function.caches.count()).max().unwrap_or(0)
        });
        let fills = |module: &Module| {
            let functions = module.body.functions();
            let mut statements = functions.iter().flat_map(|function| &function.statements);
            statements.any(|statement| {
                let scanned = statement.action.scan().and_then(|scan| scan.caches);
                scanned.is_some_and(|own| own.count == caches)
            })
        };
        match self.modules.iter().position(fills) {
            Some(owner) => self.constants.layers(ModuleId(owner), caches),
            None => Size::Number(caches),
        }
    }
}
