//! Command-line entry of the code generator.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use sandboxer_codegen::{Inputs, check, plan, workspace_root};

const USAGE: &str = "usage: sandboxer-codegen [--check]\n\
    Writes the generated files of the workspace; with --check, compares them and exits 1 on a difference.\n";

fn main() -> ExitCode {
    let mut compare = false;
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--check" => compare = true,
            "--help" | "-h" => {
                let _ = io::stdout().write_all(USAGE.as_bytes());
                return ExitCode::SUCCESS;
            }
            other => {
                let _ = write!(io::stderr(), "unknown argument `{other}`\n{USAGE}");
                return ExitCode::from(2);
            }
        }
    }
    match run(compare) {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(io::stderr(), "sandboxer-codegen: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(compare: bool) -> sandboxer_codegen::Result<ExitCode> {
    let root = workspace_root();
    let artifacts = plan(&Inputs::read(&root)?)?;
    if !compare {
        for artifact in &artifacts {
            artifact.write(&root)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let difference = check::compare(&root, &artifacts)?;
    if difference.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let _ = io::stdout().write_all(difference.as_bytes());
    let _ = writeln!(io::stderr(), "generated files differ; run `cargo run -p sandboxer-codegen`");
    Ok(ExitCode::from(1))
}
