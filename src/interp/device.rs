//! Devices by name: `flex`, `wgpu:0`, `cuda:1`, ... → a burn device, or the reason why there is none.
//!
//! A name may be unknown, may be known but not compiled in, or may be compiled in while the hardware is
//! missing. Each of these has its own message, and none of them panics. A device is opened once per process
//! and remembered.

use std::fmt;
use std::panic;
use std::sync::{Mutex, PoisonError};

use burn::prelude::*;
use burn::tensor::FloatDType;

use crate::diag::count::counted;
use crate::diag::suggest::suggest;

/// A family of devices, which one of burn's backends computes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backend {
    /// The name that `--device` takes, before `:index`.
    pub name: &'static str,
    /// The cargo feature that compiles it in.
    pub feature: &'static str,
    /// Whether this build contains it.
    pub compiled: bool,
    /// What it runs on, in a few words.
    pub about: &'static str,
    /// What to do if it is compiled in but finds no hardware or driver.
    pub remedy: &'static str,
    /// Whether there may be several of these devices, so that `:index` may follow the name.
    indexed: bool,
}

macro_rules! backends {
    ($($name:literal $feature:literal $indexed:literal $about:literal $remedy:literal),* $(,)?) => {
        /// Every backend that trafoc supports.
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
    "wgpu" "wgpu" true "GPU through WebGPU, any graphics API"
        "`apt install mesa-vulkan-drivers` brings a graphics driver",
    "vulkan" "vulkan" true "GPU through Vulkan" "`apt install mesa-vulkan-drivers` brings a Vulkan driver",
    "metal" "metal" true "GPU through Metal" "it needs macOS",
    "cuda" "cuda" true "NVIDIA GPU" "install NVIDIA's driver; `nvidia-smi` shows it working",
    "rocm" "rocm" true "AMD GPU" "install ROCm; `rocminfo` shows it working",
    "tch" "tch" false "CPU through LibTorch" "set `LD_LIBRARY_PATH=libtorch/lib` to LibTorch's folder",
    "tch-cuda" "tch" true "NVIDIA GPU through LibTorch"
        "install NVIDIA's driver and a LibTorch built for CUDA",
    "cpu" "cpu" false "CPU, kernels compiled at run time" "it needs nothing",
}

/// The order in which `auto` looks for a device: GPUs first, through their makers' own interfaces before the
/// general ones. Of the CPU's backends `flex` comes first because it computes at once, while `cpu` compiles
/// its kernels at run time and `tch` needs LibTorch.
const AUTO: &[&str] = &["cuda", "rocm", "metal", "vulkan", "wgpu", "flex", "cpu", "tch"];

/// A device that was asked for, opened and tried out.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// Its name with its index, as `--device` takes it; for `auto`, the device it found.
    pub name: String,
    /// The device, without autodiff, which training adds.
    pub device: Device,
    /// The element type of floating-point tensors, unless a tensor says otherwise.
    pub dtype: FloatDType,
    /// The largest number of bytes that one tensor may have; `None` if memory is the only limit.
    pub largest: Option<u64>,
}

impl Chosen {
    /// The message if a tensor of this many elements cannot be on the device.
    pub(super) fn refusal(&self, tensor: &str, elements: u128) -> Option<String> {
        let element = burn::tensor::DType::from(self.dtype).size();
        let (bytes, most) = (elements.saturating_mul(element as u128), self.largest?);
        (bytes > u128::from(most)).then(|| {
            format!(
                "{tensor} takes {}, but on `{}` a single tensor can have at most {most}",
                counted(bytes, "byte"),
                self.name
            )
        })
    }
}

/// Whether a device is burn's own CPU backend.
pub fn is_flex(device: &Device) -> bool {
    known(device).is_some_and(|chosen| chosen.name == "flex")
}

/// The opened device that is equal to this one, with or without autodiff.
pub(super) fn known(device: &Device) -> Option<Chosen> {
    // A device is added to the list when it has been opened, so a panic before that leaves the list whole.
    let opened = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    opened.iter().find(|chosen| chosen.device == *device).cloned()
}

/// Why a device cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceError {
    /// No backend has this name.
    Unknown {
        /// The name as given.
        name: String,
        /// The backend that was probably meant.
        like: Option<String>,
    },
    /// The part after the colon is not a number, or the backend takes no index.
    Index {
        /// The name as given.
        name: String,
        /// What is wrong with the index.
        why: String,
    },
    /// A backend that this build does not contain.
    NotCompiled {
        /// The name of the backend.
        name: &'static str,
        /// The cargo feature that compiles it in.
        feature: &'static str,
    },
    /// The device does not compute in this element type.
    Dtype {
        /// The name of the device.
        name: String,
        /// The element type that was asked for.
        dtype: FloatDType,
        /// What the device reported, or that it is already in use in another type.
        why: String,
    },
    /// The backend is compiled in, but the hardware or its driver is missing.
    Absent {
        /// The name of the device.
        name: String,
        /// What the driver reported.
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
                        write!(f, "; the devices are auto, {}", all.join(", "))
                    }
                    Some(like) => write!(f, "; did you mean `{like}`?"),
                }
            }
            DeviceError::Index { name, why } => write!(f, "`{name}`: {why}"),
            DeviceError::NotCompiled { name, feature } => write!(
                f,
                "this program was built without `{name}`; build it with `--features {feature}` to use it"
            ),
            DeviceError::Dtype { name, dtype, why } => {
                write!(f, "`{name}` does not compute in {}: {why}", format!("{dtype:?}").to_lowercase())
            }
            DeviceError::Absent { name, why } => write!(f, "`{name}` is not available: {why}"),
        }
    }
}

impl std::error::Error for DeviceError {}

/// Opens a device by name: a backend, followed by `:index` if there may be several, or `auto`.
///
/// # Errors
/// The name is unknown, not compiled in, or names a device that is not there.
pub fn device(name: &str) -> Result<Chosen, DeviceError> {
    device_in(name, FloatDType::F32)
}

/// As [`device`], for a given element type. A process can open a device in one element type only.
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
            let why = format!("there is only one {kind}, so it takes no number");
            return Err(DeviceError::Index { name: name.to_owned(), why });
        }
        Some(digits) => match digits.parse::<usize>() {
            Ok(index) => Some(index),
            Err(_) => {
                let why = format!("`{digits}` is not the number of a device; the first one is {kind}:0");
                return Err(DeviceError::Index { name: name.to_owned(), why });
            }
        },
    };
    open(backend, index, dtype)
}

/// The name that was probably meant. Names are short, so a suggestion must have the same first letter:
/// `tpu` must not suggest `cpu`.
fn meant(name: &str, names: &[&str]) -> Option<String> {
    suggest(name, names).filter(|like| like.chars().next() == name.chars().next())
}

/// The first device of [`AUTO`] that is available and computes in the type. Only numbered GPUs count: a
/// software graphics adapter is slower than the CPU's own backend.
fn auto(dtype: FloatDType) -> Result<Chosen, DeviceError> {
    // A GPU that does not compute in the type is skipped, because the CPU may.
    let mut why = DeviceError::NotCompiled { name: "flex", feature: "flex" };
    for name in AUTO {
        let Some(backend) = BACKENDS.iter().find(|b| b.name == *name && b.compiled) else { continue };
        match open(backend, backend.indexed.then_some(0), dtype) {
            Ok(chosen) => return Ok(chosen),
            // The last one is the one that most machines have.
            Err(error) => why = error,
        }
    }
    Err(why)
}

/// The element types that models can be computed in, with their names for `--dtype`.
pub const DTYPES: &[(&str, FloatDType)] =
    &[("f32", FloatDType::F32), ("bf16", FloatDType::BF16), ("f16", FloatDType::F16)];

/// Every backend with its available devices, or the reason why there are none. All these devices are opened.
pub fn survey() -> Vec<(Backend, Result<Vec<Chosen>, DeviceError>)> {
    let devices = |backend: &Backend| {
        if !backend.indexed {
            return open(backend, None, FloatDType::F32).map(|chosen| vec![chosen]);
        }
        let Ok(first) = open(backend, Some(0), FloatDType::F32) else {
            // Without a GPU there may still be a software adapter, which has no number.
            return open(backend, None, FloatDType::F32).map(|chosen| vec![chosen]);
        };
        let mut found = vec![first];
        // Devices have consecutive numbers, so the first one that cannot be opened ends the list.
        while let Ok(next) = open(backend, Some(found.len()), FloatDType::F32) {
            found.push(next);
        }
        Ok(found)
    };
    BACKENDS.iter().map(|backend| (*backend, devices(backend))).collect()
}

/// The devices opened so far; some can be opened only once per process.
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
            let why = format!("it is already in use, in {:?}", known.dtype).to_lowercase();
            return Err(DeviceError::Dtype { name, dtype, why });
        }
        return Ok(known.clone());
    }
    let made = quietly(|| make(backend.name, index)).unwrap_or_else(Err);
    let (mut device, largest) = made.map_err(|why| DeviceError::Absent { name: name.clone(), why })?;
    if dtype != FloatDType::F32 {
        // This is asked before the computation below, because some devices compute nonsense in types they
        // do not support.
        if !device.supports_dtype(dtype) {
            let why = "it reports that it does not support this type".to_owned();
            return Err(DeviceError::Dtype { name, dtype, why });
        }
        // Burn fixes the element type of a device with its first tensor, once in a process.
        if let Err(why) = device.configure(dtype) {
            return Err(DeviceError::Dtype { name, dtype, why: why.to_string() });
        }
    }
    // burn initialises most drivers at the first operation, so a device that was opened may still not be
    // there.
    match quietly(|| prove(&device)).unwrap_or_else(Err) {
        Ok(()) => {
            let chosen = Chosen { name, device, dtype, largest };
            opened.push(chosen.clone());
            Ok(chosen)
        }
        Err(why) => Err(DeviceError::Absent { name, why }),
    }
}

/// Drivers panic where hardware is missing. This turns the panic's message into an error and prints no
/// trace.
fn quietly<T>(f: impl FnOnce() -> T + panic::UnwindSafe) -> Result<T, String> {
    // The panic hook belongs to the whole process. `OPEN` is locked here, so no two calls mix up their hooks.
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| ()));
    let result = panic::catch_unwind(f);
    panic::set_hook(hook);
    result.map_err(|payload| {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        readable(text.or(payload.downcast_ref::<&str>().copied()).unwrap_or_default())
    })
}

/// The readable part of a driver's message: its first line, up to values that are printed for programmers.
fn readable(words: &str) -> String {
    let line = words.lines().next().unwrap_or_default();
    let end = line.find(['{', '[', '(']).unwrap_or(line.len());
    // What is left of the line may end with the label of such a value, so it is cut at the last comma.
    let whole = if end == line.len() {
        line
    } else {
        line[..end].rsplit_once(", ").map_or("", |(readable, _)| readable)
    };
    let whole = whole.trim_end_matches([' ', '.', ':']);
    if whole.is_empty() { "its driver failed".to_owned() } else { format!("its driver says: {whole}") }
}

/// Checks that the device computes at all: adds one and one.
fn prove(device: &Device) -> Result<(), String> {
    // The result is compared, too: some backends return wrong numbers where others fail.
    let two = Tensor::<1>::ones([1], device) + 1.0;
    match two.try_into_data().map_err(|e| e.to_string())?.iter::<f32>().next() {
        Some(2.0) => Ok(()),
        other => Err(format!("it computes one plus one as {other:?}")),
    }
}

/// Opens a device. Returns also the largest number of bytes that one tensor may have on it, if there is a
/// limit.
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
        // `open` refuses these before. The index is named because a build without GPUs uses it nowhere else.
        _ => return Err(format!("index {index:?} of a backend that is not compiled in")),
    };
    Ok((device, None))
}

#[cfg(any(feature = "cuda", feature = "rocm"))]
fn nth(kind: burn::tensor::DeviceType, index: Option<usize>) -> Result<Device, String> {
    // Without a driver the list is empty, while burn's own constructors panic.
    let found = Device::enumerate(kind).into_vec();
    let count = found.len();
    found.into_iter().nth(index.unwrap_or(0)).ok_or_else(|| no_gpu(index, count))
}

/// The message that there is no GPU, or none with this number.
#[cfg(any(feature = "cuda", feature = "rocm", feature = "tch"))]
fn no_gpu(index: Option<usize>, count: usize) -> String {
    match (index, count) {
        (_, 0) | (None, _) => "no GPU was found".to_owned(),
        (Some(index), 1) => format!("there is no GPU with the number {index}; the only one has the number 0"),
        (Some(index), _) => format!(
            "there is no GPU with the number {index}; the last one has the number \
            {}",
            count - 1
        ),
    }
}

/// Without an index, the best adapter, even a software one; with an index, that GPU. A whole tensor is
/// bound to a shader at once, and graphics APIs limit the size of a binding.
#[cfg(any(feature = "wgpu", feature = "vulkan", feature = "metal"))]
fn graphics(
    api: burn::tensor::wgpu::WgpuBackend,
    index: Option<usize>,
) -> Result<(Device, Option<u64>), String> {
    // Without an adapter, `init` returns an error where burn's other constructors panic.
    let of = |kind| Device::wgpu_options().graphics_api(api).device_kind(kind).init_with_setup();
    let (device, setup) = match index {
        None => of(DeviceKind::DefaultDevice).map_err(|_| "no graphics adapter was found".to_owned()),
        Some(i) => of(DeviceKind::DiscreteGpu(i))
            .or_else(|_| of(DeviceKind::IntegratedGpu(i)))
            .map_err(|_| format!("there is no GPU with the number {i}; the software adapter has no number")),
    }?;
    let limits = setup.device.limits();
    Ok((device, Some(limits.max_storage_buffer_binding_size.min(limits.max_buffer_size))))
}

#[cfg(feature = "tch")]
#[expect(deprecated, reason = "burn keeps LibTorch under this name alone")]
fn torch(cuda: Option<usize>) -> Result<Device, String> {
    let Some(index) = cuda else { return Ok(Device::libtorch()) };
    // LibTorch's list has the CUDA devices only.
    let count = Device::enumerate(burn::tensor::DeviceType::LibTorch).len();
    if index < count { Ok(Device::libtorch_cuda(index)) } else { Err(no_gpu(cuda, count)) }
}
