//! From numbers and graphs to pictures: SVG, and one HTML page that holds them.
//!
//! A [`Figure`] is a finished picture: a size, what it shows in words, and SVG made of classes, whose
//! colours [`theme`] gives for light and dark. [`Canvas`] writes it; [`chart`], [`bars`] and [`heatmap`]
//! are figures with axes and legends; [`model`] is the architecture of a graph; [`page`] is a page of
//! sections, figures and tables that needs no network and no server.
//!
//! Everything is text of ours or text that [`text::escape`] has made harmless: a name from a spec or a
//! token from an input can neither end an element nor turn what follows it around. The same input gives
//! the same bytes: no clock, no random number, no hash order, and coordinates of two decimals.

pub mod bars;
pub mod canvas;
pub mod chart;
pub mod comparison;
pub mod heatmap;
pub mod model;
pub mod page;
#[cfg(feature = "png")]
pub mod png;
pub mod raster;
pub mod scale;
pub mod text;
pub mod theme;

pub use canvas::{Anchor, Canvas, Figure};
pub use page::Page;
