//! The catalogue of parts: everything that a slot of a spec can contain, each part in its own file.
//!
//! A part consists of a record of fields, whose documentation is the user manual, and of its computation as
//! nodes of the graph. After lowering, no code refers to a part by name. To add a part, add a file in the
//! slot's folder and a row in its `slot!`; the spec, the schema, `explain`, the interpreter, emission and
//! costs follow.

pub mod activation;
pub mod attention;
pub mod embed;
pub mod ffn;
pub mod gain;
pub mod head;
pub mod init;
pub mod mask;
pub mod norm;
pub mod own;
pub mod pattern;
pub mod position;
pub mod scope;
pub mod scores;
pub mod stack_norm;

pub use activation::Activation;
pub use attention::{Attention, Cross};
pub use embed::Embed;
pub use ffn::Ffn;
pub use gain::Gain;
pub use head::Head;
pub use init::Init;
pub use norm::Norm;
pub use own::OwnPart;
pub use position::Position;
pub use stack_norm::StackNorm;
