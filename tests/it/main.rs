//! All integration tests in one binary, so that they are linked only once.

#![cfg(test)]

/// Counts the bytes on the heap.
#[global_allocator]
static HEAP: peak_alloc::PeakAlloc = peak_alloc::PeakAlloc;

mod advice;
mod allowed;
#[cfg(feature = "interp")]
mod backend;
mod bad;
mod begin;
mod borrowed;
mod brackets;
#[cfg(feature = "interp")]
mod capabilities;
mod circles;
mod cli;
mod compare;
mod compiled;
mod costs;
mod crash;
mod draw;
mod elsewhere;
mod explain;
mod expression;
mod files;
mod fit;
mod fixes;
mod fresh;
mod front;
mod good;
mod guide;
mod hostile;
mod hosts;
#[cfg(feature = "learn")]
mod hub;
mod inspect;
#[cfg(feature = "interp")]
mod interp;
mod large;
mod laws;
mod learn;
#[cfg(feature = "interp")]
#[path = "../emitted/listed.rs"]
mod listed;
mod masks;
#[cfg(feature = "interp")]
mod measured;
#[cfg(feature = "interp")]
mod memory;
mod names;
mod notation;
mod numeric;
#[cfg(feature = "interp")]
mod observe;
mod overwrite;
mod own;
mod package;
#[cfg(feature = "learn")]
mod picture;
mod png;
mod program;
#[cfg(feature = "flex")]
mod project;
mod pytorch;
mod random;
mod readers;
#[cfg(feature = "interp")]
mod reading;
mod reference;
mod regressions;
mod report;
mod shell;
mod short;
mod specs;
mod start;
mod syntax;
mod tidy;
#[cfg(all(target_os = "linux", feature = "flex"))]
mod trace;
#[cfg(feature = "interp")]
mod train;
#[cfg(feature = "interp")]
mod tune;
mod typos;
#[cfg(all(unix, feature = "flex"))]
mod unreadable;
mod watch;
mod wires;
#[cfg(feature = "interp")]
mod writing;
mod yaml;
