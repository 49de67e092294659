//! Dropout that is decided by the place of a number, so that a backward pass can decide it once more.

/// Which numbers of a table are kept, and the factor on these.
#[derive(Clone, Copy, Debug)]
pub struct Dropout {
    key: [u32; 2],
    /// Numbers whose hash is below it are dropped.
    dropped: u32,
    factor: f32,
}

impl Dropout {
    /// Each number is dropped with probability `p`, from 0 up to and including 1.
    pub fn new(p: f64, key: [u32; 2]) -> Self {
        // `as` takes what is beyond the range of a `u32` as its largest number.
        let dropped = (p * 2f64.powi(32)).round() as u32;
        Self { key, dropped, factor: if p < 1.0 { (1.0 / (1.0 - p)) as f32 } else { 0.0 } }
    }

    /// Writes the factor of each number of a row: 0 where it is dropped, `1 / (1 - p)` elsewhere.
    #[inline(always)]
    pub fn factors(self, row: usize, to: &mut [f32]) {
        let [first, second] = self.key_of_row(row as u64);
        for (column, to) in to.iter_mut().enumerate() {
            let hash = mix(mix(first.wrapping_add(column as u32)) ^ second);
            *to = if hash < self.dropped { 0.0 } else { self.factor };
        }
    }

    fn key_of_row(self, row: u64) -> [u32; 2] {
        let [first, second] = self.key;
        let (low, high) = (row as u32, (row >> 32) as u32);
        let first = mix(mix(first ^ low) ^ high);
        [first, mix(second ^ first)]
    }
}

/// A bijection of 32 bits in which each bit of the result depends on all bits of `x` (`lowbias32`, one of the hash
/// functions that Chris Wellons found by search, 2018).
#[inline(always)]
fn mix(x: u32) -> u32 {
    let x = (x ^ x >> 16).wrapping_mul(0x7feb_352d);
    let x = (x ^ x >> 15).wrapping_mul(0x846c_a68b);
    x ^ x >> 16
}
