//! Pictures of numbers and graphs: SVG, and an HTML page that contains them.
//!
//! A [`Figure`] is a finished picture: a size, a description in words, and SVG made of classes, to which
//! [`theme`] assigns colours for light and dark. [`Canvas`] writes it; [`chart`], [`bars`] and [`heatmap`]
//! are pictures with axes and legends; [`model`] is the architecture of a graph; [`page`] is a page of
//! sections, pictures and tables that needs no network and no server.
//!
//! All text is either a constant or has passed through [`text::escape`]: a name from a spec or a token from
//! an input can neither close an element nor reverse the direction of the text after it. The same input
//! gives the same bytes: pictures depend on no clock, no random number and no hash order, and coordinates
//! have two decimals.

pub mod bars;
pub mod canvas;
pub mod chart;
pub mod comparison;
pub mod heatmap;
mod mark;
pub mod model;
pub mod page;
#[cfg(feature = "png")]
pub mod png;
pub mod raster;
pub mod scale;
pub mod text;
pub mod theme;

pub use canvas::{Anchor, Canvas, Figure};
pub use mark::MARKS;
pub use page::Page;
