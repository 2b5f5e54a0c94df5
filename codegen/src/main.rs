//! Command-line entry of the code generator.

use std::{
    fs,
    io::{self, Write},
    process::ExitCode,
};

use sandboxer_codegen::{Error, Inputs, check, dialect_document, plan, seen, workspace_root};

const USAGE: &str = "usage: sandboxer-codegen [--check | --print DIALECT | --seen FILE]\n\
    Writes the generated files of the workspace; with --check, compares them and exits 1 on a difference; with --print, \
    writes the API document of that dialect to standard output, as JSON, and nothing else; with --seen, shows what suites \
    saw the local server answer, and exits 1 when an operation or a code never came up.\n";

enum Task {
    Write,
    Compare,
    Print(String),
    Show(String),
}

fn main() -> ExitCode {
    let mut task = Task::Write;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--check" => task = Task::Compare,
            flag @ ("--print" | "--seen") => match arguments.next() {
                Some(dialect) if flag == "--print" => task = Task::Print(dialect),
                Some(file) => task = Task::Show(file),
                None => {
                    let needed = if flag == "--print" { "the name of a dialect" } else { "a file" };
                    let _ = write!(io::stderr(), "{flag} needs {needed}\n{USAGE}");
                    return ExitCode::from(2);
                }
            },
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
    match run(&task) {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(io::stderr(), "sandboxer-codegen: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(task: &Task) -> sandboxer_codegen::Result<ExitCode> {
    let root = workspace_root();
    let inputs = Inputs::read(&root)?;
    if let Task::Print(dialect) = task {
        let text = dialect_document(&inputs, dialect)?;
        return Ok(ExitCode::from(u8::from(writeln!(io::stdout(), "{text}").is_err())));
    }
    if let Task::Show(file) = task {
        let text = fs::read_to_string(file).map_err(|error| Error::new(format!("{file}: {error}")))?;
        let report = seen::report(&inputs, &text)?;
        let _ = io::stdout().write_all(report.table.as_bytes());
        for fault in &report.faults {
            let _ = writeln!(io::stderr(), "{fault}");
        }
        return Ok(ExitCode::from(u8::from(!report.faults.is_empty())));
    }
    let artifacts = plan(&inputs)?;
    if matches!(task, Task::Write) {
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
