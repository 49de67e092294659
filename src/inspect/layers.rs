//! What every layer computes for the positions, projected to two dimensions.
//!
//! The projection uses the principal components of a layer's centred outputs. They are computed by Jacobi
//! rotations of the inner products of its rows, of which there are fewer than features. The signs are fixed
//! by making the largest entry of a component positive, so that the same numbers give the same picture.

use super::{Matrix, Part, Report};
use crate::draw::chart::{Axis, Chart, Series};

/// The most positions that are shown; the rest of a longer sequence is left out. The time that the
/// eigenvectors take grows with the cube of this number.
const MOST: usize = 256;

/// Rows projected to the first two principal components.
#[derive(Clone, Debug, PartialEq)]
pub struct Plane {
    /// One point for each row that is shown, in the order of rows.
    pub points: Vec<(f64, f64)>,
    /// The share of the variance that each component explains.
    pub explained: (f64, f64),
}

/// Projects the rows of a matrix. At most `MOST` rows are used.
pub fn project(rows: &Matrix) -> Plane {
    let n = rows.rows.min(MOST);
    let d = rows.columns;
    let mean: Vec<f64> =
        (0..d).map(|j| (0..n).map(|i| rows.at(i, j)).sum::<f64>() / n.max(1) as f64).collect();
    let centred: Vec<Vec<f64>> =
        (0..n).map(|i| rows.row(i).iter().zip(&mean).map(|(v, m)| v - m).collect()).collect();
    // The inner products of rows have the same eigenvalues as those of features. Their eigenvectors, times
    // the root of the eigenvalue, are the coordinates.
    let gram: Vec<Vec<f64>> = centred
        .iter()
        .map(|a| centred.iter().map(|b| a.iter().zip(b).map(|(x, y)| x * y).sum()).collect())
        .collect();
    let total: f64 = (0..n).filter_map(|i| gram.get(i).and_then(|row| row.get(i))).sum();
    let mut pairs = eigen(gram);
    // Rotations give the eigenvalues in no particular order.
    pairs.sort_by(|a, b| b.0.total_cmp(&a.0));
    let coordinate = |which: usize| -> (f64, Vec<f64>) {
        let Some((value, vector)) = pairs.get(which) else { return (0.0, vec![0.0; n]) };
        // The first of several equally large entries decides, whatever rounding makes of the others.
        let largest =
            vector.iter().fold(0f64, |most, v| if v.abs() > most.abs() + 1e-12 { *v } else { most });
        let sign = if largest < 0.0 { -1.0 } else { 1.0 };
        // Eigenvalues of inner products are not negative, but rounding can make a zero so.
        let root = value.max(0.0).sqrt();
        (value.max(0.0), vector.iter().map(|v| sign * v * root).collect())
    };
    let ((first, x), (second, y)) = (coordinate(0), coordinate(1));
    // Equal rows have no variance of which there could be a share.
    let share = |value: f64| if total > 0.0 { value / total } else { 0.0 };
    Plane { points: x.into_iter().zip(y).collect(), explained: (share(first), share(second)) }
}

/// Eigenvalues and eigenvectors of a symmetric matrix, by cyclic Jacobi rotations. Their convergence is
/// quadratic: about ten sweeps reach the precision of `f64`, and more than 60 are never made.
fn eigen(mut a: Vec<Vec<f64>>) -> Vec<(f64, Vec<f64>)> {
    let n = a.len();
    let mut v: Vec<Vec<f64>> =
        (0..n).map(|i| (0..n).map(|j| if i == j { 1.0 } else { 0.0 }).collect()).collect();
    // The sum of squares does not change under rotations, so it is the measure of what is small throughout.
    // It is bounded from below for a layer whose outputs are all equal.
    let scale: f64 = a.iter().flatten().map(|x| x * x).sum::<f64>().sqrt().max(1e-300);
    for _ in 0..60 {
        let mut moved = false;
        for p in 0..n {
            for q in p + 1..n {
                let off = a[p][q];
                // Smaller ones are the rounding of larger entries, by which rotations would never end.
                if off.abs() <= 1e-14 * scale {
                    continue;
                }
                moved = true;
                let theta = (a[q][q] - a[p][p]) / (2.0 * off);
                // The smaller of the two angles that make the entry 0, with which the rotations converge.
                let t = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
                // Equal entries on the diagonal: a rotation by 45 degrees.
                let t = if theta == 0.0 { 1.0 } else { t };
                let c = 1.0 / (t * t + 1.0).sqrt();
                let s = t * c;
                // A similarity transform: the columns first, then the rows.
                for row in &mut a {
                    let (x, y) = (row[p], row[q]);
                    row[p] = c * x - s * y;
                    row[q] = s * x + c * y;
                }
                turn(&mut a, (p, q), (c, s));
                // The rows of `v` are the eigenvectors.
                turn(&mut v, (p, q), (c, s));
            }
        }
        if !moved {
            break;
        }
    }
    v.into_iter().enumerate().map(|(i, vector)| (a[i][i], vector)).collect()
}

/// Rotates two rows in their plane by the angle with this cosine and sine.
fn turn(rows: &mut [Vec<f64>], (p, q): (usize, usize), (c, s): (f64, f64)) {
    let (before, after) = rows.split_at_mut(q);
    if let (Some(first), Some(second)) = (before.get_mut(p), after.first_mut()) {
        for (x, y) in first.iter_mut().zip(second) {
            (*x, *y) = (c * *x - s * *y, s * *x + c * *y);
        }
    }
}

/// The outputs of one layer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outputs {
    /// The name of the layer.
    pub title: String,
    /// What the layer computes for one example, `[T, D]`.
    pub values: Matrix,
    /// The labels of the positions; numbers if there are none.
    pub words: Vec<String>,
}

/// The report: one picture for each layer, and the shares of variance in a table.
pub fn planes(name: &str, layers: &[Outputs]) -> Report {
    let mut figures = Vec::new();
    let mut rows = Vec::new();
    for Outputs { title, values, words } in layers {
        let plane = project(values);
        let labels = (0..plane.points.len()).map(|i| words.get(i).cloned().unwrap_or_else(|| i.to_string()));
        let (first, second) = (plane.explained.0 * 100.0, plane.explained.1 * 100.0);
        let (x, y) = (format!("component 1 ({first:.0} %)"), format!("component 2 ({second:.0} %)"));
        let mut chart = Chart::new(title, Axis::linear(&x), Axis::linear(&y));
        chart.room = (240.0, 220.0);
        let chart = chart.with(Series::points("", plane.points.clone(), labels.collect()));
        figures.push(chart.figure());
        let both = first + second;
        rows.push(vec![
            title.clone(),
            format!("{first:.1} %"),
            format!("{second:.1} %"),
            format!("{both:.1} %"),
        ]);
    }
    let longest = layers.iter().map(|layer| layer.values.rows).max().unwrap_or(0);
    let positions = if longest > MOST {
        format!("the first {MOST} of {longest} positions")
    } else {
        "all positions".to_owned()
    };
    let text = format!(
        "The outputs of a layer for {positions}, projected to the two directions in which they differ most. The \
            shares say how much of the variance these two explain."
    );
    let header = ["layer", "component 1", "component 2", "together"].map(str::to_owned).to_vec();
    let part = Part {
        title: "Outputs of the layers".into(),
        text,
        figures,
        table: Some((header, rows)),
        ..Part::default()
    };
    let lead = "outputs of every layer in two dimensions".to_owned();
    Report { title: format!("{name}: layers"), lead, parts: vec![part] }
}
