//! All integration tests in one binary: linked once, run together.

#[cfg(test)]
mod compiled;
#[cfg(test)]
mod report;
#[cfg(test)]
mod specs;
