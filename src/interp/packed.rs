//! A matrix of weights that is packed.

use trafoc_kernels::Packed;

/// A matrix of the weights that was packed for inference.
#[derive(Clone, Debug)]
pub(super) struct PackedMatrix {
    pub packed: Packed,
    /// The shape in memory before it was packed.
    pub shape: [usize; 2],
    /// Whether it is the table of logits, `[V, D]`, and not the weight of a projection, `[in, out]`.
    pub is_table: bool,
}

impl PackedMatrix {
    /// The numbers that products use, in the order and shape of files: `[out, in]` or `[V, D]`.
    pub fn of_files(&self) -> Vec<f32> {
        // A table is packed as the weight of logits, `[D, V]`, and a projection as `[in, out]`: files have
        // the transpose of either.
        let [rows, columns] = if self.is_table { [self.shape[1], self.shape[0]] } else { self.shape };
        transpose(&self.packed.unpacked(), rows, columns)
    }

    /// The numbers that products use, in the order and shape that they had in memory: `[in, out]` or
    /// `[V, D]`.
    pub fn of_memory(&self) -> Vec<f32> {
        if self.is_table { self.of_files() } else { self.packed.unpacked() }
    }
}

/// `[rows, columns]` → `[columns, rows]`, in tiles that fit the cache.
pub(super) fn transpose(values: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    // A tile is 4 KiB to read and 4 KiB to write.
    const TILE: usize = 32;
    let mut out = vec![0.0; values.len()];
    for top in (0..rows).step_by(TILE) {
        for left in (0..columns).step_by(TILE) {
            for r in top..(top + TILE).min(rows) {
                for c in left..(left + TILE).min(columns) {
                    out[c * rows + r] = values[r * columns + c];
                }
            }
        }
    }
    out
}
