//! The local sandbox service as a program.

use std::process::ExitCode;

fn main() -> ExitCode {
    sandboxer_mock_server::cli::main()
}
