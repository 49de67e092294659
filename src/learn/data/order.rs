//! Divides examples into batches and orders them. The result is determined by the seed.

use super::batch::Batch;
use super::prepare::Dataset;
use crate::learn::random::Stream;
use crate::learn::recipe::Split;

/// Produces the batches of training steps and of evaluations.
#[derive(Debug)]
pub struct Loader<'d> {
    dataset: &'d Dataset,
    /// The batches of one epoch, with the number of the epoch.
    plan: Option<(u64, Vec<Vec<usize>>)>,
}

impl<'d> Loader<'d> {
    /// A loader of prepared data.
    pub fn new(dataset: &'d Dataset) -> Self {
        Self { dataset, plan: None }
    }

    /// The number of steps in one epoch.
    pub fn steps_of_epoch(&self) -> u64 {
        let batch = &self.dataset.batch;
        let examples = self.dataset.train.len() as u64;
        examples.div_ceil(*batch.size).div_ceil(*batch.accumulate).max(1)
    }

    /// The epoch of a step; both are counted from 0.
    pub fn epoch(&self, step: u64) -> u64 {
        step / self.steps_of_epoch()
    }

    /// The batches of a step, counted from 0: one, or several if gradients are accumulated. The gradient of
    /// a step is that of the mean over all their predictions.
    pub fn step(&mut self, step: u64) -> Vec<Batch> {
        let (epoch, at) = (self.epoch(step), step % self.steps_of_epoch());
        if self.plan.as_ref().is_none_or(|(known, _)| *known != epoch) {
            self.plan = Some((epoch, self.dataset.plan(epoch)));
        }
        let count = usize::try_from(*self.dataset.batch.accumulate).unwrap_or(usize::MAX);
        let first = usize::try_from(at).unwrap_or(usize::MAX).saturating_mul(count);
        let plan = self.plan.iter().flat_map(|(_, plan)| plan);
        let chosen = plan.skip(first).take(count);
        chosen.map(|indices| self.dataset.collate(Split::Train, indices, epoch)).collect()
    }

    /// The batches of a part, in the order of its files, with at most `limit` examples.
    pub fn part(&self, split: Split, limit: Option<u64>) -> impl Iterator<Item = Batch> + use<'d> {
        let dataset = self.dataset;
        let size = usize::try_from(*dataset.batch.size).unwrap_or(usize::MAX);
        let most = limit.and_then(|l| usize::try_from(l).ok()).unwrap_or(usize::MAX);
        let count = dataset.part(split).map_or(0, |p| p.len()).min(most);
        (0..count).step_by(size).map(move |first| {
            let indices: Vec<usize> = (first..count.min(first.saturating_add(size))).collect();
            dataset.collate(split, &indices, 0)
        })
    }
}

impl Dataset {
    /// The batches of an epoch, as indices of examples.
    fn plan(&self, epoch: u64) -> Vec<Vec<usize>> {
        let size = usize::try_from(*self.batch.size).unwrap_or(usize::MAX);
        let mut order: Vec<usize> = (0..self.train.len()).collect();
        let mut stream = Stream::new(self.seed, "order", epoch);
        stream.shuffle(&mut order);
        let bucket = usize::try_from(*self.batch.bucket).unwrap_or(usize::MAX);
        if bucket == 0 {
            return order.chunks(size).map(<[usize]>::to_vec).collect();
        }
        for group in order.chunks_mut(bucket.saturating_mul(size)) {
            group.sort_by_key(|i| self.train.length(*i));
        }
        // The last batch may be smaller. It stays at the end of the epoch, so that accumulation sees it
        // last.
        let mut plan: Vec<Vec<usize>> = order.chunks(size).map(<[usize]>::to_vec).collect();
        let whole = plan.len() - usize::from(plan.last().is_some_and(|b| b.len() < size));
        if let Some(batches) = plan.get_mut(..whole) {
            stream.shuffle(batches);
        }
        plan
    }
}
