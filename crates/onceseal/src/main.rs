//! The program `onceseal`: everything is in the library, so that tests and benchmarks start the same server.

use std::process::ExitCode;

/// Many small allocations on many threads: the C library's allocator took a tenth of the time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    ExitCode::from(onceseal::cli::main() as u8)
}
