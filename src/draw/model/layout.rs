//! Positions for all boxes of an outline.
//!
//! Data flows upwards, as in papers: the input is at the bottom. A row has boxes that can be computed at
//! the same time. Residual connections run around their rows on the right; the encoder's output enters on
//! the left. While a scene is built, `y` grows upwards from its bottom and `x` to both sides of its axis;
//! `Scene::flipped` converts this to pixels.

use super::outline::{Flow, Form, Frame, From, Item, Outline, Part};
use super::wires::{GAP, Routes, Row};
pub use super::wires::{Spot, Wire};
use crate::diag::count::counted;
use crate::draw::text::{mono_width, width};
use crate::report::number;

/// The distance between a frame and its content.
const PAD: f64 = 16.0;
/// If a stack has more frames than this, those that look like one before them are drawn closed: a pattern of
/// dozens of blocks would make a picture of many screens.
const FEW_FRAMES: usize = 4;
/// The most frames of a stack that are drawn open, if all of them are different.
const OPEN_FRAMES: usize = 6;
/// Texts in another font may be wider by this factor; widths are computed for one that a viewer may not have.
const SLACK: f64 = 1.06;

/// A frame around blocks.
#[derive(Clone, Debug)]
pub struct Border<'a> {
    /// The position of the frame.
    pub spot: Spot,
    /// The block inside; `None` for a frame around a cycle.
    pub frame: Option<&'a Frame>,
    /// Whether the block inside is left out.
    pub is_closed: bool,
}

/// Text next to a frame.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// The edge of the text at the frame.
    pub x: f64,
    /// The vertical centre of the lines.
    pub y: f64,
    /// Whether the text is to the left of `x`.
    pub is_left: bool,
    /// The lines with their classes, from top to bottom.
    pub lines: Vec<(LineKind, String)>,
}

impl Panel {
    /// The space that the text takes.
    pub fn spot(&self) -> Spot {
        let w = self.lines.iter().map(|(line, text)| line.width(text)).fold(0f64, f64::max);
        let h = self.lines.iter().map(|(line, _)| line.height().0).sum();
        let middle = if self.is_left { self.x - w / 2.0 } else { self.x + w / 2.0 };
        Spot { x: middle, y: self.y, w, h }
    }
}

/// The positions of everything in the picture.
#[derive(Clone, Debug, Default)]
pub struct Scene<'a> {
    /// Items that are drawn as boxes, circles or words.
    pub items: Vec<(Spot, &'a Item)>,
    /// The frames, outer ones first.
    pub borders: Vec<Border<'a>>,
    /// The connections between items.
    pub wires: Vec<Wire>,
    /// The texts next to frames.
    pub panels: Vec<Panel>,
    /// Where the encoder's output is needed: the last corners of its connection, which comes from the left.
    ports: Vec<Vec<(f64, f64)>>,
    /// The extent to the left and to the right of the axis.
    pub reach: (f64, f64),
    /// The height of the scene.
    pub height: f64,
    /// The top of the item with the result, from which a connection leads on.
    end: (f64, f64),
}

impl<'a> Scene<'a> {
    fn absorb(&mut self, other: Scene<'a>, dx: f64, dy: f64) {
        let point = |(x, y): (f64, f64)| (x + dx, y + dy);
        self.items.extend(other.items.into_iter().map(|(spot, item)| (spot.moved(dx, dy), item)));
        self.borders.extend(other.borders.into_iter().map(|b| Border { spot: b.spot.moved(dx, dy), ..b }));
        self.wires.extend(other.wires.into_iter().map(|wire| Wire {
            points: wire.points.into_iter().map(point).collect(),
            has_arrow: wire.has_arrow,
        }));
        self.panels.extend(other.panels.into_iter().map(|p| Panel { x: p.x + dx, y: p.y + dy, ..p }));
        self.ports.extend(other.ports.into_iter().map(|port| port.into_iter().map(point).collect()));
        self.reach.0 = self.reach.0.max(other.reach.0 - dx);
        self.reach.1 = self.reach.1.max(other.reach.1 + dx);
    }

    fn wire(&mut self, points: Vec<(f64, f64)>) {
        self.wires.push(Wire::arrow(points));
    }

    /// The scene in pixels, with `y` growing downwards.
    fn flipped(mut self) -> Self {
        let height = self.height;
        let turn = |y: f64| height - y;
        for (spot, _) in &mut self.items {
            spot.y = turn(spot.y);
        }
        for border in &mut self.borders {
            border.spot.y = turn(border.spot.y);
        }
        for wire in &mut self.wires {
            wire.points.iter_mut().for_each(|p| p.1 = turn(p.1));
        }
        for panel in &mut self.panels {
            panel.y = turn(panel.y);
        }
        self
    }
}

/// The whole model, in pixels from the top left corner.
pub fn layout(outline: &Outline) -> Scene<'_> {
    let last = outline.columns.len().saturating_sub(1);
    let mut scene = Scene::default();
    let mut x = 0.0;
    let mut encoder: Option<(f64, f64)> = None;
    for (i, column) in outline.columns.iter().enumerate() {
        // Texts are at the outer side of the columns.
        let is_left = last > 0 && i == 0;
        let part = flow(&column.flow, is_left);
        let wanted = part.ports.clone();
        let axis = x + part.reach.0;
        let (end, right, height) = (part.end, axis + part.reach.1, part.height);
        // Halfway between the columns.
        let memory_at = x - 26.0;
        scene.absorb(part, axis, 0.0);
        scene.height = scene.height.max(height);
        if let Some(from) = encoder
            && !wanted.is_empty()
        {
            // The connection leaves the encoder above it, and comes down between the columns.
            let up = from.1 + 18.0;
            for port in wanted {
                let corners = port.into_iter().map(|(x, y)| (axis + x, y));
                let height = corners.clone().next().map_or(up, |first| first.1);
                let mut points = vec![from, (from.0, up), (memory_at, up), (memory_at, height)];
                points.extend(corners);
                scene.wire(points);
            }
            scene.height = scene.height.max(up + 4.0);
        }
        encoder = Some((axis + end.0, end.1));
        x = right + 52.0;
    }
    scene.reach = (0.0, (x - 52.0).max(0.0));
    scene.flipped()
}

/// A flow around its own axis, starting at `(0, 0)`.
fn flow(flow: &Flow, is_left: bool) -> Scene<'_> {
    let ranks = ranks(flow);
    let rows = ranks.iter().copied().max().map_or(0, |most| most + 1);
    let uniform = uniform_width(flow);
    let mut scene = Scene::default();
    let mut spots: Vec<Spot> = vec![Spot { x: 0.0, y: 0.0, w: 0.0, h: 0.0 }; flow.items.len()];
    let mut placed: Vec<Row> = Vec::new();
    // In a frame, the line that enters it needs room below the first row.
    let starts_inside = flow.items.iter().any(|i| i.inputs.contains(&From::Start));
    let start = if starts_inside { GAP + 4.0 } else { 0.0 };
    let mut stacks: Vec<(usize, Scene<'_>)> = Vec::new();
    for row in 0..rows {
        let here = |i: &usize| ranks.get(*i) == Some(&row);
        let members: Vec<usize> = (0..flow.items.len()).filter(here).collect();
        let (mut main, mut small, mut aside) = (Vec::new(), Vec::new(), Vec::new());
        for i in members {
            let Some(item) = flow.items.get(i) else { continue };
            let size = match &item.form {
                Form::Stack(parts) => {
                    let inner = stack(parts, is_left);
                    let size = (inner.reach.0 + inner.reach.1, inner.height);
                    stacks.push((i, inner));
                    size
                }
                Form::Input | Form::Output | Form::Box(_) | Form::Step | Form::Sum | Form::Product => {
                    size_of(item, uniform)
                }
            };
            match (item.is_aside, &item.form) {
                (true, _) => aside.push((i, size)),
                (false, Form::Step) => small.push((i, size)),
                (false, _) => main.push((i, size)),
            }
        }
        // Steps are drawn next to the boxes of their row; in a row without boxes they take their place.
        if main.is_empty() {
            std::mem::swap(&mut main, &mut small);
        }
        let height = [&main, &small, &aside].into_iter().flatten().fold(0f64, |h, (_, size)| h.max(size.1));
        // Items that read what is next to each other below are in the same order, so that their lines need not
        // cross.
        main.sort_by(|a, b| {
            middle_of_inputs(flow, a.0, &spots).total_cmp(&middle_of_inputs(flow, b.0, &spots))
        });
        if main.len() > 1 {
            // If several boxes are fed from the side, each has its source to its left.
            for (i, size) in std::mem::take(&mut aside) {
                let fed = main.iter().position(|(j, _)| is_fed_by(flow, *j, i)).unwrap_or(0);
                main.insert(fed, (i, size));
            }
        }
        let whole = main.iter().map(|(_, s)| s.0).sum::<f64>() + 24.0 * main.len().saturating_sub(1) as f64;
        let mut x = -whole / 2.0;
        let mut put = |i: usize, x: f64, (w, h): (f64, f64)| {
            if let Some(spot) = spots.get_mut(i) {
                *spot = Spot { x, y: 0.0, w, h };
            }
        };
        for (i, size) in &main {
            put(*i, x + size.0 / 2.0, *size);
            x += size.0 + 24.0;
        }
        let mut right = whole / 2.0;
        for (i, size) in &small {
            put(*i, right + 16.0 + size.0 / 2.0, *size);
            right += 16.0 + size.0;
        }
        let mut left = whole / 2.0;
        for (i, size) in &aside {
            let offset = left + 30.0 + size.0 / 2.0;
            put(*i, -offset, *size);
            left += 30.0 + size.0;
        }
        placed.push(Row { right, bottom: 0.0, top: height });
    }
    // Where lines run beside each other below a row is known once all rows have their width, and how high the
    // rows lie once that is known.
    let routes = Routes::of(flow, &ranks, &spots, &placed);
    let mut y = start;
    for (rank, row) in placed.iter_mut().enumerate() {
        y += routes.room(rank);
        *row = Row { bottom: y, top: y + row.top, ..*row };
        y = row.top + GAP;
    }
    for (spot, rank) in spots.iter_mut().zip(&ranks) {
        // A row is as high as its highest item, and the others are centred in it.
        spot.y = placed.get(*rank).map_or(0.0, |row| (row.bottom + row.top) / 2.0);
    }
    // There is no gap above the last row.
    scene.height = (y - GAP).max(0.0);
    // The place of a stack is known only when all rows below it are.
    for (i, inner) in stacks {
        if let Some(spot) = spots.get(i) {
            let bottom = spot.bottom();
            scene.absorb(inner, 0.0, bottom);
        }
    }
    let drawn = routes.drawn(&spots, &placed);
    scene.wires.extend(drawn.wires);
    scene.ports.extend(drawn.ports);
    scene.reach.1 = scene.reach.1.max(drawn.right);
    for (spot, item) in spots.iter().zip(&flow.items) {
        if !matches!(item.form, Form::Stack(_)) {
            scene.reach.0 = scene.reach.0.max(spot.w / 2.0 - spot.x);
            scene.reach.1 = scene.reach.1.max(spot.w / 2.0 + spot.x);
            scene.items.push((*spot, item));
        }
    }
    scene.end = flow.end.and_then(|i| spots.get(i)).map_or((0.0, 0.0), |spot| (spot.x, spot.top()));
    scene
}

/// The mean place of what an item reads below it; the axis if it reads nothing there.
fn middle_of_inputs(flow: &Flow, item: usize, spots: &[Spot]) -> f64 {
    let inputs = flow.items.get(item).map_or(&[][..], |item| &item.inputs);
    let places: Vec<f64> = inputs
        .iter()
        .filter_map(|from| match from {
            From::Start => Some(0.0),
            From::Item(j) if flow.items.get(*j).is_some_and(|item| item.is_aside) => None,
            From::Item(j) => spots.get(*j).map(|spot| spot.x),
            From::Memory => None,
        })
        .collect();
    places.iter().sum::<f64>() / places.len().max(1) as f64
}

/// Whether the output of `by` is an input of `item`.
fn is_fed_by(flow: &Flow, item: usize, by: usize) -> bool {
    flow.items.get(item).is_some_and(|item| item.inputs.contains(&From::Item(by)))
}

/// The row of every item: one above the highest of its inputs.
fn ranks(flow: &Flow) -> Vec<usize> {
    let mut ranks: Vec<usize> = Vec::new();
    // Every item comes after its inputs.
    for item in &flow.items {
        let above = item.inputs.iter().map(|from| match from {
            From::Item(j) if flow.items.get(*j).is_some_and(|item| item.is_aside) => 0,
            From::Item(j) => ranks.get(*j).map_or(0, |rank| rank + 1),
            From::Start | From::Memory => 0,
        });
        ranks.push(above.max().unwrap_or(0));
    }
    // An item that is drawn aside is next to the item it feeds.
    for (i, item) in flow.items.iter().enumerate() {
        let fed = flow.items.iter().position(|other| other.inputs.contains(&From::Item(i)));
        if let (true, Some(fed)) = (item.is_aside, fed)
            && let Some(rank) = ranks.get(fed).copied()
            && let Some(slot) = ranks.get_mut(i)
        {
            *slot = rank;
        }
    }
    ranks
}

/// The width that all boxes in the main line of a flow share: that of the widest.
fn uniform_width(flow: &Flow) -> f64 {
    let boxes = flow.items.iter().filter(|i| matches!(i.form, Form::Box(_)) && !i.is_aside);
    boxes.map(|item| text_width(item) + 28.0).fold(150.0, f64::max)
}

fn text_width(item: &Item) -> f64 {
    let label = width(&item.label, 13.0);
    SLACK * item.notes.iter().map(|note| width(note, 11.0)).fold(label, f64::max)
}

fn size_of(item: &Item, uniform: f64) -> (f64, f64) {
    let notes = item.notes.len() as f64;
    match item.form {
        Form::Input | Form::Output => (text_width(item), 18.0 + 14.0 * notes),
        Form::Box(_) => {
            let w = if item.is_aside { text_width(item) + 22.0 } else { uniform };
            (w, 30.0 + 14.0 * notes)
        }
        Form::Step => (text_width(item) + 20.0, 22.0 + 14.0 * notes),
        Form::Sum | Form::Product => (20.0, 20.0),
        Form::Stack(_) => (0.0, 0.0),
    }
}

/// The blocks of a stack, from bottom to top.
fn stack(parts: &[Part], is_left: bool) -> Scene<'_> {
    let mut scene = Scene::default();
    let mut y = 0.0;
    let mut drawn: Vec<&Frame> = Vec::new();
    let all: usize = parts.iter().map(|p| p.frames.len()).sum();
    for (i, part) in parts.iter().enumerate() {
        if i > 0 {
            scene.wire(vec![(0.0, y), (0.0, y + GAP)]);
            y += GAP;
        }
        // Frames are counted over all parts, because all of them are in one picture.
        let inner = frames(part, is_left, &mut drawn, all > FEW_FRAMES);
        let height = inner.height;
        scene.absorb(inner, 0.0, y);
        y += height;
    }
    scene.height = y;
    scene
}

/// The frames of one part. `drawn` has those of the stack that are drawn open.
fn frames<'a>(part: &'a Part, is_left: bool, drawn: &mut Vec<&'a Frame>, is_long: bool) -> Scene<'a> {
    let is_cycle = part.frames.len() > 1;
    let pad = if is_cycle { PAD } else { 0.0 };
    let mut inside = Scene::default();
    let mut y = if is_cycle { GAP } else { 0.0 };
    for (i, frame) in part.frames.iter().enumerate() {
        if i > 0 {
            inside.wire(vec![(0.0, y), (0.0, y + GAP)]);
            y += GAP;
        }
        let is_closed =
            is_long && (drawn.len() >= OPEN_FRAMES || drawn.iter().any(|other| frame.looks_like(other)));
        if !is_closed {
            drawn.push(frame);
        }
        let times = if is_cycle { &frame.times } else { &part.times };
        let one = block(frame, times, is_left, is_closed);
        let height = one.height;
        inside.absorb(one, 0.0, y);
        y += height;
    }
    if !is_cycle {
        inside.height = y;
        return inside;
    }
    y += GAP;
    let widest = inside.borders.iter().fold(0f64, |w, b| w.max(b.spot.w));
    let spot = Spot { x: 0.0, y: y / 2.0, w: widest + 2.0 * pad, h: y };
    let mut scene = Scene::default();
    scene.borders.push(Border { spot, frame: None, is_closed: false });
    let first = part.frames.first().map_or(0.0, |_| GAP);
    inside.wire(vec![(0.0, 0.0), (0.0, first)]);
    inside.wires.push(Wire { points: vec![(0.0, y - GAP), (0.0, y)], has_arrow: false });
    // The frames of a cycle get the same width, and their texts begin at the same edge.
    for border in inside.borders.iter_mut().filter(|b| b.frame.is_some()) {
        border.spot.w = widest;
    }
    let at = if is_left { -1.0 } else { 1.0 };
    // Texts move outside of the frame that surrounds all blocks of the cycle.
    for panel in &mut inside.panels {
        let distance = spot.w / 2.0 + 12.0;
        panel.x = at * distance;
        let words = panel.lines.iter().map(|(line, text)| line.width(text)).fold(0f64, f64::max);
        let reach = if is_left { &mut inside.reach.0 } else { &mut inside.reach.1 };
        *reach = reach.max(distance + words);
    }
    scene.absorb(inside, 0.0, 0.0);
    scene.height = y;
    let lines = vec![(LineKind::Times, part.times.clone())];
    scene.panels.push(Panel { x: at * (spot.w / 2.0 + 12.0), y: y - 12.0, is_left, lines });
    scene.reach.0 = scene.reach.0.max(spot.w / 2.0);
    scene.reach.1 = scene.reach.1.max(spot.w / 2.0);
    scene
}

/// One block in its frame, with the text next to it.
fn block<'a>(frame: &'a Frame, times: &str, is_left: bool, is_closed: bool) -> Scene<'a> {
    let mut scene = Scene::default();
    let (w, h);
    if is_closed {
        // The words beside it may be higher than its name.
        let beside = panel(frame, times, 0.0, 0.0, is_left).spot().h;
        (w, h) = (SLACK * width(&super::facts::words(&frame.title), 13.0) + 40.0, beside.max(36.0));
        scene.borders.push(Border { spot: Spot { x: 0.0, y: h / 2.0, w, h }, frame: Some(frame), is_closed });
    } else {
        let inner = flow(&frame.flow, true);
        let half = inner.reach.0.max(inner.reach.1) + PAD;
        (w, h) = (2.0 * half, inner.height + GAP);
        scene.borders.push(Border { spot: Spot { x: 0.0, y: h / 2.0, w, h }, frame: Some(frame), is_closed });
        let end = inner.end;
        scene.absorb(inner, 0.0, 0.0);
        scene.wires.push(Wire { points: vec![end, (0.0, h)], has_arrow: false });
    }
    scene.height = h;
    let panel = panel(frame, times, w / 2.0 + 12.0, h / 2.0, is_left);
    let words = panel.lines.iter().map(|(line, text)| line.width(text)).fold(0f64, f64::max);
    let reach = w / 2.0 + 12.0 + words;
    scene.reach.0 = scene.reach.0.max(if is_left { reach } else { w / 2.0 });
    scene.reach.1 = scene.reach.1.max(if is_left { w / 2.0 } else { reach });
    scene.panels.push(panel);
    scene
}

fn panel(frame: &Frame, times: &str, x: f64, y: f64, is_left: bool) -> Panel {
    let mut lines: Vec<(LineKind, String)> = Vec::new();
    if !times.is_empty() {
        lines.push((LineKind::Times, times.to_owned()));
    }
    lines.push((LineKind::Title, super::facts::words(&frame.title)));
    if !frame.layers.is_empty() {
        lines.push((LineKind::Note, frame.layers.clone()));
    }
    lines.extend(frame.equations.iter().map(|line| (LineKind::Equation, line.clone())));
    let each = if times.is_empty() { "" } else { " each" };
    lines.push((LineKind::Note, format!("{}{each}", counted(number::count(frame.parameters), "parameter"))));
    Panel { x: if is_left { -x } else { x }, y, is_left, lines }
}

/// A line of text next to a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    /// How often the frame is repeated.
    Times,
    /// The name of the block.
    Title,
    /// One equation of the block, in the font for code.
    Equation,
    /// The number of parameters, in smaller letters.
    Note,
}

impl LineKind {
    /// The class in [`crate::draw::theme`].
    pub fn class(self) -> &'static str {
        match self {
            LineKind::Times => "big fill-ink",
            LineKind::Title => "strong fill-ink",
            LineKind::Equation => "mono fill-ink",
            LineKind::Note => "small fill-muted",
        }
    }

    /// The height, and how far above its lower edge the text begins.
    pub fn height(self) -> (f64, f64) {
        match self {
            LineKind::Times => (24.0, 9.0),
            LineKind::Title | LineKind::Equation | LineKind::Note => (15.0, 4.0),
        }
    }

    fn width(self, text: &str) -> f64 {
        match self {
            LineKind::Times => width(text, 18.0) * SLACK,
            LineKind::Title => width(text, 12.0) * 1.12,
            LineKind::Equation => mono_width(text, 11.0) * 1.02,
            LineKind::Note => width(text, 11.0) * SLACK,
        }
    }
}
