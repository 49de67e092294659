//! `Config`: the sizes of the model by the spec's names, and the lists of numbers that the author gave.

use std::collections::BTreeSet;

use super::file::File;
use super::name;
use super::number::harmless;
use super::syntax::{Argument, Class, Def, Expr, Item, Stmt};
use crate::emit::program::constants::{ConstantId, Number, TableId};

/// The class with the numbers that a file uses, and those that users of a model ask for.
pub fn class(file: &File<'_>, used: &BTreeSet<ConstantId>) -> Item {
    let constants = &file.program.constants;
    let mut fields = Vec::new();
    let mut properties = Vec::new();
    // In the order of the constants, which is that of their ids.
    for id in constants.with_formulas(used) {
        let Some(constant) = constants.all.get(id.0) else { continue };
        let (ty, value) = match constant.value {
            Number::Int(n) => ("int", Expr::Int(n)),
            Number::Float(x) => ("float", Expr::Float(x)),
        };
        let called = name::field(&constant.name);
        let doc = lowered(&harmless(&constant.doc));
        let Some(formula) = &constant.formula else {
            fields.push(Stmt::Field { name: called, ty: ty.into(), value: Some(value), doc });
            continue;
        };
        let mut formula = file.size(formula);
        // A property reads the fields of its own object.
        formula.change(&mut |expr| {
            if let Expr::Constant(id) = expr {
                *expr = Expr::own(&file.constant(*id));
            }
        });
        // A number that follows from others is a property, so that `head_dim` follows when a user changes
        // `d_model` in `Config`.
        let mut property = Def::method(&called, Vec::new(), ty.into());
        property.decorators = vec!["property".into()];
        property.doc = vec![doc];
        property.body = vec![Stmt::Return(formula)];
        properties.push(property);
    }
    // Frozen, because a model that exists would not change with its sizes.
    let frozen = Expr::Import("dataclass").call(Vec::<Argument>::new()).with("frozen", Expr::Bool(true));
    Item::Class(Class {
        decorators: vec![frozen],
        name: "Config".to_owned(),
        base: None,
        doc: vec!["The sizes of the model, by their names in the spec.".to_owned()],
        fields,
        methods: properties,
    })
}

/// The fields of that class with their values: the numbers that do not follow from others.
pub fn sizes(file: &File<'_>, used: &BTreeSet<ConstantId>) -> Vec<(String, Number)> {
    let constants = &file.program.constants;
    let all = constants.with_formulas(used);
    let all = all.iter().filter_map(|id| constants.all.get(id.0)).filter(|c| c.formula.is_none());
    all.map(|constant| (name::field(&constant.name), constant.value)).collect()
}

/// The statement that defines a table as a list.
pub fn table(file: &File<'_>, id: TableId) -> Option<Item> {
    let table = file.program.constants.tables.get(id.0)?;
    let values = table.values.iter().map(|x| Expr::Float(*x)).collect();
    Some(Item::Stmt(Stmt::set(&table_name(file, id), Expr::List(values))))
}

/// The name of a table in the file.
pub fn table_name(file: &File<'_>, id: TableId) -> String {
    file.program.constants.tables.get(id.0).map_or_else(String::new, |table| table.name.to_ascii_uppercase())
}

/// Documentation whose constants are spelled as fields of `Config`.
fn lowered(doc: &str) -> String {
    let part =
        // Every second part is between backticks.
        |(at, part): (usize, &str)| if at % 2 == 1 { part.to_ascii_lowercase() } else { part.to_owned() };
    doc.split('`').enumerate().map(part).collect::<Vec<_>>().join("`")
}
