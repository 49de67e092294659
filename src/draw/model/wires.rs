//! The lines between the boxes of a flow.
//!
//! A line leaves its item at the top and turns below the row of the item that reads it. Lines that carry
//! different values and pass the same place there get heights of their own: on a shared one they would read
//! as a single value.

use super::outline::{Flow, Form, From};

/// The distance between rows.
pub const GAP: f64 = 24.0;
/// The distance between lanes on which connections run around rows.
const LANE: f64 = 13.0;
/// The distance between the heights of lines below a row.
const RAIL: f64 = 8.0;

/// The distance between lines that enter the same side of an item.
const ENTRY: f64 = 9.0;

/// A rectangle, given by its centre.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spot {
    /// The horizontal position of the centre.
    pub x: f64,
    /// The vertical position of the centre.
    pub y: f64,
    /// The width of the rectangle.
    pub w: f64,
    /// The height of the rectangle.
    pub h: f64,
}

impl Spot {
    /// Its upper edge.
    pub fn top(&self) -> f64 {
        self.y + self.h / 2.0
    }

    /// Its lower edge.
    pub fn bottom(&self) -> f64 {
        self.y - self.h / 2.0
    }

    /// The rectangle at another place.
    pub fn moved(self, dx: f64, dy: f64) -> Spot {
        Spot { x: self.x + dx, y: self.y + dy, ..self }
    }
}

/// A line, usually with an arrow head at its end.
#[derive(Clone, Debug, PartialEq)]
pub struct Wire {
    /// The corners of the line.
    pub points: Vec<(f64, f64)>,
    /// Whether it ends with an arrow head.
    pub has_arrow: bool,
}

impl Wire {
    /// A line with an arrow head.
    pub fn arrow(points: Vec<(f64, f64)>) -> Self {
        Self { points, has_arrow: true }
    }
}

/// The space of a row: its extent to the right of the axis, and its bottom and top. Connections turn
/// between rows, where there are no boxes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Row {
    /// Its extent to the right of the axis.
    pub right: f64,
    /// The lower edge of its highest item.
    pub bottom: f64,
    /// The upper edge of its highest item.
    pub top: f64,
}

/// How a line reaches its item.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Entry {
    /// From an item beside it, in a straight line; the item's index.
    Beside(usize),
    /// The encoder's output, from the left.
    Port,
    /// Straight up from the row below.
    Straight,
    /// From the row below, up to the middle of the item's own row and then to its side: −1 is the left.
    Side(f64),
    /// From the row below, turning below the item's row.
    Below,
    /// From a lane at the right of all rows that it passes, to the right side of the item.
    LaneToSide(f64),
    /// From such a lane, turning below the item's row.
    LaneBelow(f64),
}

/// A line of a flow: what it carries, and how it goes.
#[derive(Clone, Copy, Debug)]
struct Route {
    /// What the line carries.
    from: From,
    /// The item that it leads to.
    to: usize,
    /// The row of the item that it leads to.
    rank: usize,
    /// The row above its start.
    above: usize,
    /// Where it starts.
    x: f64,
    /// Whether the item is a circle.
    is_circle: bool,
    entry: Entry,
}

impl Route {
    /// The side at which the line enters its item after it has passed other items, −1 for the left, and where it comes
    /// up to the height of the item.
    fn side(&self) -> Option<(f64, f64)> {
        match self.entry {
            Entry::Side(side) if self.from != From::Memory => Some((side, self.x)),
            Entry::LaneToSide(lane) => Some((1.0, lane)),
            Entry::Side(_)
            | Entry::Beside(_)
            | Entry::Port
            | Entry::Straight
            | Entry::Below
            | Entry::LaneBelow(_) => None,
        }
    }
}

/// The horizontal pieces below one row that carry the same value.
#[derive(Clone, Debug)]
struct Rail {
    gap: usize,
    from: From,
    /// From the leftmost to the rightmost point.
    reach: (f64, f64),
    /// Where lines come to it from below.
    starts: Vec<f64>,
    /// Where lines leave it upwards.
    ends: Vec<f64>,
    /// Whether a line that leads into the row is part of it, and not only lines that pass the row.
    enters: bool,
    /// Its height: how many others are between it and the row.
    lane: usize,
}

impl Rail {
    /// Whether two pieces pass the same place, so that one height would make them one line.
    fn meets(&self, other: &Rail) -> bool {
        self.reach.0 < other.reach.1 + 4.0 && other.reach.0 < self.reach.1 + 4.0
    }

    /// How hard the picture is to read if this piece runs above the other: lines that cross, and lines that
    /// would run on each other.
    fn cost_above(&self, other: &Rail) -> usize {
        let crosses = |x: &&f64, rail: &Rail| (rail.reach.0 - 3.0..=rail.reach.1 + 3.0).contains(*x);
        let through = self.starts.iter().filter(|x| crosses(x, other)).count()
            + other.ends.iter().filter(|x| crosses(x, self)).count();
        let pairs = self.starts.iter().flat_map(|start| other.ends.iter().map(move |end| (start, end)));
        through + 100 * pairs.filter(|(start, end)| (*start - *end).abs() < 3.0).count()
    }
}

/// All lines of a flow.
#[derive(Debug)]
pub struct Routes {
    routes: Vec<Route>,
    rails: Vec<Rail>,
}

/// The lines with their corners.
#[derive(Debug, Default)]
pub struct Drawn {
    /// The lines between the items.
    pub wires: Vec<Wire>,
    /// The last corners of lines that come from the encoder.
    pub ports: Vec<Vec<(f64, f64)>>,
    /// The extent to the right of the axis.
    pub right: f64,
}

impl Routes {
    /// Finds the way of every line from the horizontal places of all items.
    pub fn of(flow: &Flow, ranks: &[usize], spots: &[Spot], rows: &[Row]) -> Self {
        let mut routes = Vec::new();
        // The rows for which each lane on the right is in use.
        let mut lanes: Vec<Vec<(usize, usize)>> = Vec::new();
        for (to, item) in flow.items.iter().enumerate() {
            let (Some(spot), Some(rank)) = (spots.get(to).copied(), ranks.get(to).copied()) else { continue };
            let in_row = spots.iter().enumerate().filter(|(j, _)| *j != to && ranks.get(*j) == Some(&rank));
            let others: Vec<f64> = in_row.map(|(_, other)| other.x).collect();
            let has_left = others.iter().any(|x| *x < spot.x);
            let has_right = others.iter().any(|x| *x > spot.x);
            // A circle is entered from a free side, any other item from below.
            let is_circle = matches!(item.form, Form::Sum | Form::Product);
            for (i, from) in item.inputs.iter().copied().enumerate() {
                let mut route = Route { from, to, rank, above: 0, x: 0.0, is_circle, entry: Entry::Port };
                match from {
                    From::Memory => {
                        if !matches!(item.form, Form::Stack(_)) {
                            // With items to its left in the row, it passes below them.
                            let entry = if has_left { Entry::Port } else { Entry::Side(-1.0) };
                            routes.push(Route { entry, ..route });
                        }
                        continue;
                    }
                    From::Start => {}
                    From::Item(j) => {
                        let (Some(start), Some(source)) = (spots.get(j), flow.items.get(j)) else { continue };
                        if source.is_aside {
                            routes.push(Route { entry: Entry::Beside(j), ..route });
                            continue;
                        }
                        (route.x, route.above) = (start.x, ranks.get(j).map_or(0, |r| r + 1));
                    }
                }
                let (above, x) = (route.above, route.x);
                // The second line of a value to the same circle goes around, or it would lie on the first.
                let is_second = item.inputs.iter().take(i).any(|other| *other == from);
                if rank <= above && !is_second {
                    let is_free = if x < spot.x { !has_left } else { !has_right };
                    route.entry = match (x - spot.x).abs() < 0.5 {
                        true => Entry::Straight,
                        false if is_circle && is_free => Entry::Side(if x < spot.x { -1.0 } else { 1.0 }),
                        false => Entry::Below,
                    };
                    routes.push(route);
                    continue;
                }
                // The connection passes the rows `above..rank`. A lane that ends at the row where it begins
                // would join it.
                let is_free = |lane: &Vec<(usize, usize)>| lane.iter().all(|(a, b)| *b < above || *a > rank);
                let lane = lanes.iter().position(is_free).unwrap_or(lanes.len());
                match lanes.get_mut(lane) {
                    Some(there) => there.push((above, rank)),
                    None => lanes.push(vec![(above, rank)]),
                }
                let passed = rows.get(above..=rank).unwrap_or_default();
                let right = passed.iter().fold(0f64, |most, row| most.max(row.right));
                let lane = right + 14.0 + LANE * lane as f64;
                route.entry = if has_right { Entry::LaneBelow(lane) } else { Entry::LaneToSide(lane) };
                routes.push(route);
            }
        }
        let rails = rails(&routes, spots);
        Self { routes, rails }
    }

    /// The height that the lines below a row need beyond that of a usual gap.
    pub fn room(&self, rank: usize) -> f64 {
        let below = self.rails.iter().filter(|rail| rail.gap == rank);
        RAIL * below.map(|rail| rail.lane).max().unwrap_or(0) as f64
    }

    /// Where a line meets the side of its item. Several at one side come in at heights of their own, those from further
    /// away above the others, which they would cross otherwise.
    fn entrance(&self, route: &Route, to: Spot) -> (f64, f64) {
        let Some((side, own)) = route.side() else { return (to.x, to.y) };
        let peers = self.routes.iter().filter(|other| other.to == route.to);
        let places: Vec<f64> =
            peers.filter_map(Route::side).filter(|(at, _)| *at == side).map(|(_, x)| x).collect();
        let below = places.iter().filter(|x| (**x - to.x).abs() < (own - to.x).abs()).count();
        let gaps = places.len().saturating_sub(1) as f64;
        let step = ENTRY.min(0.8 * to.h / gaps.max(1.0));
        let up = step * (below as f64 - gaps / 2.0);
        let radius = to.w / 2.0;
        let out = if route.is_circle { (radius * radius - up * up).max(0.0).sqrt() } else { radius };
        (to.x + side * out, to.y + up)
    }

    /// The lines with their corners, when all items and rows have their places.
    pub fn drawn(&self, spots: &[Spot], rows: &[Row]) -> Drawn {
        let mut drawn = Drawn::default();
        let row = |rank: usize| rows.get(rank).copied().unwrap_or_default();
        let rail =
            |gap: usize, from: From| self.rails.iter().find(|rail| (rail.gap, rail.from) == (gap, from));
        let height = |gap: usize, from: From| {
            row(gap).bottom - GAP * 0.5 - RAIL * rail(gap, from).map_or(0, |rail| rail.lane) as f64
        };
        for route in &self.routes {
            let Some(to) = spots.get(route.to).copied() else { continue };
            let start = match route.from {
                From::Item(j) => spots.get(j).map_or((0.0, 0.0), |spot| (spot.x, spot.top())),
                From::Start | From::Memory => (0.0, 0.0),
            };
            let between = height(route.rank, route.from);
            let below = (to.x, to.bottom());
            // Where a line leaves for its lane: between two rows, where there is no box.
            let tap = || {
                let here = || self.rails.iter().filter(|rail| rail.gap == route.above);
                let is_shared = here().count() > 1 || here().any(|rail| rail.enters);
                let last = route.above.checked_sub(1).map_or(start.1, |last| row(last).top);
                // Alone it turns close to the row that it leaves.
                if is_shared { height(route.above, route.from) } else { last + GAP * 0.4 }
            };
            let points = match route.entry {
                Entry::Beside(j) => {
                    let Some(near) = spots.get(j) else { continue };
                    let side = if near.x < to.x { 1.0 } else { -1.0 };
                    vec![(near.x + side * near.w / 2.0, near.y), (to.x - side * to.w / 2.0, to.y)]
                }
                Entry::Side(side) if route.from == From::Memory => {
                    drawn.ports.push(vec![(to.x + side * to.w / 2.0, to.y)]);
                    continue;
                }
                Entry::Port => {
                    let x = port(to);
                    drawn.ports.push(vec![(x, between), (x, to.bottom())]);
                    continue;
                }
                Entry::Straight => vec![start, below],
                Entry::Side(_) => {
                    let (x, y) = self.entrance(route, to);
                    vec![start, (start.0, y), (x, y)]
                }
                Entry::Below => vec![start, (start.0, between), (to.x, between), below],
                Entry::LaneToSide(x) => {
                    let (tap, (end, y)) = (tap(), self.entrance(route, to));
                    vec![start, (start.0, tap), (x, tap), (x, y), (end, y)]
                }
                Entry::LaneBelow(x) => {
                    let tap = tap();
                    vec![start, (start.0, tap), (x, tap), (x, between), (to.x, between), below]
                }
            };
            if let Entry::LaneToSide(x) | Entry::LaneBelow(x) = route.entry {
                drawn.right = drawn.right.max(x + 4.0);
            }
            drawn.wires.push(Wire::arrow(points));
        }
        drawn
    }
}

/// Where the encoder's output enters an item from below: beside the item's own line.
fn port(to: Spot) -> f64 {
    to.x - to.w / 4.0
}

/// The horizontal pieces below all rows, with their heights.
fn rails(routes: &[Route], spots: &[Spot]) -> Vec<Rail> {
    let mut rails: Vec<Rail> = Vec::new();
    let mut add = |gap: usize, from: From, (start, end): (f64, f64), enters: bool| {
        let found = rails.iter().position(|rail| (rail.gap, rail.from) == (gap, from));
        let index = found.unwrap_or(rails.len());
        if found.is_none() {
            let (reach, starts, ends) = ((start, start), Vec::new(), Vec::new());
            rails.push(Rail { gap, from, reach, starts, ends, enters: false, lane: 0 });
        }
        let Some(rail) = rails.get_mut(index) else { return };
        rail.reach = (rail.reach.0.min(start).min(end), rail.reach.1.max(start).max(end));
        if start.is_finite() && !rail.starts.contains(&start) {
            rail.starts.push(start);
        }
        rail.ends.push(end);
        rail.enters |= enters;
    };
    for route in routes {
        let Some(to) = spots.get(route.to) else { continue };
        match route.entry {
            Entry::Beside(_) | Entry::Straight | Entry::Side(_) => {}
            // It comes from outside of the flow.
            Entry::Port => add(route.rank, route.from, (f64::NEG_INFINITY, port(*to)), true),
            Entry::Below => add(route.rank, route.from, (route.x, to.x), true),
            Entry::LaneToSide(x) => add(route.above, route.from, (route.x, x), false),
            Entry::LaneBelow(x) => {
                add(route.above, route.from, (route.x, x), false);
                add(route.rank, route.from, (x, to.x), true);
            }
        }
    }
    order(&mut rails);
    rails
}

/// Gives heights to the pieces below each row: those that meet are put above each other, in the order in which
/// the fewest lines cross.
fn order(rails: &mut [Rail]) {
    let mut gaps: Vec<usize> = rails.iter().map(|rail| rail.gap).collect();
    gaps.sort_unstable();
    gaps.dedup();
    for gap in gaps {
        // From top to bottom.
        let mut sorted: Vec<Rail> = Vec::new();
        for rail in rails.iter().filter(|rail| rail.gap == gap) {
            // What the piece costs above each of the others, and below it. From above all of them it goes down, one
            // at a time, so that the time grows with the square of their number and not with its cube.
            let costs: Vec<(usize, usize)> = sorted
                .iter()
                .map(|other| match rail.meets(other) {
                    true => (rail.cost_above(other), other.cost_above(rail)),
                    false => (0, 0),
                })
                .collect();
            let mut cost: usize = costs.iter().map(|(above, _)| above).sum();
            let (mut place, mut least) = (0, cost);
            for (i, (above, below)) in costs.iter().enumerate() {
                cost = cost + below - above;
                // Among equals, it is the lowest place.
                if cost <= least {
                    (place, least) = (i + 1, cost);
                }
            }
            sorted.insert(place, rail.clone());
        }
        for i in 0..sorted.len() {
            let (above, rest) = sorted.split_at_mut(i);
            let Some(rail) = rest.first_mut() else { continue };
            rail.lane = above.iter().filter(|other| other.meets(rail)).map(|o| o.lane + 1).max().unwrap_or(0);
        }
        for rail in rails.iter_mut().filter(|rail| rail.gap == gap) {
            let found = sorted.iter().find(|other| other.from == rail.from);
            rail.lane = found.map_or(0, |other| other.lane);
        }
    }
}
