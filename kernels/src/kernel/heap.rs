//! Modules on the heap.

use burn::module::{Content, Devices, ModuleDisplay, ModuleDisplayDefault, ModuleMapper, ModuleVisitor};
use burn::prelude::*;

/// A module on the heap. With it, a `Vec` of blocks of different sizes does not take the size of the largest
/// block for every element. It adds no segment to the paths of parameters.
#[derive(Clone, Debug)]
pub struct Heap<M>(Box<M>);

impl<M: Module> Heap<M> {
    /// Moves a module to the heap.
    pub fn new(module: M) -> Self {
        Self(Box::new(module))
    }
}

impl<M> std::ops::Deref for Heap<M> {
    type Target = M;

    fn deref(&self) -> &M {
        &self.0
    }
}

// Written by hand, because with burn's derive the field would be a segment of the paths of parameters.
impl<M: Module> Module for Heap<M> {
    fn visit<V: ModuleVisitor>(&self, visitor: &mut V) {
        self.0.visit(visitor);
    }

    fn map<V: ModuleMapper>(self, mapper: &mut V) -> Self {
        Self::new((*self.0).map(mapper))
    }

    fn collect_devices(&self, devices: Devices) -> Devices {
        self.0.collect_devices(devices)
    }

    fn to_device(self, device: &Device) -> Self {
        Self::new((*self.0).to_device(device))
    }

    fn fork(self, device: &Device) -> Self {
        Self::new((*self.0).fork(device))
    }

    fn valid(&self) -> Self {
        Self::new(self.0.valid())
    }

    fn train(self) -> Self {
        Self::new((*self.0).train())
    }

    fn materialize(self) -> Self {
        Self::new((*self.0).materialize())
    }
}

impl<M: ModuleDisplay> ModuleDisplayDefault for Heap<M> {
    fn content(&self, content: Content) -> Option<Content> {
        content.add_single(&*self.0).optional()
    }
}

impl<M: ModuleDisplay> ModuleDisplay for Heap<M> {}
