//! A short number by which data are recognised: a run that continues must find the examples that it began with.

use serde::{Deserialize, Serialize};

use super::examples::{Part, Sequences};

/// The number of examples, and a number that follows from all of them in their order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fingerprint {
    /// The number of examples.
    pub examples: u64,
    /// 64 bits after FNV-1a (Fowler, Noll and Vo), in hexadecimal digits, which every reader of JSON keeps exact.
    pub digest: String,
}

impl Fingerprint {
    /// That of the examples with which steps are made.
    pub fn of(part: &Part) -> Self {
        let mut digest = Digest(0xcbf2_9ce4_8422_2325);
        match part {
            Part::Texts { ids, .. } => digest.lists(ids),
            // The texts are for metrics alone.
            Part::Pairs { source, target, language, .. } => {
                digest.lists(source);
                digest.lists(target);
                digest.numbers(language.iter().copied());
            }
            Part::Classes { text, second, labels } => {
                [text, second, labels].iter().for_each(|l| digest.lists(l))
            }
            Part::Images { pixels, labels } => {
                digest.numbers(pixels.iter().map(|x| x.to_bits()));
                digest.numbers(labels.iter().copied());
            }
            Part::Tags { ids, tags } => [ids, tags].iter().for_each(|l| digest.lists(l)),
            Part::Spans { question, answer, contexts, questions } => {
                digest.lists(question);
                for (first, last) in answer.iter().map(|answer| answer.unwrap_or((u32::MAX, u32::MAX))) {
                    digest.numbers([first, last].into_iter());
                }
                contexts.iter().for_each(|context| digest.numbers(context.ids.iter().copied()));
                questions.iter().for_each(|question| digest.add(question.context as u64));
            }
        }
        Self { examples: part.len() as u64, digest: format!("{:016x}", digest.0) }
    }
}

struct Digest(u64);

impl Digest {
    /// A whole number at once in place of its bytes: a large data set is read in a fraction of a second.
    fn add(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x0100_0000_01b3);
        // A product never carries high bits down, so numbers that differ there alone would not be told apart.
        self.0 ^= self.0 >> 32;
    }

    fn numbers(&mut self, numbers: impl Iterator<Item = u32>) {
        let mut count = 0u64;
        for number in numbers {
            self.add(u64::from(number));
            count += 1;
        }
        // With the length, so that a number cannot move from one list to the next.
        self.add(count);
    }

    fn lists(&mut self, lists: &Sequences) {
        (0..lists.len()).for_each(|i| self.numbers(lists.get(i).iter().copied()));
    }
}
