//! How long things take, each beside a plain peer that was measured in the same run.
//!
//! ```text
//! cargo bench -p sandboxer-tests                      # everything, under three minutes
//! cargo bench -p sandboxer-tests -- --quick           # a look, a few seconds a part
//! cargo bench -p sandboxer-tests -- exec streams      # only these parts
//! ```
//!
//! Prints the tables of `docs/performance.md`. The lanes of a table take turns within every round, so that whatever else
//! the machine does meets all of them alike; ratios are the median of the rounds' own ratios.

#![expect(clippy::print_stdout, reason = "a benchmark is there to print")]

mod canned;
mod decode;
mod exec;
mod get;
mod machine;
mod measure;
mod memory;
mod peers;
mod starts;
mod streams;

use sandboxer::clock::{Clock as _, SystemClock};

/// How much is measured.
#[derive(Clone, Copy)]
struct Effort {
    quick: bool,
}

impl Effort {
    /// `full`, or the smaller number for a quick look.
    fn pick<T>(self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }
}

type Part = fn(Effort);

const PARTS: [(&str, Part); 6] = [
    ("exec", exec::run),
    ("starts", starts::run),
    ("get", get::run),
    ("decode", decode::run),
    ("streams", streams::run),
    ("memory", memory::run),
];

fn main() {
    let mut effort = Effort { quick: false };
    let mut chosen = Vec::new();
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--quick" => effort.quick = true,
            // Cargo says so to every benchmark.
            "--bench" => {}
            name if PARTS.iter().any(|(part, _)| *part == name) => chosen.push(argument),
            other => {
                let parts = PARTS.map(|(name, _)| name).join(", ");
                println!("unknown argument {other:?}; --quick, or parts: {parts}");
                std::process::exit(2);
            }
        }
    }
    println!("{}", machine::describe());
    let clock = SystemClock::new();
    for (name, part) in PARTS {
        if !chosen.is_empty() && !chosen.iter().any(|one| one == name) {
            continue;
        }
        println!("\n## {name} (load {})\n", machine::load());
        part(effort);
    }
    println!("\nTook {:.0} s; load at the end {}.", clock.elapsed().as_secs_f64(), machine::load());
}
