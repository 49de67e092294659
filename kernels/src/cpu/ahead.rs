//! Numbers that a processor is asked to read from memory before they are needed. By itself it reads ahead only within a page of
//! memory, so at the beginning of every page it would wait.

/// The bytes that a processor reads at a time.
const LINE: usize = 64;

/// Asks for these numbers to be read into the second cache of the core.
#[inline(always)]
pub fn fetch<T>(numbers: &[T]) {
    const SECOND: i32 = 1;
    for line in numbers.chunks(LINE / size_of::<T>()) {
        branches::prefetch_read_data::<_, SECOND>(line.as_ptr());
    }
}

/// The numbers that are still to be fetched, of some that are read one after the other.
pub struct Ahead<'a, T>(&'a [T]);

impl<'a, T> Ahead<'a, T> {
    /// How many bytes lie between what is used and what is fetched.
    const DISTANCE: usize = 4 << 10;

    /// The numbers from `first` on are used next.
    #[inline(always)]
    pub fn new(numbers: &'a [T], first: usize) -> Self {
        Self(numbers.get(first + Self::DISTANCE / size_of::<T>()..).unwrap_or_default())
    }

    /// Nothing is fetched.
    pub fn none() -> Self {
        Self(&[])
    }

    /// Fetches the next `count` numbers.
    #[inline(always)]
    pub fn next(&mut self, count: usize) {
        if let Some((now, rest)) = self.0.split_at_checked(count) {
            fetch(now);
            self.0 = rest;
        }
    }
}
