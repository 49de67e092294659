//! Random numbers that are the same everywhere: one recorded seed, and a stream for every purpose.
//!
//! A stream is identified by its purpose and a number (the epoch, the example), so its position never needs
//! to be saved: the order, the masking and the sampling of any step can be computed again from the seed
//! alone.
//!
//! A [`Counter`] has no position at all: number `n` of a stream and place `n` of a permutation are computed
//! from `n`, without those before it. So the order of the examples and the masking of tokens do not depend on
//! the number of threads, processes or machines that compute a step, and another program can compute them.

/// A stream of random numbers: xoshiro256** (Blackman and Vigna 2018), initialised with SplitMix64.
#[derive(Clone, Debug)]
pub struct Stream {
    state: [u64; 4],
}

/// What SplitMix64 adds to its state with every number: 2^64 divided by the golden ratio, made odd.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The number that SplitMix64 gives in this state (Steele, Lea and Flood 2014).
fn mix(state: u64) -> u64 {
    let mut z = state.wrapping_add(GOLDEN);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The words from which a key is mixed: the bytes of a purpose, then the numbers. The word between them is no
/// byte, so different purposes never give the same words.
fn words<'n>(purpose: &'n str, numbers: &'n [u64]) -> impl Iterator<Item = u64> + 'n {
    purpose.bytes().map(u64::from).chain([u64::MAX]).chain(numbers.iter().copied())
}

impl Stream {
    /// The stream of a seed for a purpose and a number.
    pub fn new(seed: u64, purpose: &str, number: u64) -> Self {
        let mut state = seed;
        for word in words(purpose, &[number]) {
            state = mix(state) ^ word;
        }
        // SplitMix64 fills the state, as the authors of xoshiro advise: from a state with few set bits, the
        // first numbers would be similar.
        let mut next = || {
            state = state.wrapping_add(GOLDEN);
            mix(state)
        };
        Self { state: [next(), next(), next(), next()] }
    }

    /// The next 64 random bits of the stream.
    pub fn bits(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        // The constants are those of the published generator; another program must find the same numbers.
        let result = b.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        result
    }

    /// The next number of the stream, uniform in `[0, 1)`.
    pub fn uniform(&mut self) -> f64 {
        // 53 bits, as many as a double has, so that nothing is rounded up to 1.
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform in `0..count`, without bias (Lemire 2019); 0 if `count` is 0.
    pub fn below(&mut self, count: u64) -> u64 {
        if count == 0 {
            return 0;
        }
        // The 2^64 numbers cannot be divided evenly. The `2^64 mod count` that are too many are drawn again.
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

/// The rounds of the Feistel network in [`Counter::item`]: twice the four of Luby and Rackoff's proof, which
/// is about long halves, while those of a small data set have a few bits.
const ROUNDS: u64 = 8;

/// Random numbers by their index: SplitMix64 (Steele, Lea and Flood 2014), whose number `n` is a function of
/// its key and `n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    key: u64,
}

impl Counter {
    /// The numbers of a seed for a purpose and some numbers, such as the epoch and the example.
    pub fn new(seed: u64, purpose: &str, numbers: &[u64]) -> Self {
        // Mixed after every word, so that seeds, epochs and examples that differ by 1 have unrelated keys.
        Self { key: words(purpose, numbers).fold(mix(seed), |key, word| mix(key ^ word)) }
    }

    /// Number `n`: 64 random bits.
    pub fn bits(self, n: u64) -> u64 {
        mix(self.key.wrapping_add(n.wrapping_mul(GOLDEN)))
    }

    /// Number `n`, uniform in `[0, 1)`.
    pub fn uniform(self, n: u64) -> f64 {
        (self.bits(n) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Number `n`, uniform in `0..count`; 0 if `count` is 0. Some values are more probable than others by
    /// less than `count / 2^32`.
    pub fn below(self, n: u64, count: u32) -> u32 {
        // Unlike `Stream::below`, this never draws again: number `n` must depend on `n` alone.
        (((self.bits(n) >> 32) * u64::from(count)) >> 32) as u32
    }

    /// The item at a `place` of a random order of `count` items, without computing the others: a Feistel
    /// network (Luby and Rackoff 1988) permutes all numbers of twice as many bits as its halves have, and is
    /// applied until its result is an item (cycle walking, Black and Rogaway 2002), fewer than four times on
    /// average. A `place` that is not below `count` is returned as it is.
    pub fn item(self, count: u64, place: u64) -> u64 {
        if place >= count {
            return place;
        }
        let bits = u64::BITS - (count - 1).leading_zeros();
        // Both halves have the same length, because every round exchanges them.
        let half = bits.div_ceil(2).max(1);
        let mask = (1u64 << half) - 1;
        let mut at = place;
        loop {
            let (mut left, mut right) = (at >> half, at & mask);
            for round in 0..ROUNDS {
                // A number of its own for each half and round, so that no two rounds use the same function.
                let mixed = self.bits(right.wrapping_mul(ROUNDS).wrapping_add(round)) & mask;
                (left, right) = (right, left ^ mixed);
            }
            at = left << half | right;
            if at < count {
                return at;
            }
        }
    }
}
