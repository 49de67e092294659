//! The catalogue: everything a slot of a spec can hold, each part in a file of its own.
//!
//! A part is a record of fields (its documentation is the user manual) and its maths as nodes of the
//! graph. After lowering nothing knows a part by name. Adding one: a file in the slot's folder and a
//! row in its `slot!`; the spec, the schema, `explain`, the interpreter, emission and costs follow.

pub mod activation;
pub mod attention;
pub mod embed;
pub mod ffn;
pub mod gain;
pub mod head;
pub mod init;
pub mod mask;
pub mod norm;
pub mod position;
pub mod scope;

pub use activation::Activation;
pub use attention::{Attention, Cross};
pub use embed::Embed;
pub use ffn::Ffn;
pub use gain::Gain;
pub use head::Head;
pub use init::Init;
pub use norm::Norm;
pub use position::Position;
