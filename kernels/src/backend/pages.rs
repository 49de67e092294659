//! Memory for packed weights. Reading weights takes the time of a product with a few rows, and with pages of 4 KiB a
//! processor spends some of it looking up where each page is. Linux is therefore asked for huge pages.

use std::ops::{Deref, DerefMut};

use bytemuck::Pod;

/// Zeros that are overwritten once and read often, in huge pages if they are many and the system has such pages.
#[derive(Debug)]
pub struct Pages<T>(Memory<T>);

#[derive(Debug)]
enum Memory<T> {
    /// Memory of its own from the system, of which the numbers are a part.
    #[cfg(all(feature = "flex", target_os = "linux"))]
    Mapped(memmap2::MmapMut, std::ops::Range<usize>),
    /// Memory from the allocator.
    Allocated(Vec<T>),
}

impl<T: Pod> Pages<T> {
    /// `len` zeros.
    pub fn zeros(len: usize) -> Self {
        #[cfg(all(feature = "flex", target_os = "linux"))]
        if let Some((map, part)) = map(len * size_of::<T>()) {
            return Self(Memory::Mapped(map, part));
        }
        Self(Memory::Allocated(vec![T::zeroed(); len]))
    }
}

/// A mapping in huge pages, and the part of it that has this many bytes and begins with a huge page; all are zero. `None`
/// if they do not fill a huge page, or if the system has none.
#[cfg(all(feature = "flex", target_os = "linux"))]
fn map(bytes: usize) -> Option<(memmap2::MmapMut, std::ops::Range<usize>)> {
    /// A huge page of most processors.
    const HUGE: usize = 2 << 20;
    if bytes < HUGE {
        return None;
    }
    // One more, because the mapping may begin in the middle of one. What is not written takes no memory.
    let map = memmap2::MmapMut::map_anon(bytes + HUGE).ok()?;
    let begin = map.as_ptr().addr();
    let from = begin.next_multiple_of(HUGE) - begin;
    // What is left after whole huge pages has small ones, so that nothing is filled up.
    map.advise_range(memmap2::Advice::HugePage, from, bytes / HUGE * HUGE).ok()?;
    Some((map, from..from + bytes))
}

impl<T: Pod> Deref for Pages<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match &self.0 {
            #[cfg(all(feature = "flex", target_os = "linux"))]
            Memory::Mapped(map, part) => bytemuck::cast_slice(&map[part.clone()]),
            Memory::Allocated(numbers) => numbers,
        }
    }
}

impl<T: Pod> DerefMut for Pages<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.0 {
            #[cfg(all(feature = "flex", target_os = "linux"))]
            Memory::Mapped(map, part) => bytemuck::cast_slice_mut(&mut map[part.clone()]),
            Memory::Allocated(numbers) => numbers,
        }
    }
}
