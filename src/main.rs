//! The program `trafoc`: the command line of the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    trafoc::cli::main()
}
