//! The program `onceseal`: everything is in the library, so that tests and benchmarks start the same server.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(onceseal::cli::main() as u8)
}
