//! What all parts of one emitted file share: the names it gives to the modules and numbers of a program.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use super::runtime::Runtime;
use super::syntax::{Expr, Sign};
use super::{causal, name};
use crate::emit::program::constants::{ConstantId, Constants, Scalar, Size};
use crate::emit::program::name::{Names, snake};
use crate::emit::program::{Module, Program};
use crate::ir::op::quantity::Named;
use crate::ir::{self, Dim, Layer, MemberKind, ModuleId, Sym, Type, ValueId};
use crate::lower::Bug;

/// The names of one emitted file.
pub struct File<'a> {
    /// The program of which the file is the text.
    pub program: &'a Program,
    /// The Python that it may call.
    pub runtime: &'a Runtime,
    classes: Vec<String>,
    functions: BTreeMap<ModuleId, String>,
    /// The masks that hide the future too.
    causal: BTreeSet<(ModuleId, ValueId)>,
    /// Numbers that the documentation names, which `Config` then has too. They are found while a shape is
    /// written, when the file is only borrowed.
    mentioned: RefCell<BTreeSet<ConstantId>>,
    /// Which functions are known to read `Config`: a function that calls another one is asked as often as both are called.
    reading: RefCell<BTreeMap<ModuleId, bool>>,
}

impl<'a> File<'a> {
    /// Whether the model decodes with matrices so large that the runtime's own `linear` multiplies single
    /// rows faster.
    pub fn has_fast_rows(&self) -> bool {
        // `runtime/linear.py` divides a matrix into eight parts, each of at least this size.
        const LARGE: u64 = 8 << 15;
        let graph = &self.program.graph;
        let mut members = graph.modules.iter().flat_map(|module| &module.members);
        graph.decodes
            && members.any(|member| match &member.kind {
                MemberKind::Layer(layer @ (Layer::Linear { .. } | Layer::Embedding { .. })) => layer
                    .parameters()
                    .iter()
                    .any(|p| p.shape.iter().fold(1, |n: u64, s| n.saturating_mul(*s)) >= LARGE),
                MemberKind::Layer(_) | MemberKind::Module(_) | MemberKind::Stack(_) => false,
            })
    }

    /// Gives every module of a program its names. No name is that of a part of the runtime.
    pub fn new(program: &'a Program, runtime: &'a Runtime) -> Self {
        let mut given = Names::default();
        // The parts of the runtime are in the same file: of two definitions of one name Python keeps the
        // later one without a word.
        let is_reserved = |wanted: &str| name::is_reserved_class(wanted) || runtime.has(wanted);
        let classes: Vec<String> =
            program.modules.iter().map(|module| given.give(&module.name, &is_reserved)).collect();
        let functions = program.modules.iter().zip(&classes).enumerate();
        let functions = functions.filter(|(_, (module, _))| module.is_function).map(|(id, (_, class))| {
            let mut called = name::variable(&snake(class));
            while runtime.has(&called) {
                called.push_str("_of");
            }
            (ModuleId(id), called)
        });
        let functions = functions.collect();
        let causal = causal::masks(&program.graph);
        Self {
            program,
            runtime,
            classes,
            functions,
            causal,
            mentioned: RefCell::default(),
            reading: RefCell::default(),
        }
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

    /// The class of a module.
    ///
    /// # Errors
    /// A fault of trafoc: there is no such module.
    pub fn class_of(&self, id: ModuleId) -> Result<&str, Bug> {
        self.classes.get(id.0).map(String::as_str).ok_or_else(|| missing(id))
    }

    /// The function of a module that is no more than a function.
    pub fn function_of(&self, id: ModuleId) -> Option<&str> {
        self.functions.get(&id).map(String::as_str)
    }

    /// The names of all functions, which a variable must not hide.
    pub fn functions(&self) -> impl Iterator<Item = &str> {
        self.functions.values().map(String::as_str)
    }

    /// Whether a value is a mask that hides the future too.
    pub fn is_causal(&self, id: ModuleId, value: ValueId) -> bool {
        self.causal.contains(&(id, value))
    }

    /// The shape of a value as documentation writes it. A mask that hides the future differs from query to
    /// query.
    pub fn shape_of(&self, id: ModuleId, value: ValueId) -> String {
        let ty = &self.values(id).value(value).ty;
        match ty.shape.as_slice() {
            [batch, heads, _, keys] if self.is_causal(id, value) => {
                let dims = [batch.clone(), heads.clone(), Dim::sym(Sym::Time), keys.clone()];
                self.shape(&Type { shape: dims.to_vec().into(), ..ty.clone() })
            }
            _ => self.shape(ty),
        }
    }

    fn constants(&self) -> &'a Constants {
        &self.program.constants
    }

    /// A size as an expression.
    pub fn size(&self, size: &Size) -> Expr {
        let all = |sizes: &[Size], sign: Sign| {
            let sizes = sizes.iter().map(|size| self.size(size));
            sizes.reduce(|a, b| a.binary(sign, b)).unwrap_or(Expr::Int(0))
        };
        match size {
            Size::Number(n) => Expr::Int(*n),
            Size::Constant(id) => Expr::Constant(*id),
            Size::Sum(sizes) => all(sizes, Sign::Plus),
            Size::Product(sizes) => all(sizes, Sign::Times),
            Size::Quotient(size, by) => self.size(size).binary(Sign::Quotient, self.size(by)),
        }
    }

    /// A size of the graph as an expression.
    pub fn extent(&self, size: ir::Extent) -> Expr {
        self.size(&self.constants().size(size))
    }

    /// A whole number of an op as an expression.
    pub fn count(&self, named: Named, n: u64) -> Expr {
        self.size(&self.constants().count(named, n))
    }

    /// A real number of an op as an expression.
    pub fn real(&self, named: Named, x: f64) -> Expr {
        self.scalar(&self.constants().real(named, x))
    }

    /// A real number as an expression.
    pub fn scalar(&self, scalar: &Scalar) -> Expr {
        let root = |size: &Size| Expr::Import("math").method("sqrt", [self.size(size)]);
        match scalar {
            Scalar::Number(x) => Expr::Float(*x),
            Scalar::Constant(id) => Expr::Constant(*id),
            Scalar::Root(size) => root(size),
            Scalar::InverseRoot(size) => Expr::Int(1).over(root(size)),
        }
    }

    /// `x` times a factor.
    pub fn scaled(&self, x: Expr, scalar: &Scalar) -> Expr {
        match scalar {
            // A reader knows `x / sqrt(n)` from the formula of attention; times an inverse is the same and
            // harder to read.
            Scalar::InverseRoot(size) => x.over(Expr::Import("math").method("sqrt", [self.size(size)])),
            other @ (Scalar::Number(_) | Scalar::Constant(_) | Scalar::Root(_)) => {
                x.times(self.scalar(other))
            }
        }
    }

    /// The name of a number in `Config`.
    pub fn constant(&self, id: ConstantId) -> String {
        self.constants().all.get(id.0).map_or_else(String::new, |constant| name::field(&constant.name))
    }

    /// A shape as documentation writes it, `[B, T, d_model]`.
    pub fn shape(&self, ty: &Type) -> String {
        let size = |dim: &Dim| match dim.extent() {
            None => dim.to_string(),
            Some(n) => {
                let size = self.constants().size(n);
                self.mentioned.borrow_mut().extend(size.constants());
                self.words(&size)
            }
        };
        format!("[{}]", ty.shape.iter().map(size).collect::<Vec<_>>().join(", "))
    }

    /// A size in words of documentation.
    fn words(&self, size: &Size) -> String {
        let join = |sizes: &[Size], sign: &str| {
            let all: Vec<String> = sizes.iter().map(|size| self.words(size)).collect();
            all.join(sign)
        };
        match size {
            Size::Number(n) => n.to_string(),
            Size::Constant(id) => self.constant(*id),
            Size::Sum(sizes) => join(sizes, " + "),
            Size::Product(sizes) => join(sizes, " * "),
            Size::Quotient(size, by) => format!("{} / {}", self.words(size), self.words(by)),
        }
    }

    /// Whether a module that is a function reads numbers of `Config`, which is found out once.
    ///
    /// # Errors
    /// Those of `find`.
    pub fn reads_config(&self, id: ModuleId, find: impl FnOnce() -> Result<bool, Bug>) -> Result<bool, Bug> {
        if let Some(known) = self.reading.borrow().get(&id) {
            return Ok(*known);
        }
        let found = find()?;
        self.reading.borrow_mut().insert(id, found);
        Ok(found)
    }

    /// The numbers that documentation names.
    pub fn mentioned(&self) -> BTreeSet<ConstantId> {
        self.mentioned.borrow().clone()
    }
}

fn missing(id: ModuleId) -> Bug {
    Bug(format!("the emitted program has no module {}", id.0))
}
