//! The ops that go by the backend, in a form that is the same on all of them: what the fast ones are compared
//! with, and what `trafoc build --standalone` writes into a model.

pub mod attention;
pub mod gelu;
