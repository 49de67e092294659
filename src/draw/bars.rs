//! Bar charts: one bar per name, several bars in a group, or several stacked into one.

use super::scale::{Scale, Unit};
use super::text::{fit, width};
use super::theme::series;
use super::{Anchor, Canvas, Figure};

/// A chart of horizontal bars: one row per name, from top to bottom.
#[derive(Clone, Debug)]
pub struct Bars {
    /// What the chart shows.
    pub title: String,
    /// The title of the axis, with its unit.
    pub axis: String,
    /// The names of the bars.
    pub names: Vec<String>,
    /// Series with their names; each has a value for every entry of `names`.
    pub series: Vec<(String, Vec<f64>)>,
    /// For charts of a single series: the interval of each value.
    pub ranges: Vec<(f64, f64)>,
    /// Whether the series are stacked; otherwise their bars are below each other.
    pub is_stacked: bool,
    /// What the axis counts.
    pub unit: Unit,
    /// Formats a value for the end of its bar and for the text under the pointer.
    pub word: fn(f64) -> String,
    /// The length of the longest bar in pixels.
    pub room: f64,
}

/// The height of a bar in pixels.
const BAR: f64 = 15.0;

impl Bars {
    /// A chart of a single series, to which no series has been added yet.
    pub fn new(title: &str, axis: &str, names: Vec<String>, word: fn(f64) -> String) -> Self {
        let (title, axis) = (title.to_owned(), axis.to_owned());
        let (series, ranges) = (Vec::new(), Vec::new());
        let unit = Unit::Count;
        Self { title, axis, names, series, ranges, is_stacked: false, unit, word, room: 380.0 }
    }

    /// The same bars with an axis in this unit.
    pub fn counting(mut self, unit: Unit) -> Self {
        self.unit = unit;
        self
    }

    /// The same chart with one more series.
    pub fn with(mut self, name: &str, values: Vec<f64>) -> Self {
        self.series.push((name.to_owned(), values));
        self
    }

    /// The same chart with an interval for each value.
    pub fn with_ranges(mut self, ranges: Vec<(f64, f64)>) -> Self {
        self.ranges = ranges;
        self
    }

    /// The same chart with its series stacked.
    pub fn stacked(mut self) -> Self {
        self.is_stacked = true;
        self
    }

    /// The chart as a picture. Values that are negative or not finite are drawn as 0.
    pub fn figure(&self) -> Figure {
        let value = |part: usize, i: usize| {
            // A bar has a length, so a value below zero or a NaN of a failed run has none.
            let found = self.series.get(part).and_then(|(_, values)| values.get(i)).copied();
            found.filter(|v| v.is_finite()).unwrap_or(0.0).max(0.0)
        };
        // Rows keep their height, and the picture its axis, before a series is added.
        let parts = self.series.len().max(1);
        let total = |i: usize| (0..parts).map(|p| value(p, i)).sum::<f64>();
        // A stacked bar is as long as all of its parts together.
        let lengths = (0..self.names.len()).flat_map(|i| {
            let singles = (0..parts).map(move |p| (p, i));
            singles.map(|(p, i)| if self.is_stacked { total(i) } else { value(p, i) })
        });
        let highs = self.ranges.iter().map(|range| range.1).filter(|high| high.is_finite());
        // Bars begin at 0, so the axis includes it.
        let scale = Scale::counting(self.unit, lengths.chain([0.0]).chain(highs));
        // A long name is shortened instead of taking the room of the bars.
        let names = self.names.iter().fold(0f64, |most, name| most.max(width(name, 11.0).min(200.0)));
        // Another font than the one that was measured may be a little wider.
        let left = 20.0 + names * 1.06;
        let each = if self.is_stacked { BAR + 7.0 } else { BAR * parts as f64 + 9.0 };
        let has_legend = self.series.iter().any(|(name, _)| !name.is_empty());
        let mut canvas = Canvas::default();
        canvas.text((12.0, 20.0), Anchor::Start, "label strong fill-ink", &self.title);
        let mut top = 34.0;
        if has_legend {
            let mut x = 14.0;
            for (i, (name, _)) in self.series.iter().enumerate() {
                let w = 22.0 + width(name, 11.0) * 1.08;
                // A legend that is wider than the chart continues on the next line.
                if x + w > left + self.room + 60.0 {
                    x = 14.0;
                    top += 17.0;
                }
                canvas.rect((x, top - 3.0, 10.0, 10.0), 2.0, &format!("fill-{}", series(i)));
                canvas.text((x + 14.0, top + 6.0), Anchor::Start, "small fill-ink", name);
                x += w + 6.0;
            }
            top += 22.0;
        }
        let bottom = top + each * self.names.len() as f64;
        for (tick, word) in scale.ticks() {
            let x = left + self.room * scale.share(tick);
            canvas.line((x, top), (x, bottom), "stroke-grid thin");
            canvas.text((x, bottom + 15.0), Anchor::Middle, "small fill-muted", &word);
        }
        for (i, name) in self.names.iter().enumerate() {
            let y = top + each * i as f64 + 3.5;
            let middle = y + (each - 7.0) / 2.0 + 4.0;
            canvas.text((left - 6.0, middle), Anchor::End, "small fill-ink", &fit(name, 11.0, 200.0));
            let mut x = left;
            for part in 0..self.series.len() {
                let long = self.room * scale.share(value(part, i));
                let (at, y) = if self.is_stacked { (x, y) } else { (left, y + BAR * part as f64) };
                let named = self.series.get(part).map(|(name, _)| name.as_str()).unwrap_or_default();
                // The name is written once more, because next to its bar it may be shortened.
                let hover = format!("{name} {named}: {}", (self.word)(value(part, i)));
                canvas.group("", &[], &hover, |canvas| {
                    canvas.rect((at, y, long, BAR - 1.5), 1.5, &format!("fill-{}", series(part)));
                });
                x += long;
                if !self.is_stacked {
                    let word = (self.word)(value(part, i));
                    let range = self.ranges.get(i).map(|(low, high)| (scale.share(*low), scale.share(*high)));
                    // The interval may reach beyond the end of its bar, where the value would be written.
                    let end = range.map_or(long, |(_, high)| long.max(self.room * high));
                    if let Some((low, high)) = range {
                        let (low, high) = (left + self.room * low, left + self.room * high);
                        let middle = y + BAR / 2.0 - 0.75;
                        canvas.line((low, middle), (high, middle), "stroke-ink");
                        for x in [low, high] {
                            canvas.line((x, middle - 4.0), (x, middle + 4.0), "stroke-ink");
                        }
                    }
                    canvas.text((left + end + 5.0, y + 11.0), Anchor::Start, "small fill-muted", &word);
                }
            }
            // The parts of a stacked bar have no room for their values, so only the total is written.
            if self.is_stacked {
                canvas.text((x + 5.0, y + 11.0), Anchor::Start, "small fill-muted", &(self.word)(total(i)));
            }
        }
        // Last, because the bars begin at this line and would cover half of it.
        canvas.line((left, top), (left, bottom), "stroke-line");
        canvas.text((left + self.room / 2.0, bottom + 33.0), Anchor::Middle, "small fill-ink", &self.axis);
        let size = (left + self.room + 84.0, bottom + 44.0);
        let description = format!("Bars of {} for {}.", self.axis, self.names.join(", "));
        Figure::new(canvas, size, &self.title, &description)
    }
}
