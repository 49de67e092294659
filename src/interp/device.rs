//! Devices by name: `flex`, `wgpu:0`, `cuda:1`, ... → a burn device, or one of three refusals.
//!
//! A name may be unknown, known but not compiled in, or compiled in without the hardware being there:
//! three messages, and no panic. A device is opened once in a process and remembered.

use std::fmt;
use std::panic;
use std::sync::{Mutex, PoisonError};

use burn::prelude::*;
use burn::tensor::FloatDType;

use crate::diag::suggest::suggest;

/// A family of devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backend {
    /// What `--device` takes, before `:index`.
    pub name: &'static str,
    /// The cargo feature that compiles it in.
    pub feature: &'static str,
    /// Whether it is compiled in.
    pub compiled: bool,
    /// What it is.
    pub about: &'static str,
    /// What to do where it is compiled in but not there.
    pub remedy: &'static str,
    /// Whether an index may follow.
    indexed: bool,
}

macro_rules! backends {
    ($($name:literal $feature:literal $indexed:literal $about:literal $remedy:literal),* $(,)?) => {
        /// Every backend trafoc knows.
        pub const BACKENDS: &[Backend] = &[$(Backend {
            name: $name,
            feature: $feature,
            compiled: cfg!(feature = $feature),
            about: $about,
            remedy: $remedy,
            indexed: $indexed,
        }),*];
    };
}

backends! {
    "flex" "flex" false "CPU, pure Rust" "it needs nothing",
    "wgpu" "wgpu" true "GPU through WebGPU, any graphics API" "`apt install mesa-vulkan-drivers` brings a graphics driver",
    "vulkan" "vulkan" true "GPU through Vulkan" "`apt install mesa-vulkan-drivers` brings a Vulkan driver",
    "metal" "metal" true "GPU through Metal" "it needs macOS",
    "cuda" "cuda" true "NVIDIA GPU" "install NVIDIA's driver; `nvidia-smi` shows it working",
    "rocm" "rocm" true "AMD GPU" "install ROCm; `rocminfo` shows it working",
    "tch" "tch" false "CPU through LibTorch" "name LibTorch's folder: `LD_LIBRARY_PATH=libtorch/lib`",
    "tch-cuda" "tch" true "NVIDIA GPU through LibTorch" "install NVIDIA's driver and a LibTorch built for CUDA",
    "cpu" "cpu" false "CPU, kernels compiled at run time" "it needs nothing",
}

/// The order in which `auto` looks for a device that is there.
const AUTO: &[&str] = &["cuda", "rocm", "metal", "vulkan", "wgpu", "flex", "cpu", "tch"];

/// A device that was asked for.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// Its name with its index, as `--device` takes it: what `auto` took.
    pub name: String,
    /// The device, without autodiff.
    pub device: Device,
    /// What its numbers are unless a tensor says otherwise.
    pub dtype: FloatDType,
    /// The most bytes one tensor may have there; none where memory alone decides.
    pub largest: Option<u64>,
}

impl Chosen {
    /// Why a tensor cannot be there.
    pub(super) fn refusal(&self, tensor: &str, elements: u128) -> Option<String> {
        let element = burn::tensor::DType::from(self.dtype).size();
        let (bytes, most) = (elements.saturating_mul(element as u128), self.largest?);
        (bytes > u128::from(most)).then(|| {
            format!("{tensor} takes {bytes} bytes, and `{}` has at most {most} for one tensor", self.name)
        })
    }
}

/// A device that has been opened, by the device itself or by the one with autodiff over it.
pub(super) fn known(device: &Device) -> Option<Chosen> {
    let opened = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    opened.iter().find(|chosen| chosen.device == *device).cloned()
}

/// Why a device cannot be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceError {
    /// Nothing is called that.
    Unknown {
        /// As given.
        name: String,
        /// The name that was probably meant.
        like: Option<String>,
    },
    /// Not a number after the colon, or a colon where none belongs.
    Index {
        /// As given.
        name: String,
        /// What is wrong.
        why: String,
    },
    /// Known, but this program was built without it.
    NotCompiled {
        /// The backend.
        name: &'static str,
        /// The feature that would bring it.
        feature: &'static str,
    },
    /// It does not compute in this element type.
    Dtype {
        /// The device.
        name: String,
        /// The element type.
        dtype: FloatDType,
        /// Why not.
        why: String,
    },
    /// Compiled in, but the hardware or its driver is not there.
    Absent {
        /// The device.
        name: String,
        /// What the system said.
        why: String,
    },
}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceError::Unknown { name, like } => {
                write!(f, "no device is called `{name}`")?;
                match like {
                    None => {
                        let all: Vec<&str> = BACKENDS.iter().map(|b| b.name).collect();
                        write!(f, "; there are auto, {}", all.join(", "))
                    }
                    Some(like) => write!(f, "; did you mean `{like}`"),
                }
            }
            DeviceError::Index { name, why } => write!(f, "`{name}`: {why}"),
            DeviceError::NotCompiled { name, feature } => write!(
                f,
                "this program was built without `{name}`; build it with `--features {feature}` to have it"
            ),
            DeviceError::Dtype { name, dtype, why } => {
                write!(f, "`{name}` does not compute in {}: {why}", format!("{dtype:?}").to_lowercase())
            }
            DeviceError::Absent { name, why } => write!(f, "`{name}` is not there: {why}"),
        }
    }
}

impl std::error::Error for DeviceError {}

/// The device of a name: a backend, with `:index` where there may be several, or `auto`.
///
/// # Errors
/// The name is unknown, not compiled in, or names a device that is not there.
pub fn device(name: &str) -> Result<Chosen, DeviceError> {
    device_in(name, FloatDType::F32)
}

/// The same, for numbers of an element type. A process opens a device in one type only.
///
/// # Errors
/// As [`device`]'s, or the device does not compute in that type.
pub fn device_in(name: &str, dtype: FloatDType) -> Result<Chosen, DeviceError> {
    let lower = name.trim().to_ascii_lowercase();
    if lower == "auto" {
        return auto(dtype);
    }
    let (kind, index) = match lower.split_once(':') {
        Some((kind, index)) => (kind, Some(index)),
        None => (lower.as_str(), None),
    };
    let Some(backend) = BACKENDS.iter().find(|b| b.name == kind) else {
        let names: Vec<&str> = BACKENDS.iter().map(|b| b.name).chain(["auto"]).collect();
        return Err(DeviceError::Unknown { name: name.to_owned(), like: meant(kind, &names) });
    };
    let index = match index {
        None => None,
        Some(_) if !backend.indexed => {
            let why = format!("there is only one {kind}, without a number");
            return Err(DeviceError::Index { name: name.to_owned(), why });
        }
        Some(digits) => match digits.parse::<usize>() {
            Ok(index) => Some(index),
            Err(_) => {
                let why = format!("`{digits}` is not a device's number; the first one is {kind}:0");
                return Err(DeviceError::Index { name: name.to_owned(), why });
            }
        },
    };
    open(backend, index, dtype)
}

/// The name that was meant. Names are short, so that a slip within one leaves its first letter: `tpu` is no
/// `cpu`.
fn meant(name: &str, names: &[&str]) -> Option<String> {
    suggest(name, names).filter(|like| like.chars().next() == name.chars().next())
}

/// The first device of [`AUTO`] that is there and computes in the type. Only numbered GPUs count as such: a
/// graphics adapter in software is slower than the CPU's own backend.
fn auto(dtype: FloatDType) -> Result<Chosen, DeviceError> {
    for name in AUTO {
        if let Some(backend) = BACKENDS.iter().find(|b| b.name == *name && b.compiled)
            && let Ok(chosen) = open(backend, backend.indexed.then_some(0), dtype)
        {
            return Ok(chosen);
        }
    }
    Err(DeviceError::NotCompiled { name: "auto", feature: "flex" })
}

/// The element types that models can be computed in, by the names of `--dtype`.
pub const DTYPES: &[(&str, FloatDType)] =
    &[("f32", FloatDType::F32), ("bf16", FloatDType::BF16), ("f16", FloatDType::F16)];

/// Every backend with the devices that are there, or why there are none. Opens them.
pub fn survey() -> Vec<(Backend, Result<Vec<Chosen>, DeviceError>)> {
    let devices = |backend: &Backend| {
        if !backend.indexed {
            return open(backend, None, FloatDType::F32).map(|chosen| vec![chosen]);
        }
        let Ok(first) = open(backend, Some(0), FloatDType::F32) else {
            // Without a GPU there may be an adapter in software, which has no number.
            return open(backend, None, FloatDType::F32).map(|chosen| vec![chosen]);
        };
        let mut found = vec![first];
        while let Ok(next) = open(backend, Some(found.len()), FloatDType::F32) {
            found.push(next);
        }
        Ok(found)
    };
    BACKENDS.iter().map(|backend| (*backend, devices(backend))).collect()
}

/// Devices opened so far. Some can be opened only once.
static OPEN: Mutex<Vec<Chosen>> = Mutex::new(Vec::new());

fn open(backend: &Backend, index: Option<usize>, dtype: FloatDType) -> Result<Chosen, DeviceError> {
    if !backend.compiled {
        return Err(DeviceError::NotCompiled { name: backend.name, feature: backend.feature });
    }
    let name = match index {
        Some(index) => format!("{}:{index}", backend.name),
        None => backend.name.to_owned(),
    };
    let mut opened = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = opened.iter().find(|chosen| chosen.name == name) {
        if known.dtype != dtype {
            let why = format!("it is in use already, in {:?}", known.dtype).to_lowercase();
            return Err(DeviceError::Dtype { name, dtype, why });
        }
        return Ok(known.clone());
    }
    let made = quietly(|| make(backend.name, index)).unwrap_or_else(Err);
    let (mut device, largest) = made.map_err(|why| DeviceError::Absent { name: name.clone(), why })?;
    if dtype != FloatDType::F32 {
        // What it says it can do comes first: some devices would compute nonsense.
        if !device.supports_dtype(dtype) {
            let why = "it says so itself".to_owned();
            return Err(DeviceError::Dtype { name, dtype, why });
        }
        if let Err(why) = device.configure(dtype) {
            return Err(DeviceError::Dtype { name, dtype, why: why.to_string() });
        }
    }
    match quietly(|| prove(&device)).unwrap_or_else(Err) {
        Ok(()) => {
            let chosen = Chosen { name, device, dtype, largest };
            opened.push(chosen.clone());
            Ok(chosen)
        }
        Err(why) => Err(DeviceError::Absent { name, why }),
    }
}

/// Drivers panic where hardware is missing: their words become the error, without a trace on the screen.
fn quietly<T>(f: impl FnOnce() -> T + panic::UnwindSafe) -> Result<T, String> {
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| ()));
    let result = panic::catch_unwind(f);
    panic::set_hook(hook);
    result.map_err(|payload| {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        said(text.or(payload.downcast_ref::<&str>().copied()).unwrap_or_default())
    })
}

/// A driver's words as far as they are a sentence: the first line, up to values printed for programmers.
fn said(words: &str) -> String {
    let line = words.lines().next().unwrap_or_default();
    let end = line.find(['{', '[', '(']).unwrap_or(line.len());
    // What a value belongs to goes with it.
    let whole =
        if end == line.len() { line } else { line[..end].rsplit_once(", ").map_or("", |(said, _)| said) };
    let whole = whole.trim_end_matches([' ', '.', ':']);
    if whole.is_empty() { "its driver failed".to_owned() } else { format!("its driver says: {whole}") }
}

/// Adds one and one.
fn prove(device: &Device) -> Result<(), String> {
    let two = Tensor::<1>::ones([1], device) + 1.0;
    match two.try_into_data().map_err(|e| e.to_string())?.iter::<f32>().next() {
        Some(2.0) => Ok(()),
        other => Err(format!("it says that one and one are {other:?}")),
    }
}

/// Makes a device, and says how many bytes one tensor may have there if it has a bound of its own.
fn make(name: &str, index: Option<usize>) -> Result<(Device, Option<u64>), String> {
    let device = match name {
        #[cfg(feature = "flex")]
        "flex" => Device::flex(),
        #[cfg(feature = "cpu")]
        "cpu" => Device::cpu(),
        #[cfg(feature = "cuda")]
        "cuda" => nth(burn::tensor::DeviceType::Cuda, index)?,
        #[cfg(feature = "rocm")]
        "rocm" => nth(burn::tensor::DeviceType::Rocm, index)?,
        #[cfg(feature = "wgpu")]
        "wgpu" => return graphics(burn::tensor::wgpu::WgpuBackend::Auto, index),
        #[cfg(feature = "vulkan")]
        "vulkan" => return graphics(burn::tensor::wgpu::WgpuBackend::Vulkan, index),
        #[cfg(feature = "metal")]
        "metal" => return graphics(burn::tensor::wgpu::WgpuBackend::Metal, index),
        #[cfg(feature = "tch")]
        "tch" => torch(None)?,
        #[cfg(feature = "tch")]
        "tch-cuda" => torch(Some(index.unwrap_or(0)))?,
        _ => return Err(format!("index {index:?} of a backend that is not compiled in")),
    };
    Ok((device, None))
}

#[cfg(any(feature = "cuda", feature = "rocm"))]
fn nth(kind: burn::tensor::DeviceType, index: Option<usize>) -> Result<Device, String> {
    let found = Device::enumerate(kind).into_vec();
    let count = found.len();
    found.into_iter().nth(index.unwrap_or(0)).ok_or_else(|| no_gpu(index, count))
}

/// That there is no GPU, or none of that number.
#[cfg(any(feature = "cuda", feature = "rocm", feature = "tch"))]
fn no_gpu(index: Option<usize>, count: usize) -> String {
    match (index, count) {
        (_, 0) | (None, _) => "no GPU is seen".to_owned(),
        (Some(index), 1) => format!("no GPU has the number {index}, only one is seen, which has 0"),
        (Some(index), _) => format!("no GPU has the number {index}, the last one has {}", count - 1),
    }
}

/// Without an index the best adapter, a software one if need be; with one, that GPU. A tensor is bound to a
/// shader whole, and graphics APIs bound how large that may be.
#[cfg(any(feature = "wgpu", feature = "vulkan", feature = "metal"))]
fn graphics(
    api: burn::tensor::wgpu::WgpuBackend,
    index: Option<usize>,
) -> Result<(Device, Option<u64>), String> {
    let of = |kind| Device::wgpu_options().graphics_api(api).device_kind(kind).init_with_setup();
    let (device, setup) = match index {
        None => of(DeviceKind::DefaultDevice).map_err(|_| "no graphics adapter is seen".to_owned()),
        Some(i) => of(DeviceKind::DiscreteGpu(i))
            .or_else(|_| of(DeviceKind::IntegratedGpu(i)))
            .map_err(|_| format!("no GPU has the number {i}; a software one is had without a number")),
    }?;
    let limits = setup.device.limits();
    Ok((device, Some(limits.max_storage_buffer_binding_size.min(limits.max_buffer_size))))
}

#[cfg(feature = "tch")]
#[expect(deprecated, reason = "burn keeps LibTorch under this name alone")]
fn torch(cuda: Option<usize>) -> Result<Device, String> {
    let Some(index) = cuda else { return Ok(Device::libtorch()) };
    let count = Device::enumerate(burn::tensor::DeviceType::LibTorch).len();
    if index < count { Ok(Device::libtorch_cuda(index)) } else { Err(no_gpu(cuda, count)) }
}
