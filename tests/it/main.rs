//! All integration tests in one binary, so that they are linked only once.

/// Counts the bytes on the heap.
#[cfg(test)]
#[global_allocator]
static HEAP: peak_alloc::PeakAlloc = peak_alloc::PeakAlloc;

#[cfg(test)]
mod advice;
#[cfg(test)]
#[cfg(feature = "interp")]
mod backend;
#[cfg(test)]
mod bad;
#[cfg(test)]
mod begin;
#[cfg(test)]
#[cfg(feature = "interp")]
mod capabilities;
#[cfg(test)]
mod circles;
#[cfg(test)]
mod cli;
#[cfg(test)]
mod compare;
#[cfg(test)]
mod compiled;
#[cfg(test)]
mod costs;
#[cfg(test)]
mod draw;
#[cfg(test)]
mod explain;
#[cfg(test)]
mod expression;
#[cfg(test)]
mod files;
#[cfg(test)]
mod fit;
#[cfg(test)]
mod fresh;
#[cfg(test)]
mod front;
#[cfg(test)]
mod good;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod hosts;
#[cfg(test)]
#[cfg(feature = "learn")]
mod hub;
#[cfg(test)]
mod inspect;
#[cfg(test)]
#[cfg(feature = "interp")]
mod interp;
#[cfg(test)]
mod large;
#[cfg(test)]
mod laws;
#[cfg(test)]
mod learn;
#[cfg(test)]
#[cfg(feature = "interp")]
#[path = "../emitted/listed.rs"]
mod listed;
#[cfg(test)]
mod masks;
#[cfg(test)]
#[cfg(feature = "interp")]
mod measured;
#[cfg(test)]
#[cfg(feature = "interp")]
mod memory;
#[cfg(test)]
mod names;
#[cfg(test)]
mod notation;
#[cfg(test)]
mod numeric;
#[cfg(test)]
#[cfg(feature = "interp")]
mod observe;
#[cfg(test)]
mod overwrite;
#[cfg(test)]
mod package;
#[cfg(test)]
#[cfg(feature = "learn")]
mod picture;
#[cfg(test)]
mod png;
#[cfg(test)]
mod program;
#[cfg(test)]
#[cfg(feature = "flex")]
mod project;
#[cfg(test)]
mod pytorch;
#[cfg(test)]
mod random;
#[cfg(test)]
mod readers;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod regressions;
#[cfg(test)]
mod report;
#[cfg(test)]
mod shell;
#[cfg(test)]
mod specs;
#[cfg(test)]
mod start;
#[cfg(test)]
mod syntax;
#[cfg(test)]
mod tidy;
#[cfg(test)]
#[cfg(feature = "interp")]
mod train;
#[cfg(test)]
#[cfg(feature = "interp")]
mod tune;
#[cfg(test)]
mod typos;
#[cfg(test)]
#[cfg(feature = "interp")]
mod writing;
#[cfg(test)]
mod yaml;
