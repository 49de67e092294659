//! The parameters of a graph as a burn module.
//!
//! There is a list of parameters for each rank, in the order of files; the plan looks up their indices once.
//! The weight of a projection is `[out, in]` in files, as in PyTorch, and `[in, out]` in memory, as burn
//! multiplies. All other tensors have the same shape in both.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::path::Path;
use std::sync::Arc;

use burn::module::{Module, Param, ParamId};
use burn::prelude::*;
use indexmap::IndexMap;
use trafoc_kernels::Packed;

use super::device;
use super::init;
use super::packed::{PackedMatrix, Placement, transpose};
use super::random::Stream;
use super::value::Value;
use crate::diag::paths::{self, most_path_hints, nearest_paths};
use crate::ir::paths::{counted, elements, folded, layers};
use crate::ir::{Init, Layer, Verified};
use crate::tensor_file::{self, FileError, Saved, TensorFile};

/// Where a parameter is in [`Weights`]: its rank, and its index among the parameters of that rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TensorIndex {
    /// The rank of the tensor, 1 to 4.
    pub rank: usize,
    /// The index in the list of that rank.
    pub index: usize,
}

/// What the graph says of one parameter or buffer, and where its tensor is.
#[derive(Clone, Debug, PartialEq)]
pub struct Slot {
    /// Where its tensor is in [`Weights`].
    pub place: TensorIndex,
    /// The shape in files: `[out, in]` for the weight of a projection.
    pub shape: Vec<usize>,
    /// The constant or distribution of its initial values.
    pub init: Init,
    /// Whether training changes it; false for a buffer.
    pub trained: bool,
    /// Whether it is transposed in memory: true for the weight of a projection.
    pub transposed: bool,
    /// The row of the padding token, which is initialised to zero.
    pub padding: Option<usize>,
}

/// Every parameter of a graph by path, in the order of files.
pub type Layout = IndexMap<String, Slot>;

/// Why the parameters of a graph cannot be created or read.
#[derive(Debug)]
pub enum WeightsError {
    /// The model is too large for any memory or for the device, or a parameter has a shape that is not
    /// supported.
    Size(String),
    /// A file cannot be read or written.
    File(FileError),
    /// The tensors of the file are not those of the graph.
    Differ {
        /// The path of the file.
        file: String,
        /// One line for each tensor that is missing, unknown or of another shape.
        lines: Vec<String>,
        /// Whether none of the file's names is a path of the graph: it was written by another program.
        is_foreign: bool,
    },
}

impl fmt::Display for WeightsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WeightsError::Size(why) => f.write_str(why),
            WeightsError::File(error) => write!(f, "{error}"),
            WeightsError::Differ { file, lines, .. } => {
                write!(f, "{file} does not contain this model's parameters")?;
                for line in lines {
                    write!(f, "\n  {line}")?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for WeightsError {}

impl From<FileError> for WeightsError {
    fn from(error: FileError) -> Self {
        WeightsError::File(error)
    }
}

/// The parameters of a graph. This is a burn module, so optimisers, devices and gradients handle it like
/// any other.
#[derive(Module, Debug)]
// One list for each rank, because a tensor's rank is part of its type.
pub struct Weights {
    /// Biases, norm weights, attention sinks: `[n]`.
    pub vectors: Vec<Param<Tensor<1>>>,
    /// Projections `[in, out]` and tables `[rows, dim]`.
    pub matrices: Vec<Param<Tensor<2>>>,
    /// Parameters of rank 3, used as they are stored.
    pub cubes: Vec<Param<Tensor<3>>>,
    /// Patch projections `[dim, C, size, size]`, and other parameters of rank 4.
    pub kernels: Vec<Param<Tensor<4>>>,
    // Burn takes every field for parameters unless it is skipped.
    /// The path and index of every parameter.
    #[module(skip)]
    layout: Arc<Layout>,
    /// The low-rank changes of matrices. A projection computes its own in addition, so that no matrix of the
    /// whole size is made and none gets a gradient.
    #[module(skip)]
    changes: Arc<Vec<Change>>,
    /// The matrices that were packed for inference, by their index. Their tensors are gone, so nothing can
    /// change a packed matrix.
    #[module(skip)]
    pub(super) packed: Arc<BTreeMap<usize, PackedMatrix>>,
}

/// A low-rank change of a projection: `W + scale * B A` (Hu et al. 2021).
#[derive(Clone, Debug, PartialEq)]
pub struct Adapter {
    /// The path of the projection's weight, `[out, in]`.
    pub path: String,
    /// The paths of `A`, `[rank, in]`, and `B`, `[out, rank]`.
    pub added: [String; 2],
    /// The number of rows of `A` and of columns of `B`.
    pub rank: usize,
    /// The factor on `B A`.
    pub scale: f64,
    /// The share of the elements of the projection's input that the change does not see in training.
    pub dropout: f64,
}

/// Where an adapter's matrices are among those of [`Weights`].
#[derive(Clone, Copy, Debug)]
struct Change {
    base: usize,
    added: [usize; 2],
    scale: f64,
    dropout: f64,
}

/// The low-rank change of a projection, as it is computed: `dropout(x) a b`.
pub(super) struct Factors {
    /// `[in, rank]`, with the adapter's factor.
    pub a: Tensor<2>,
    /// `[rank, out]`.
    pub b: Tensor<2>,
    /// The share of the elements of `x` that are not seen in training.
    pub dropout: f64,
}

/// What is unusual about the values that were read from a file, but does not prevent their use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadReport {
    /// The number of NaN or infinite values, by path.
    pub not_finite: BTreeMap<String, usize>,
}

/// The index of every parameter of a graph. [`Weights`] and the plans of one graph agree on it.
///
/// # Errors
/// There are too many tensors, or one is too large or of a rank above 4.
pub fn layout(graph: &Verified) -> Result<Layout, WeightsError> {
    let folded = folded(graph);
    // Checked on the folded graph: the list of all parameters of 10^9 layers would itself fill the memory.
    counted(&folded).map_err(|e| WeightsError::Size(e.to_string()))?;
    let bytes = folded.iter().fold(0u128, |n, p| n.saturating_add(p.elements().saturating_mul(4)));
    // A process cannot address more bytes than this.
    if bytes > isize::MAX as u128 {
        return Err(WeightsError::Size(format!("the model's parameters need {bytes} bytes")));
    }
    // By rank, from 1 to 4.
    let mut next = [0usize; 5];
    let mut out = Layout::new();
    for (prefix, layer) in layers(graph) {
        let padding = match layer {
            Layer::Embedding { padding, .. } => padding.and_then(|row| usize::try_from(row).ok()),
            Layer::Linear { .. }
            | Layer::LayerNorm { .. }
            | Layer::RmsNorm { .. }
            | Layer::Patches { .. }
            | Layer::Param { .. } => None,
        };
        for parameter in layer.parameters() {
            let path = crate::ir::paths::join(&prefix, parameter.name);
            let rank = parameter.shape.len();
            if !(1..=4).contains(&rank) || elements(&parameter.shape) == 0 {
                return Err(WeightsError::Size(format!("{path} has the shape {:?}", parameter.shape)));
            }
            let slot = Slot {
                place: TensorIndex { rank, index: next[rank] },
                shape: parameter.shape.iter().map(|n| *n as usize).collect(),
                init: parameter.init,
                trained: parameter.trained,
                // The bias of a projection has one axis.
                transposed: matches!(layer, Layer::Linear { .. }) && rank == 2,
                padding,
            };
            next[rank] += 1;
            out.insert(path, slot);
        }
    }
    Ok(out)
}

/// The initial values of one parameter by its path, in the order and shape of files.
pub fn fresh(path: &str, slot: &Slot, seed: u64) -> Vec<f32> {
    // All rows are drawn, so that the others have the same numbers as in a model without padding.
    let mut values = init::start(&slot.init, &slot.shape, seed, path);
    let width = slot.shape.last().copied().unwrap_or(1);
    if let Some(row) = slot.padding.and_then(|row| values.get_mut(row * width..(row + 1) * width)) {
        row.fill(0.0);
    }
    values
}

impl Weights {
    /// Initialises every parameter as the graph prescribes. All streams of random numbers follow from one
    /// seed.
    ///
    /// # Errors
    /// The model is too large for any memory, or one of its tensors for the device.
    pub fn init<'a>(
        graph: &Verified,
        placement: impl Into<Placement<'a>>,
        seed: u64,
    ) -> Result<Self, WeightsError> {
        Self::build(graph, placement, |path, slot| Ok(fresh(path, slot, seed)))
    }

    /// Creates every parameter from numbers in the order and shape of files.
    ///
    /// # Errors
    /// The model is too large as in [`Weights::init`], `values` returns an error, or the number of values
    /// is not that of the shape.
    pub fn build<'a>(
        graph: &Verified,
        placement: impl Into<Placement<'a>>,
        mut values: impl FnMut(&str, &Slot) -> Result<Vec<f32>, WeightsError>,
    ) -> Result<Self, WeightsError> {
        let layout = layout(graph)?;
        let placement = placement.into();
        let (device, packs) = (placement.device, placement.packs());
        // Before the first tensor is made: the device would fail late, and without the name of a parameter.
        if let Some(chosen) = device::known(device) {
            let elements = |slot: &Slot| slot.shape.iter().map(|n| *n as u128).product();
            let refused = |(path, slot)| chosen.refusal(&format!("`{path}`"), elements(slot));
            if let Some(why) = layout.iter().find_map(refused) {
                let why = format!("{why}\n`--device flex` has no such limit");
                return Err(WeightsError::Size(why));
            }
        }
        let (mut vectors, mut matrices, mut cubes, mut kernels) = (vec![], vec![], vec![], vec![]);
        let mut packed = BTreeMap::new();
        // One after the other, so that the numbers of only one tensor are in memory twice.
        for (path, slot) in &layout {
            let mut numbers = values(path, slot)?;
            let wanted: usize = slot.shape.iter().product();
            if numbers.len() != wanted {
                let why = format!("{path} has {wanted} numbers, but {} are given", numbers.len());
                return Err(WeightsError::Size(why));
            }
            let mut shape = slot.shape.clone();
            if slot.transposed {
                numbers = transpose(&numbers, shape[0], shape[1]);
                shape.reverse();
            }
            if let (&[rows, columns], Some(packs)) = (shape.as_slice(), packs)
                && let Some(is_table) = packs.tables.get(&slot.place.index)
            {
                let matrix = PackedMatrix::new(numbers, [rows, columns], *is_table, packs.of);
                packed.insert(slot.place.index, matrix);
                matrices.push(parameter(path, Tensor::zeros([1, 1], device), false));
                continue;
            }
            let data = TensorData::new(numbers, shape);
            match slot.place.rank {
                1 => vectors.push(parameter(path, Tensor::from_data(data, device), slot.trained)),
                2 => matrices.push(parameter(path, Tensor::from_data(data, device), slot.trained)),
                3 => cubes.push(parameter(path, Tensor::from_data(data, device), slot.trained)),
                // `layout` has refused any rank above 4.
                _ => kernels.push(parameter(path, Tensor::from_data(data, device), slot.trained)),
            }
        }
        Ok(Self {
            vectors,
            matrices,
            cubes,
            kernels,
            layout: Arc::new(layout),
            changes: Arc::default(),
            packed: Arc::new(packed),
        })
    }

    /// The same parameters with low-rank changes of some: `A` starts uniform in `±1/sqrt(in)` and `B` with
    /// zeros, so that nothing changes at first.
    ///
    /// # Errors
    /// One of them is not the weight of a projection.
    pub fn adapted(mut self, adapters: &[Adapter], seed: u64) -> Result<Self, WeightsError> {
        let Some(device) = self.device() else { return Ok(self) };
        let mut layout = Layout::clone(&self.layout);
        let mut changes = Vec::new();
        for Adapter { path, added, rank, scale, dropout } in adapters {
            let found = layout.get(path).filter(|slot| slot.transposed);
            let Some((base, [output, input])) = found
                .and_then(|slot| Some((slot.place.index, <[usize; 2]>::try_from(slot.shape.clone()).ok()?)))
            else {
                return Err(WeightsError::Size(format!("{path} is not the weight of a projection")));
            };
            // With this gain, the bound of Kaiming's distribution, `gain * sqrt(3 / in)`, is `1 / sqrt(in)`,
            // as that of peft's `kaiming_uniform_(a=sqrt(5))` is.
            let third = Init::KaimingUniform { gain: (1.0f64 / 3.0).sqrt() };
            let parts = [([*rank, input], third), ([output, *rank], Init::Zeros)];
            let mut indices = [0; 2];
            for ((([rows, columns], init), path), at) in parts.into_iter().zip(added).zip(&mut indices) {
                *at = self.matrices.len();
                let place = TensorIndex { rank: 2, index: *at };
                let shape = vec![rows, columns];
                let slot = Slot { place, shape, init, trained: true, transposed: true, padding: None };
                let numbers = transpose(&fresh(path, &slot, seed), rows, columns);
                let data = TensorData::new(numbers, [columns, rows]);
                self.matrices.push(parameter(path, Tensor::from_data(data, &device), true));
                layout.insert(path.clone(), slot);
            }
            changes.push(Change { base, added: indices, scale: *scale, dropout: *dropout });
        }
        self.layout = Arc::new(layout);
        self.changes = Arc::new(changes);
        Ok(self)
    }

    /// What is added to the product with this matrix.
    pub(super) fn change(&self, matrix: usize) -> Option<Factors> {
        let change = self.changes.iter().find(|change| change.base == matrix)?;
        let [a, b] = change.added.map(|index| self.matrices.get(index).map(Param::val));
        Some(Factors { a: a?.mul_scalar(change.scale), b: b?, dropout: change.dropout })
    }

    /// The indices of the two matrices of the low-rank change of this matrix, and the dropout of its input.
    pub(super) fn added(&self, matrix: usize) -> Option<([usize; 2], f64)> {
        let change = self.changes.iter().find(|change| change.base == matrix)?;
        Some((change.added, change.dropout))
    }

    /// The parameters with the low-rank changes added to the matrices that they change.
    pub fn merged(&self) -> Self {
        let mut whole = self.clone();
        let Some(first) = self.changes.iter().flat_map(|change| change.added).min() else { return whole };
        for Change { base, added: [a, b], scale, dropout: _ } in self.changes.iter() {
            let of = |index: &usize| self.matrices.get(*index).map(Param::val);
            if let (Some(w), Some(a), Some(b), Some(slot)) =
                (of(base), of(a), of(b), whole.matrices.get_mut(*base))
            {
                // In memory both factors are transposed, as the projection is.
                // With the same id, by which an optimiser finds what belongs to it.
                *slot = Param::initialized(slot.id, w + a.matmul(b).mul_scalar(*scale));
            }
        }
        // The factors are the last matrices, because `adapted` adds them after the model's own.
        whole.matrices.truncate(first);
        let is_own = |slot: &Slot| slot.place.rank != 2 || slot.place.index < first;
        whole.layout = Arc::new(
            self.layout
                .iter()
                .filter(|(_, slot)| is_own(slot))
                .map(|(p, s)| (p.clone(), s.clone()))
                .collect(),
        );
        whole.changes = Arc::default();
        whole
    }

    /// The same parameters with other numbers for those that `values` gives, in the order and shape of files.
    ///
    /// # Errors
    /// The number of values is not that of the shape.
    pub fn replaced(mut self, values: &IndexMap<String, Vec<f32>>) -> Result<Self, WeightsError> {
        let Some(device) = self.device() else { return Ok(self) };
        // This reads adapters and what they change, and both are matrices only.
        for (path, values) in values {
            let slot = self.layout.get(path).filter(|slot| slot.place.rank == 2);
            let Some((slot, [rows, columns])) =
                slot.and_then(|slot| Some((slot, <[usize; 2]>::try_from(slot.shape.clone()).ok()?)))
            else {
                return Err(WeightsError::Size(format!("{path} is not a matrix of the model")));
            };
            if values.len() != rows * columns {
                return Err(WeightsError::Size(format!("{path} has {} numbers in the file", values.len())));
            }
            let (numbers, shape) = match slot.transposed {
                true => (transpose(values, rows, columns), [columns, rows]),
                false => (values.clone(), [rows, columns]),
            };
            let (index, trained) = (slot.place.index, slot.trained);
            if let Some(place) = self.matrices.get_mut(index) {
                *place =
                    parameter(path, Tensor::from_data(TensorData::new(numbers, shape), &device), trained);
            }
        }
        Ok(self)
    }

    /// Reads every parameter from a safetensors file: names are paths, shapes are those of files, element
    /// types F32, F16, BF16 or F64.
    ///
    /// # Errors
    /// The file is invalid, or does not contain exactly this graph's parameters; then all differences are
    /// listed.
    pub fn load<'a>(
        graph: &Verified,
        file: &Path,
        placement: impl Into<Placement<'a>>,
    ) -> Result<(Self, LoadReport), WeightsError> {
        Self::load_from(graph, TensorFile::open(file)?, placement)
    }

    /// As [`Weights::load`], from an open file.
    ///
    /// # Errors
    /// As [`Weights::load`].
    pub fn load_from<'a>(
        graph: &Verified,
        mut file: TensorFile,
        placement: impl Into<Placement<'a>>,
    ) -> Result<(Self, LoadReport), WeightsError> {
        let layout = layout(graph)?;
        // From the header alone, so that a wrong file is refused before its numbers are read.
        let lines = differences(&layout, &file);
        if !lines.is_empty() {
            let is_foreign = !layout.keys().any(|path| file.entries().contains_key(path));
            return Err(WeightsError::Differ { file: file.path().display().to_string(), lines, is_foreign });
        }
        let mut report = LoadReport::default();
        let weights = Self::build(graph, placement, |path, _| {
            let values = file.floats(path)?;
            let bad = values.iter().filter(|v| !v.is_finite()).count();
            if bad > 0 {
                report.not_finite.insert(path.to_owned(), bad);
            }
            Ok(values)
        })?;
        Ok((weights, report))
    }

    /// Writes every parameter to a safetensors file in single precision. The file is replaced atomically.
    ///
    /// # Errors
    /// The file cannot be written, or the device fails.
    pub fn save(&self, file: &Path, metadata: &IndexMap<String, String>) -> Result<(), WeightsError> {
        let shapes: Vec<_> =
            self.layout.iter().map(|(path, slot)| (path.clone(), "F32", slot.shape.clone())).collect();
        tensor_file::write(file, &shapes, metadata, |i| {
            let (path, _, shape) = &shapes[i];
            let lost = || std::io::Error::other(format!("{path} could not be read back from the device"));
            Ok(Saved::floats(shape.clone(), self.values(path).ok_or_else(lost)?))
        })?;
        Ok(())
    }

    /// A parameter's numbers, in the order and shape of files; `None` if there is no such path or the
    /// device failed.
    pub fn values(&self, path: &str) -> Option<Vec<f32>> {
        let slot = self.layout.get(path)?;
        let index = slot.place.index;
        if slot.place.rank == 2
            && let Some(packed) = self.packed.get(&index)
        {
            return Some(packed.of_files());
        }
        let data = match slot.place.rank {
            1 => self.vectors.get(index)?.val().try_into_data(),
            2 => self.matrices.get(index)?.val().try_into_data(),
            3 => self.cubes.get(index)?.val().try_into_data(),
            _ => self.kernels.get(index)?.val().try_into_data(),
        };
        let values: Vec<f32> = data.ok()?.iter::<f32>().collect();
        Some(if slot.transposed { transpose(&values, slot.shape[1], slot.shape[0]) } else { values })
    }

    /// Paths, shapes and indices, in the order of files.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Whether some matrix has a low-rank change.
    #[cfg(feature = "flex")]
    pub(super) fn is_changed(&self) -> bool {
        !self.changes.is_empty()
    }

    /// A matrix that was packed for inference.
    pub(super) fn packed(&self, index: usize) -> Option<&Packed> {
        self.packed.get(&index).map(|matrix| &matrix.packed)
    }

    /// A packed matrix as a tensor, as it was before, apart from rounding.
    pub(super) fn unpacked(&self, index: usize) -> Option<Tensor<2>> {
        let matrix = self.packed.get(&index)?;
        let data = TensorData::new(matrix.of_memory(), matrix.shape);
        Some(Tensor::from_data(data, &self.device()?))
    }

    /// The value of a parameter; `None` if there is none at this place.
    pub(super) fn value(&self, TensorIndex { rank, index }: TensorIndex) -> Option<Value> {
        Some(match rank {
            1 => self.vectors.get(index)?.val().into(),
            2 => self.unpacked(index).or_else(|| Some(self.matrices.get(index)?.val()))?.into(),
            3 => self.cubes.get(index)?.val().into(),
            _ => self.kernels.get(index)?.val().into(),
        })
    }

    /// The device of the parameters; `None` if there are no parameters.
    pub fn device(&self) -> Option<Device> {
        let vector = self.vectors.first().map(|p| p.val().device());
        let matrix = || self.matrices.first().map(|p| p.val().device());
        let cube = || self.cubes.first().map(|p| p.val().device());
        let kernel = || self.kernels.first().map(|p| p.val().device());
        vector.or_else(matrix).or_else(cube).or_else(kernel)
    }
}

/// A parameter whose id is derived from its path, so that an optimiser's saved state belongs to it in
/// another process too.
fn parameter<const D: usize>(path: &str, value: Tensor<D>, trained: bool) -> Param<Tensor<D>> {
    let mut parameter = Param::from_tensor(value);
    let [a, b, ..] = Stream::new(0, path).block(0, 0);
    // burn draws ids at random, and an optimiser finds the state of a parameter by its id.
    parameter.id = ParamId::from(u64::from(a) << 32 | u64::from(b));
    if trained { parameter } else { parameter.set_require_grad(false) }
}

/// Every difference between a file's tensors and the graph's parameters, one line each; those that differ only in the number
/// of a layer share one.
fn differences(layout: &Layout, file: &TensorFile) -> Vec<String> {
    #[derive(Clone, PartialEq, Eq, Hash)]
    enum Difference<'a> {
        Missing(&'a [usize]),
        Shape(&'a [usize], &'a [usize]),
        Type(&'a str),
    }
    let differing = layout.iter().filter_map(|(path, slot)| {
        let difference = match file.entries().get(path) {
            None => Difference::Missing(&slot.shape),
            Some(entry) if entry.shape != slot.shape => Difference::Shape(&entry.shape, &slot.shape),
            Some(entry) if !tensor_file::is_float(&entry.dtype) => Difference::Type(&entry.dtype),
            Some(_) => return None,
        };
        Some((path.as_str(), difference))
    });
    let others = || file.entries().keys().filter(|name| !layout.contains_key(*name)).map(String::as_str);
    let mut lines = Vec::new();
    for group in paths::groups(differing) {
        let (path, times) = (group.name(), group.times());
        lines.push(match group.key {
            Difference::Missing(shape) => {
                let mut line = format!("missing: {path} {shape:?}{times}");
                // For a hint the path is compared with every name of the file, so only the first lines get
                // one: files can have 100,000 foreign names.
                if lines.len() < most_path_hints(file.entries().len())
                    && let [like, ..] = nearest_paths(group.first(), others(), 1).as_slice()
                {
                    let _ = write!(line, "; the file has {}", group.of(like));
                }
                line
            }
            Difference::Shape(found, needed) => {
                format!("{path} has the shape {found:?}, the model's has {needed:?}{times}")
            }
            Difference::Type(dtype) => format!("{path} holds {dtype}, which is not a float type{times}"),
        });
    }
    let foreign = paths::groups(others().map(|name| (name, ())));
    lines.extend(foreign.iter().map(|group| format!("not in the model: {}{}", group.name(), group.times())));
    lines
}
