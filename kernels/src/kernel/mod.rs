//! One file an op, or a family of them.

mod alibi;
mod append;
mod attention;
mod attention_dropout;
mod attention_weights;
mod cache;
mod dropout;
mod experts;
mod fresh;
mod gelu;
mod heads;
mod heap;
mod linear;
#[cfg(feature = "safetensors")]
mod load;
mod masks;
mod norms;
mod offset_norms;
mod pool;
mod positions;
mod prepend;
mod quick_gelu;
mod relative_buckets;
mod rotary;
mod route;
mod sinusoid;
mod unembed;

pub use alibi::*;
pub use append::*;
pub use attention::*;
pub use attention_dropout::*;
pub use attention_weights::*;
pub use cache::*;
pub use dropout::*;
pub use experts::*;
pub use fresh::*;
pub use gelu::*;
pub use heads::*;
pub use heap::*;
pub use linear::*;
#[cfg(feature = "safetensors")]
pub use load::*;
pub use masks::*;
pub use norms::*;
pub use offset_norms::*;
pub use pool::*;
pub use positions::*;
pub use prepend::*;
pub use quick_gelu::*;
pub use relative_buckets::*;
pub use rotary::*;
pub use route::*;
pub use sinusoid::*;
pub use unembed::*;
