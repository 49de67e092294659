//! A step of AdamW.

/// The numbers of a step of AdamW (Loshchilov and Hutter 2019), for one parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamW {
    /// `beta_1` and `beta_2`: how much of the first and of the second moment is kept in a step.
    pub betas: [f32; 2],
    /// What is added to the root of the second moment, so that it is never zero.
    pub eps: f32,
    /// The learning rate of this step, with the factor of the schedule.
    pub rate: f64,
    /// The weight decay, before it is multiplied by the learning rate.
    pub decay: f64,
    /// The number of the step, from 1.
    pub time: i32,
}

impl AdamW {
    /// What the two moments are divided by: they began as zeros, so early averages are too small.
    pub fn corrections(&self) -> [f32; 2] {
        self.betas.map(|beta| 1.0 - beta.powi(self.time))
    }

    /// The factor on the parameter: what weight decay leaves of it.
    pub fn kept(&self) -> f64 {
        1.0 - self.rate * self.decay
    }
}
