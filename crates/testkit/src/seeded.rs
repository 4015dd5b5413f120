//! A sequence of choices from a seed: the same seed makes the same run.

/// Choices from a seed (SplitMix64, Steele, Lea and Flood 2014). Not for secrets.
#[derive(Clone, Debug)]
pub struct Seeded(u64);

impl Seeded {
    /// The sequence of `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; 0 if `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.bits().checked_rem(end).unwrap_or(0)
    }

    /// True `of_hundred` times in a hundred.
    pub fn chance(&mut self, of_hundred: u64) -> bool {
        self.below(100) < of_hundred
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_makes_the_published_sequence() {
        // First outputs for the seed 1234567 of the reference code at https://prng.di.unimi.it/splitmix64.c
        let mut seeded = Seeded::new(1_234_567);
        let first: Vec<u64> = (0..3).map(|_| seeded.bits()).collect();
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }
}
