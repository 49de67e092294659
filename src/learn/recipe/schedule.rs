//! How the learning rate changes over the steps.

use crate::field::record::{record, slot};
use crate::field::{Count, Share, Size};

record! {
    defaults;
    /// Constant after a linear warm-up.
    pub struct Constant as "constant" {
        /// The number of steps in which the learning rate rises from 0.
        warmup: Count = value(Count(0));
    }
}
record! {
    /// Falls linearly to the last step, after a linear warm-up.
    pub struct Linear as "linear" {
        /// The number of steps in which the learning rate rises from 0.
        warmup: Count = value(Count(0));
        /// The share of the learning rate at the end; the step after the last one would have it.
        floor: Share = value(Share(0.0));
    }
}
record! {
    /// Falls along half a cosine to the last step, after a linear warm-up (Loshchilov and Hutter 2017).
    pub struct Cosine as "cosine" {
        /// The number of steps in which the learning rate rises from 0.
        warmup: Count = value(Count(0));
        /// The share of the learning rate at the end; the step after the last one would have it.
        floor: Share = value(Share(0.0));
    }
}
record! {
    /// `d_model^-0.5 min(step^-0.5, step warmup^-1.5)` (Vaswani et al. 2017); the optimizer's learning
    /// rate is a factor on it, 1 in the paper.
    pub struct Noam as "noam" {
        /// The number of steps in which the learning rate rises.
        warmup: Size = value(Size(4000));
    }
}
record! {
    /// `min(step / warmup, sqrt(warmup / step))`: the learning rate is reached at the end of the warm-up.
    pub struct InverseSqrt as "inverse_sqrt" {
        /// The number of steps in which the learning rate rises.
        warmup: Size = value(Size(4000));
    }
}

slot! {
    /// How the learning rate changes over the steps.
    pub enum Schedule as "schedule" {
        /// Constant after a linear warm-up.
        "constant" => Constant(Constant),
        /// Falls linearly from 1 after the warm-up to `floor` at the end.
        "linear" => Linear(Linear),
        /// Falls along half a cosine from 1 after the warm-up to `floor` at the end (Loshchilov and Hutter
        /// 2017).
        "cosine" => Cosine(Cosine),
        /// Falls with the square root of the step: `d_model^-0.5 min(step^-0.5, step warmup^-1.5)` (Vaswani
        /// et al. 2017). The learning rate multiplies it; it is 1 in the paper.
        "noam" => Noam(Noam),
        /// Falls with the square root of the step: `min(step / warmup, sqrt(warmup / step))`.
        "inverse_sqrt" => InverseSqrt(InverseSqrt),
    }
}

impl Schedule {
    /// The number of steps in which the learning rate rises.
    pub fn warmup(&self) -> u64 {
        match self {
            Self::Constant(s) => *s.warmup,
            Self::Linear(s) => *s.warmup,
            Self::Cosine(s) => *s.warmup,
            Self::Noam(s) => *s.warmup,
            Self::InverseSqrt(s) => *s.warmup,
        }
    }

    /// The schedule of a recipe that names none.
    pub fn usual() -> Self {
        Self::Constant(Constant::usual())
    }

    /// The share of the learning rate to which a schedule falls at the end; 0 for those without one.
    pub fn floor(&self) -> f64 {
        match self {
            Self::Linear(s) => *s.floor,
            Self::Cosine(s) => *s.floor,
            Self::Constant(_) | Self::Noam(_) | Self::InverseSqrt(_) => 0.0,
        }
    }

    /// The factor on the learning rate at a `step`, counted from 1, of `total` steps.
    pub fn factor(&self, step: u64, total: u64, d_model: u64) -> f64 {
        // The powers of `noam` are infinite at step 0.
        let at = step.max(1) as f64;
        // As in Hugging Face's schedules, the first step after the warm-up has the full rate, and the floor
        // would be that of the step after the last one.
        let after = |warmup: u64| {
            // A warm-up may take the whole training. Then no step is left to fall in, and none to divide by.
            let length = total.saturating_sub(warmup).max(1) as f64;
            (step.saturating_sub(warmup + 1) as f64 / length).min(1.0)
        };
        // The rate rises from `1 / warmup`, and not from 0, with which the first step would change nothing.
        let falling = |warmup: u64, floor: f64, shape: fn(f64) -> f64| match step <= warmup {
            true => at / warmup.max(1) as f64,
            false => floor + (1.0 - floor) * shape(after(warmup)),
        };
        match self {
            Self::Constant(s) => falling(*s.warmup, 0.0, |_| 1.0),
            Self::Linear(s) => falling(*s.warmup, *s.floor, |done| 1.0 - done),
            Self::Cosine(s) => {
                falling(*s.warmup, *s.floor, |done| 0.5 * (1.0 + (std::f64::consts::PI * done).cos()))
            }
            Self::Noam(s) => {
                let warmup = *s.warmup as f64;
                // Both terms meet at the end of the warm-up, so the smaller one is first the rise and then
                // the fall.
                (d_model as f64).powf(-0.5) * at.powf(-0.5).min(at * warmup.powf(-1.5))
            }
            Self::InverseSqrt(s) => {
                let warmup = *s.warmup as f64;
                (at / warmup).min((warmup / at).sqrt())
            }
        }
    }
}
