//! Random numbers for initialisation: Philox 4x32-10 (Salmon et al. 2011).
//!
//! The generator is counter-based: block `n` of a stream is a function of `n` and the key alone. Every
//! parameter has its own stream, keyed by seed and path. So the initial values of one parameter do not
//! depend on another, and threads can fill parts of one tensor without changing a number. It is written
//! here instead of taken from a crate because initial values must stay the same across versions of all
//! dependencies.

/// A stream of blocks of random bits.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    key: [u32; 2],
}

/// The multipliers of Philox 4x32.
const MULTIPLIERS: [u64; 2] = [0xD251_1F53, 0xCD9E_8D57];
/// What Philox 4x32 adds to its key after each round: the fractions of the golden ratio and the root of 3.
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];

impl Stream {
    /// The stream with this key.
    pub fn of_key(key: [u32; 2]) -> Self {
        Self { key }
    }

    /// The stream of a parameter's path under a seed.
    pub fn new(seed: u64, path: &str) -> Self {
        // FNV-1a of the path, mixed with the seed by the finaliser of SplitMix64.
        let hash = path
            .bytes()
            .fold(0xCBF2_9CE4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01B3));
        // The multiplication spreads the few bits of a small seed over all of them.
        let mut z = hash ^ seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^= z >> 31;
        Self::of_key([z as u32, (z >> 32) as u32])
    }

    /// Block `index` of `lane`: 128 random bits. Lanes of one stream are independent.
    pub fn block(&self, index: u64, lane: u64) -> [u32; 4] {
        let mut counter = [index as u32, (index >> 32) as u32, lane as u32, (lane >> 32) as u32];
        let mut key = self.key;
        for _ in 0..10 {
            let a = MULTIPLIERS[0] * u64::from(counter[0]);
            let b = MULTIPLIERS[1] * u64::from(counter[2]);
            counter = [
                (b >> 32) as u32 ^ counter[1] ^ key[0],
                b as u32,
                (a >> 32) as u32 ^ counter[3] ^ key[1],
                a as u32,
            ];
            key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
        }
        counter
    }

    /// Two standard normal numbers from half a block (Box and Muller 1958).
    pub fn normals(bits: [u32; 2]) -> [f64; 2] {
        // `unit` is never 0, whose logarithm would be infinite.
        let radius = (-2.0 * unit(bits[0]).ln()).sqrt();
        let (sin, cos) = (std::f64::consts::TAU * unit(bits[1])).sin_cos();
        [radius * cos, radius * sin]
    }
}

/// A number in the open interval (0, 1).
pub fn unit(bits: u32) -> f64 {
    (f64::from(bits) + 0.5) / 4_294_967_296.0
}
