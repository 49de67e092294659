//! Random numbers that are the same everywhere: one recorded seed, and a stream for every purpose.
//!
//! A stream is identified by its purpose and a number (the epoch, the example), so its position never needs
//! to be saved: the order, the masking and the sampling of any step can be computed again from the seed
//! alone.

/// A stream of random numbers: xoshiro256** (Blackman and Vigna 2018), initialised with SplitMix64.
#[derive(Clone, Debug)]
pub struct Stream {
    state: [u64; 4],
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Stream {
    /// The stream of a seed for a purpose and a number.
    pub fn new(seed: u64, purpose: &str, number: u64) -> Self {
        let mut state = seed;
        let mut mixed = split_mix(&mut state);
        for word in purpose.bytes().map(u64::from).chain([u64::MAX, number]) {
            state = mixed ^ word;
            mixed = split_mix(&mut state);
        }
        let mut next = || split_mix(&mut state);
        Self { state: [next(), next(), next(), next()] }
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = b.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        result
    }

    /// Uniform in `[0, 1)`.
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform in `0..count`, without bias (Lemire 2019); 0 if `count` is 0.
    pub fn below(&mut self, count: u64) -> u64 {
        if count == 0 {
            return 0;
        }
        let floor = count.wrapping_neg() % count;
        loop {
            let product = u128::from(self.bits()) * u128::from(count);
            if product as u64 >= floor {
                return (product >> 64) as u64;
            }
        }
    }

    /// Shuffles a list (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last as u64 + 1) as usize;
            items.swap(last, other);
        }
    }
}
