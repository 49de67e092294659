//! The sizes of heads, and what is done to keys and values of all heads.

use crate::ir::Extent;
use crate::ir::ValueId;
use crate::ir::build::{Builder, Built};
use crate::ir::infer::Mismatch;
use crate::ir::op::{Op, Sequence};
use crate::parts::scope::Scope;

/// The sizes of the heads of an attention.
#[derive(Clone, Copy, Debug)]
pub struct Heads {
    /// The number of query heads, `H`.
    pub heads: Extent,
    /// The number of key and value heads; each is shared by `heads / kv_heads` query heads.
    pub kv_heads: Extent,
    /// Features of a query's or a key's head.
    pub head_dim: Extent,
    /// Features of a value's head.
    pub value_dim: Extent,
}

impl Heads {
    /// The sizes by their names in the spec. Values are as wide as keys unless they have their own width.
    // Sizes that are equal are one size with one name, so that readers see which number they follow.
    pub fn new(heads: u64, kv_heads: u64, head_dim: Extent, value_dim: u64) -> Self {
        let of_heads = Extent::new("heads", heads);
        Self {
            heads: of_heads,
            kv_heads: if kv_heads == heads { of_heads } else { Extent::new("kv_heads", kv_heads) },
            head_dim,
            value_dim: if head_dim == value_dim { head_dim } else { Extent::new("value_dim", value_dim) },
        }
    }

    /// Features of all queries, `heads * head_dim`.
    pub fn queries(&self) -> Extent {
        self.heads * self.head_dim
    }

    /// Features of all keys, `kv_heads * head_dim`.
    pub fn keys(&self) -> Extent {
        self.kv_heads * self.head_dim
    }

    /// Features of all values, `kv_heads * value_dim`.
    pub fn values(&self) -> Extent {
        self.kv_heads * self.value_dim
    }

    /// Features of the joined heads, `heads * value_dim`.
    pub fn joined(&self) -> Extent {
        self.heads * self.value_dim
    }

    /// How many heads of queries share one of keys.
    pub fn repeats(&self) -> Extent {
        // The rule `GROUPS` has ensured that this is a whole number.
        self.heads.divide(self.kv_heads).unwrap_or(Extent::from(1))
    }
}

/// Keys or values, preceded by those in the cache if the stack decodes.
pub fn cached(b: &mut Builder, scope: &Scope, name: &str, x: ValueId) -> Built {
    if scope.sequence == Sequence::Cached { b.op(name, Op::Cache, &[x]) } else { Ok(x) }
}

/// Repeats every key and value head as often as query heads share it.
pub fn repeated(
    b: &mut Builder,
    times: Extent,
    k: ValueId,
    v: ValueId,
) -> Result<(ValueId, ValueId), Mismatch> {
    if times == 1 {
        return Ok((k, v));
    }
    Ok((b.op("k", Op::RepeatHeads { times }, &[k])?, b.op("v", Op::RepeatHeads { times }, &[v])?))
}
