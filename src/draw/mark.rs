//! The texts by which files that trafoc has drawn are recognised.

/// The mark in pictures.
pub(super) const PICTURE: &str = "drawn by trafoc";

/// The mark in pages.
pub(super) const PAGE: &str = "<meta name=\"generator\" content=\"trafoc\">";

/// All marks: one of them is near the beginning of each picture and page.
pub const MARKS: &[&str] = &[PICTURE, PAGE];
