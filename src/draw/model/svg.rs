//! The outline as a picture.

use super::difference::{Change, Changes};
use super::facts;
use super::layout::{Border, Panel, Scene, Spot, layout};
use super::outline::{Form, Item, Outline};
use crate::draw::text::width;
use crate::draw::{Anchor, Canvas, Figure};

/// The margin around the picture.
const MARGIN: f64 = 24.0;
/// The height of the title and the line below it.
const HEADER: f64 = 58.0;

/// Draws the architecture of one model.
pub fn picture(outline: &Outline) -> Figure {
    changed_picture(outline, &Changes::default())
}

/// Draws several models side by side and marks the boxes that differ. `changes` has one entry per model, as
/// [`super::changes`] returns them.
pub fn side_by_side(outlines: &[Outline], changes: &[Changes]) -> Figure {
    let none = Changes::default();
    let figures: Vec<Figure> = outlines
        .iter()
        .enumerate()
        .map(|(i, outline)| changed_picture(outline, changes.get(i).unwrap_or(&none)))
        .collect();
    let names: Vec<&str> = outlines.iter().map(|o| o.name.as_str()).collect();
    let description = "Block diagrams side by side; boxes that differ have a thick border and a mark.";
    Figure::grid(&figures, outlines.len(), "", description).titled(&names.join(" and "))
}

fn changed_picture(outline: &Outline, changes: &Changes) -> Figure {
    let scene = layout(outline);
    let summary = outline.summary.join(" · ");
    // A small model may be narrower than its title.
    let words = width(&outline.name, 16.0).max(width(&summary, 12.0)) * 1.1;
    // The layout begins at 0 on the left, so its extent to the right is its width.
    let inner = scene.reach.1.max(words);
    let mut canvas = Canvas::default();
    canvas.text((MARGIN, MARGIN + 8.0), Anchor::Start, "title fill-ink", &outline.name);
    canvas.text((MARGIN, MARGIN + 28.0), Anchor::Start, "subtitle fill-muted", &summary);
    // A diagram that is narrower than its title is centred below it.
    let at = (MARGIN + (inner - scene.reach.1) / 2.0, MARGIN + HEADER - 8.0);
    let brush = Brush { at, changes };
    // What is drawn later covers what is drawn before: frames, then lines, then boxes.
    scene.borders.iter().for_each(|border| brush.border(&mut canvas, border));
    for wire in &scene.wires {
        let points: Vec<(f64, f64)> = wire.points.iter().map(|(x, y)| (x + at.0, y + at.1)).collect();
        canvas.elbow(&points, "line", wire.has_arrow);
    }
    scene.items.iter().for_each(|(spot, item)| brush.item(&mut canvas, *spot, item));
    scene.panels.iter().for_each(|panel| brush.panel(&mut canvas, panel));
    let size = (inner + 2.0 * MARGIN, scene.height + at.1 + MARGIN);
    Figure::new(canvas, size, &outline.name, &described(outline, &scene))
}

/// A description of the picture: the boxes on the way from input to output.
fn described(outline: &Outline, scene: &Scene<'_>) -> String {
    let frames = scene.borders.iter().filter_map(|b| b.frame);
    let blocks: Vec<String> = frames
        .map(|frame| format!("{}: {}", facts::words(&frame.title), frame.equations.join("; ")))
        .collect();
    format!("{}. {}", outline.summary.join(", "), blocks.join(". "))
}

struct Brush<'a> {
    at: (f64, f64),
    changes: &'a Changes,
}

impl Brush<'_> {
    /// Converts a spot to left, top, width, height.
    fn corner(&self, spot: Spot) -> (f64, f64, f64, f64) {
        (spot.x - spot.w / 2.0 + self.at.0, spot.y - spot.h / 2.0 + self.at.1, spot.w, spot.h)
    }

    fn border(&self, canvas: &mut Canvas, border: &Border<'_>) {
        let at = self.corner(border.spot);
        let Some(frame) = border.frame else {
            canvas.rect(at, 14.0, "fill-paper stroke-line dashed");
            return;
        };
        let change = self.changes.frame(&frame.path);
        let stroke = change.map_or("stroke-line".to_owned(), |c| format!("stroke-{} thick", c.class()));
        let fill = if border.is_closed { "other" } else { "frame" };
        let hover = format!("{}\n{}", frame.path, frame.equations.join("\n"));
        canvas.group("node", &[("data-path", &frame.path)], &hover, |canvas| {
            canvas.rect(at, 10.0, &format!("fill-{fill} {stroke}"));
            if border.is_closed {
                let middle = (at.0 + at.2 / 2.0, at.1 + at.3 / 2.0 + 4.5);
                canvas.text(middle, Anchor::Middle, "fill-ink", &facts::words(&frame.title));
            }
        });
    }

    fn item(&self, canvas: &mut Canvas, spot: Spot, item: &Item) {
        let at = self.corner(spot);
        let middle = (at.0 + at.2 / 2.0, at.1 + at.3 / 2.0);
        let change = self.changes.item(item);
        let stroke = change.map_or("stroke-line".to_owned(), |c| format!("stroke-{} thick", c.class()));
        let line = item.place.as_ref().map(|p| p.line.to_string()).unwrap_or_default();
        let mut marks = vec![("data-path", item.path.as_str())];
        if let Some(source) = item.place.as_ref().and_then(|place| place.source.as_ref()) {
            marks.push(("data-source", source));
            marks.push(("data-line", &line));
        }
        canvas.group("node", &marks, &hover(item), |canvas| {
            match item.form {
                Form::Box(tint) => canvas.rect(at, 6.0, &format!("fill-{} {stroke}", tint.class())),
                Form::Step => canvas.rect(at, 11.0, &format!("fill-other {stroke}")),
                Form::Sum | Form::Product => {
                    canvas.circle(middle, spot.w / 2.0, &format!("fill-paper {stroke}"));
                    // The cross of a product is a plus rotated by 45 degrees.
                    let (along, up) = if item.form == Form::Sum { (5.5, 0.0) } else { (4.0, 4.0) };
                    for (x, y) in [(along, up), (-up, along)] {
                        let (from, to) = ((middle.0 - x, middle.1 - y), (middle.0 + x, middle.1 + y));
                        canvas.line(from, to, "stroke-ink");
                    }
                }
                Form::Input | Form::Output | Form::Stack(_) => {}
            }
            if !matches!(item.form, Form::Sum | Form::Product) {
                self.words(canvas, at, item);
            }
            if let Some(change) = change {
                // Words without a box leave no room for the mark above them.
                let aside = match item.form {
                    Form::Input | Form::Output => 9.0,
                    Form::Box(_) | Form::Step | Form::Sum | Form::Product | Form::Stack(_) => 0.0,
                };
                mark(canvas, (at.0 + at.2 + aside, at.1), change);
            }
        });
    }

    fn words(&self, canvas: &mut Canvas, at: (f64, f64, f64, f64), item: &Item) {
        let x = at.0 + at.2 / 2.0;
        let height = 14.0 * item.notes.len() as f64;
        // A text is placed by its baseline, which is lower than its middle.
        let first = at.1 + (at.3 - height) / 2.0 + 4.5;
        let class = match item.form {
            Form::Input | Form::Output => "strong fill-ink",
            Form::Box(_) | Form::Step | Form::Sum | Form::Product | Form::Stack(_) => "label fill-ink",
        };
        canvas.text((x, first), Anchor::Middle, class, &item.label);
        for (i, note) in item.notes.iter().enumerate() {
            let y = first + 14.0 * (i as f64 + 1.0);
            canvas.text((x, y), Anchor::Middle, "small fill-muted", note);
        }
    }

    fn panel(&self, canvas: &mut Canvas, panel: &Panel) {
        let mut y = panel.y + self.at.1 - panel.spot().h / 2.0;
        let anchor = if panel.is_left { Anchor::End } else { Anchor::Start };
        for (line, text) in &panel.lines {
            let (height, above) = line.height();
            y += height;
            canvas.text((panel.x + self.at.0, y - above), anchor, line.class(), text);
        }
    }
}

/// A sign at the corner of a box that differs, which can be seen without colours.
fn mark(canvas: &mut Canvas, corner: (f64, f64), change: Change) {
    canvas.circle(corner, 7.5, &format!("fill-{} stroke-paper", change.class()));
    canvas.text((corner.0, corner.1 + 4.0), Anchor::Middle, "strong fill-paper", change.sign());
}

fn hover(item: &Item) -> String {
    let mut lines = item.details.clone();
    // The details of a step begin with its label already.
    if let Some(first) = lines.first()
        && *first != item.label
        && !item.label.is_empty()
    {
        lines.insert(0, item.label.clone());
    }
    if let Some(place) = &item.place {
        lines.push(match &place.source {
            Some(source) => format!("{source}:{}: {}", place.line, place.text),
            None => place.text.to_string(),
        });
    }
    lines.join("\n")
}
