//! `trafoc doctor`: what this program and this machine can do.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _};
use std::path::Path;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use super::command::Command;
use super::config::where_files_are;
use super::format::{Format, FormatArg};
use super::outcome::{Failure, Output};
use super::setting::{NO_FILES, SETTINGS};
use super::settings;
use super::ui::{self, Ui, VERSION};
use crate::report::number;

/// The command line of `doctor`.
#[derive(Debug, Args)]
pub struct Doctor {
    /// `--format`: how the result and the diagnostics are printed.
    #[command(flatten)]
    pub format: FormatArg,
}

/// What this build of trafoc, the machine and the terminal can do.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Health {
    version: &'static str,
    language: u64,
    system: String,
    threads: usize,
    /// Bytes of memory that are free for this process, if the system says it.
    memory_free: Option<u64>,
    /// Bytes that can still be written to the working folder, if the system says it.
    disk_free: Option<u64>,
    features: Vec<&'static str>,
    devices: Vec<Device>,
    terminal: Terminal,
    /// The configuration files that were read; an earlier one takes precedence.
    config: Vec<String>,
    environment: Vec<(String, String)>,
}

/// A backend and its devices.
#[derive(Debug, Serialize, JsonSchema)]
struct Device {
    backend: String,
    about: &'static str,
    state: &'static str,
    devices: Vec<String>,
    /// The element types in which the first device computes.
    dtypes: Vec<&'static str>,
    /// The most bytes of one tensor on the first device, if there is such a limit.
    largest: Option<u64>,
    said: Option<String>,
    fix: Option<String>,
}

impl Device {
    /// The name and the state, with the element types.
    fn columns(&self) -> [String; 2] {
        let dtypes = self.dtypes.join(" ");
        let state =
            if dtypes.is_empty() { self.state.to_owned() } else { format!("{}, {dtypes}", self.state) };
        [self.backend.clone(), state]
    }

    /// The lines below them: devices by number, why there is none, how to fix it.
    fn below(&self) -> Vec<String> {
        // A single device with the name of its backend needs no line of its own.
        let numbered = self.devices.iter().any(|name| *name != self.backend);
        let devices = numbered.then(|| self.devices.join(", "));
        let largest =
            self.largest.map(|bytes| format!("a tensor has at most {}", number::bytes(bytes.into())));
        devices.into_iter().chain(largest).chain(self.said.clone()).chain(self.fix.clone()).collect()
    }
}

/// The properties of the terminal.
#[derive(Debug, Serialize, JsonSchema)]
struct Terminal {
    stdout: bool,
    stderr: bool,
    width: Option<u16>,
    utf8: bool,
}

/// The environment variables that trafoc, or a library in it, reads in addition to those of settings. Those that are set are
/// shown.
const VARIABLES: &[&str] = &[
    NO_FILES,
    "NO_COLOR",
    "CLICOLOR_FORCE",
    "TERM",
    "RAYON_NUM_THREADS",
    "LIBTORCH",
    "CUDA_VISIBLE_DEVICES",
];

impl Command for Doctor {
    type Data = Health;

    fn format(&self) -> Format {
        self.format.format
    }

    /// Opens every device that is compiled in, and reports it with the terminal and the environment.
    fn run(&self, ui: &mut Ui) -> Result<Output<Health>, Failure> {
        let health = Health {
            version: VERSION,
            language: crate::spec::model::VERSION,
            system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            // What this process may use, which a container or an affinity can limit below the machine's
            // number.
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            memory_free: crate::memory::free().map(|bytes| u64::try_from(bytes).unwrap_or(u64::MAX)),
            disk_free: crate::disk::free(Path::new(".")),
            features: features(),
            devices: devices(),
            terminal: Terminal {
                // Each by itself, because one of them can be redirected.
                stdout: io::stdout().is_terminal(),
                stderr: io::stderr().is_terminal(),
                width: terminal_size::terminal_size().map(|(width, _)| width.0),
                utf8: ui::is_utf8(),
            },
            config: settings::get().files.iter().map(|file| file.name.clone()).collect(),
            environment: SETTINGS
                .iter()
                .map(|setting| &setting.variable)
                .chain(VARIABLES)
                .filter_map(|name| std::env::var(name).ok().map(|value| ((*name).to_owned(), value)))
                .collect(),
        };
        Ok(Output::new(ui.page(health.text()), health))
    }
}

impl Health {
    fn text(&self) -> String {
        let mut text = String::new();
        let mut line = |label: &str, said: &str| {
            // The name of a variable may be longer than the column.
            let gap = if label.len() > 12 { "  " } else { " " };
            let _ = writeln!(text, "{}", format!("{label:12}{gap}{said}").trim_end());
        };
        line(
            "trafoc",
            &format!("{}, built with Rust {} or later", self.version, env!("CARGO_PKG_RUST_VERSION")),
        );
        line("language", &format!("version {}", self.language));
        line("system", &self.system);
        line("threads", &self.threads.to_string());
        let free = self.memory_free.map(|bytes| format!("{} free", number::bytes(bytes.into())));
        line("memory", &free.unwrap_or_else(|| "the system does not say what is free".to_owned()));
        let disk = self.disk_free.map(|bytes| format!("{} free in this folder", number::bytes(bytes.into())));
        line("disk", &disk.unwrap_or_else(|| "the system does not say what is free".to_owned()));
        // An empty line would look like a mistake, and this program can still do much.
        let none = "none: it checks, counts and emits";
        line("features", &if self.features.is_empty() { none.to_owned() } else { self.features.join(", ") });
        let columns: Vec<[String; 2]> = self.devices.iter().map(Device::columns).collect();
        let [first, second] =
            // Two spaces between the columns.
            [0, 1].map(|i| 2 + columns.iter().map(|c| c[i].len()).max().unwrap_or_default());
        for (i, (device, [name, state])) in self.devices.iter().zip(&columns).enumerate() {
            let label = if i == 0 { "devices" } else { "" };
            line(label, &format!("{name:first$}{state:second$}{}", device.about));
            for below in device.below() {
                line("", &format!("{:first$}{below}", ""));
            }
        }
        let Terminal { stdout, stderr, width, utf8 } = &self.terminal;
        let yes = |is: bool| if is { "a terminal" } else { "not a terminal" };
        line("stdout", yes(*stdout));
        line("stderr", yes(*stderr));
        line(
            "width",
            &width.map_or("80, because the terminal does not report a width".to_owned(), |w| w.to_string()),
        );
        line(
            "encoding",
            if *utf8 { "UTF-8" } else { "not UTF-8: set LC_ALL=C.UTF-8 to see every character" },
        );
        line("config", &where_files_are(settings::get()));
        for (name, value) in &self.environment {
            line(name, value);
        }
        text
    }
}

/// The features of this program that concern devices.
pub fn features() -> Vec<&'static str> {
    let all = [
        ("interp", cfg!(feature = "interp")),
        ("flex", cfg!(feature = "flex")),
        ("wgpu", cfg!(feature = "wgpu")),
        ("vulkan", cfg!(feature = "vulkan")),
        ("metal", cfg!(feature = "metal")),
        ("tch", cfg!(feature = "tch")),
        ("cuda", cfg!(feature = "cuda")),
        ("rocm", cfg!(feature = "rocm")),
        ("cpu", cfg!(feature = "cpu")),
    ];
    all.into_iter().filter(|(_, on)| *on).map(|(name, _)| name).collect()
}

/// There are no devices if no backend is compiled in.
#[cfg(not(feature = "interp"))]
fn devices() -> Vec<Device> {
    Vec::new()
}

/// Every backend; those that are compiled in are opened once.
#[cfg(feature = "interp")]
fn devices() -> Vec<Device> {
    use crate::interp::device::{Backend, Chosen, DTYPES, DeviceError, survey};
    let device = |(backend, found): (Backend, Result<Vec<Chosen>, DeviceError>)| {
        let state = match &found {
            Ok(_) => "ready",
            Err(DeviceError::NotCompiled { .. }) => "not compiled in",
            Err(DeviceError::Absent { .. }) => "not available",
            // A survey asks for no device by name, number or type, so that these do not occur.
            Err(DeviceError::Unknown { .. } | DeviceError::Index { .. } | DeviceError::Dtype { .. }) => {
                "unknown"
            }
        };
        let fix = match &found {
            Ok(_) => None,
            // It is compiled in, so what is missing is on the machine.
            Err(_) if backend.compiled => Some(backend.remedy.to_owned()),
            Err(_) => Some(format!("build with `--features {}`", backend.feature)),
        };
        // For a backend that is not compiled in, the state says enough.
        let said = match &found {
            Err(DeviceError::Absent { why, .. }) => Some(why.clone()),
            Err(error) if backend.compiled => Some(error.to_string()),
            Ok(_) | Err(_) => None,
        };
        let found = found.unwrap_or_default();

        let computes = |dtype| found.first().is_some_and(|chosen| chosen.device.supports_dtype(dtype));
        let dtypes = DTYPES.iter().filter(|(_, dtype)| computes(*dtype)).map(|(name, _)| *name).collect();
        let largest = found.first().and_then(|chosen| chosen.largest);
        let devices = found.into_iter().map(|chosen| chosen.name).collect();
        let (backend, about) = (backend.name.to_owned(), backend.about);
        Device { backend, about, state, devices, dtypes, largest, said, fix }
    };
    survey().into_iter().map(device).collect()
}
