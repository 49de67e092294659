//! What all parts of one emitted file share: the names it gives to the modules and numbers of a program.

use std::collections::BTreeMap;

use super::code::{Code, Item, Strength};
use super::kernel::Library;
use super::linear_init::{LinearInit, linear_init};
use super::name;
use super::number::float;
use crate::emit::program::constants::{ConstantId, Scalar, Size, grouped};
use crate::emit::program::name::{Names, camel, snake};
use crate::emit::program::{Body, FieldKind, Module, Program, Stack};
use crate::ir::op::quantity::Named;
use crate::ir::{self, Dim, MemberId, ModuleId, Type};
use crate::lower::Bug;

/// The largest number of parameters in addition to `self`. With it they are the seven that clippy's
/// `too_many_arguments` allows, and emitted files have no warnings.
const MOST_PARAMETERS: usize = 6;

/// The names of one emitted file.
pub struct File<'a> {
    /// The program of which the file is the text.
    pub program: &'a Program,
    /// What the helpers `linear` and `linear_no_bias` are told about initial weights.
    pub linear_init: LinearInit,
    types: Vec<String>,
    functions: BTreeMap<ModuleId, String>,
    enums: BTreeMap<(ModuleId, MemberId), String>,
    bundles: BTreeMap<ModuleId, String>,
}

impl<'a> File<'a> {
    /// Gives every module of a program its names. No function is called like a kernel.
    pub fn new(program: &'a Program, library: &Library) -> Self {
        let mut given = Names::default();
        let mut give = |wanted: &str| given.give(wanted, &name::is_reserved_type);
        // The structs come first, so that they keep the names of the program.
        let types: Vec<String> = program.modules.iter().map(|module| give(&module.name)).collect();
        let enums = enums(program, &types, &mut given);
        let bundles = bundles(program, &types, &mut given);
        let functions = program.modules.iter().zip(&types).enumerate();
        let functions = functions.filter(|(_, (module, _))| module.is_function).map(|(id, (_, name))| {
            let mut called = name::variable(&snake(name));
            // A function of the file would hide the kernel that it imports.
            while library.has(&called) {
                called.push_str("_of");
            }
            (ModuleId(id), called)
        });
        let functions = functions.collect();
        Self { linear_init: linear_init(program), program, types, functions, enums, bundles }
    }

    /// The code of a module.
    ///
    /// # Errors
    /// A fault of trafoc: there is no such module.
    pub fn code(&self, id: ModuleId) -> Result<&'a Module, Bug> {
        self.program.code(id).ok_or_else(|| missing(id))
    }

    /// The values of a module.
    pub fn values(&self, id: ModuleId) -> &'a ir::Module {
        self.program.graph.module(id)
    }

    /// The struct of a module.
    ///
    /// # Errors
    /// A fault of trafoc: there is no such module.
    pub fn type_of(&self, id: ModuleId) -> Result<&str, Bug> {
        self.types.get(id.0).map(String::as_str).ok_or_else(|| missing(id))
    }

    /// The function of a module that is no more than a function.
    pub fn function_of(&self, id: ModuleId) -> Option<&str> {
        self.functions.get(&id).map(String::as_str)
    }

    /// The struct of what a function takes after its first argument, where it would take more than is easily
    /// read.
    pub fn bundle_of(&self, id: ModuleId) -> Option<&str> {
        self.bundles.get(&id).map(String::as_str)
    }

    /// The type of the blocks of a stack: a struct, or an enum of several.
    ///
    /// # Errors
    /// A fault of trafoc: there is no such stack.
    pub fn block_type(&self, owner: ModuleId, stack: &Stack) -> Result<&str, Bug> {
        match stack.kinds.as_slice() {
            [one] => self.type_of(*one),
            _ => self.enum_of(owner, stack.member),
        }
    }

    /// The enum of the blocks of a stack of different modules.
    ///
    /// # Errors
    /// A fault of trafoc: there is no such stack.
    pub fn enum_of(&self, owner: ModuleId, member: MemberId) -> Result<&str, Bug> {
        let found = self.enums.get(&(owner, member)).map(String::as_str);
        found.ok_or_else(|| Bug("a stack of several kinds of blocks has no type".to_owned()))
    }

    /// The name of one kind of block in the enum of its stack: the words that tell it from the others.
    ///
    /// # Errors
    /// A fault of trafoc: there is no such module.
    pub fn variant(&self, kinds: &[ModuleId], kind: ModuleId) -> Result<String, Bug> {
        let words = |id: &ModuleId| self.type_of(*id).map(crate::emit::program::name::words);
        let names = kinds.iter().map(words).collect::<Result<Vec<_>, Bug>>()?;
        let mut shared = 0;
        let last = |words: &[String], n: usize| words.iter().rev().nth(n).cloned();
        // One word is always left, so that every variant has a name of its own.
        while names.iter().all(|words| words.len() > shared + 1)
            && names
                .iter()
                .all(|words| last(words, shared) == names.first().and_then(|first| last(first, shared)))
        {
            shared += 1;
        }
        let own = words(&kind)?;
        let kept: Vec<String> = own.iter().take(own.len().saturating_sub(shared)).cloned().collect();
        Ok(name::variant(&kept.concat(), self.type_of(kind)?))
    }

    /// A size as an expression.
    pub fn size(&self, size: &Size) -> Code {
        let all = |sizes: &[Size], combine: fn(Code, Code) -> Code| {
            let sizes = sizes.iter().map(|size| self.size(size));
            sizes.reduce(combine).unwrap_or_else(|| Code::text("0"))
        };
        match size {
            Size::Number(n) => Code::text(grouped(*n)),
            Size::Constant(id) => self.constant(*id),
            Size::Sum(sizes) => all(sizes, Code::plus),
            Size::Product(sizes) => all(sizes, Code::times),
            Size::Quotient(size, by) => self.size(size).over(self.size(by)),
        }
    }

    /// A size of the graph as an expression.
    pub fn extent(&self, size: ir::Extent) -> Code {
        self.size(&self.program.constants.size(size))
    }

    /// A whole number of an op as an expression.
    pub fn count(&self, named: Named, n: u64) -> Code {
        self.size(&self.program.constants.count(named, n))
    }

    /// A real number of an op as an expression.
    pub fn real(&self, named: Named, x: f64) -> Code {
        self.scalar(&self.program.constants.real(named, x))
    }

    /// A real number as an expression.
    pub fn scalar(&self, scalar: &Scalar) -> Code {
        let root = |size: &Size| {
            if let Size::Number(n) = size {
                return Code::text(format!("{n}_f64")).method("sqrt", []);
            }
            // `as` binds more tightly than a sum or a product.
            let size = self.size(size).at_least(Strength::Unary);
            Code::text("(").join(size).then(" as f64)").method("sqrt", [])
        };
        match scalar {
            Scalar::Number(x) => Code::text(float(*x)),
            Scalar::Constant(id) => self.constant(*id),
            Scalar::Root(size) => root(size),
            Scalar::InverseRoot(size) => Code::text("1.0").over(root(size)),
        }
    }

    fn constant(&self, id: ConstantId) -> Code {
        let name = self.program.constants.all.get(id.0).map_or("", |constant| &constant.name);
        Code::item(Item::Constant(id), name::constant(name))
    }

    /// A table of numbers of the program.
    ///
    /// # Errors
    /// A fault of trafoc: the program has no table of these numbers.
    pub fn table(&self, values: &[f64]) -> Result<Code, Bug> {
        let id = self.program.constants.table(values);
        let table = id.and_then(|id| Some((id, self.program.constants.tables.get(id.0)?)));
        let (id, table) = table.ok_or_else(|| Bug("a table of numbers has no name".to_owned()))?;
        Ok(Code::item(Item::Table(id), name::constant(&table.name)))
    }

    /// A shape as documentation writes it, `[B, T, D_MODEL]`.
    pub fn shape(&self, ty: &Type) -> Code {
        let size = |dim: &Dim| dim.extent().map_or_else(|| Code::text(dim.to_string()), |n| self.extent(n));
        Code::list("[", ty.shape.iter().map(size), "]")
    }
}

fn missing(id: ModuleId) -> Bug {
    Bug(format!("the emitted program has no module {}", id.0))
}

/// The types of stacks of different blocks, told apart from the structs and from other such stacks: `Block`
/// for `blocks`, or `EncoderBlock`.
fn enums(program: &Program, types: &[String], given: &mut Names) -> BTreeMap<(ModuleId, MemberId), String> {
    let singular = |member: &str| camel(member.strip_suffix('s').unwrap_or(member));
    let mut stacks: Vec<(ModuleId, MemberId, String)> = Vec::new();
    for (id, module) in program.modules.iter().enumerate() {
        for field in &module.fields {
            if let FieldKind::Stack(stack) = &field.kind
                && stack.kinds.len() > 1
            {
                stacks.push((ModuleId(id), stack.member, singular(&field.name)));
            }
        }
    }
    let mut enums = BTreeMap::new();
    for (id, at, name) in &stacks {
        let is_one = stacks.iter().filter(|(.., other)| other == name).count() == 1;
        let owner = types.get(id.0).map_or("", String::as_str);
        let of_owner = format!("{owner}{name}");
        let wanted = match (is_one && !given.has(name), given.has(&of_owner)) {
            (true, _) => name.clone(),
            (false, false) => of_owner,
            // A struct of the file has that name, too.
            (false, true) => format!("{of_owner}Kind"),
        };
        enums.insert((*id, *at), given.give(&wanted, &name::is_reserved_type));
    }
    enums
}

/// The structs of arguments, for functions that would take more than is easily read.
fn bundles(program: &Program, types: &[String], given: &mut Names) -> BTreeMap<ModuleId, String> {
    let mut bundles = BTreeMap::new();
    for (index, (module, name)) in program.modules.iter().zip(types).enumerate() {
        let Body::Whole(function) = &module.body else { continue };
        let caches = usize::from(function.caches.count() > 0);
        let parameters = function.parameters.len() + function.needs.len() + caches;
        // Users call the methods of the model itself, which take every input by its name.
        if parameters > MOST_PARAMETERS && ModuleId(index) != program.graph.root {
            let name = given.give(&format!("{name}Inputs"), &name::is_reserved_type);
            bundles.insert(ModuleId(index), name);
        }
    }
    bundles
}
