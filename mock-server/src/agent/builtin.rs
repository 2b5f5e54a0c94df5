//! The agent that is built in.

use super::{AgentError, Turn, fences::shell_blocks, turn::ToolOutput};
use crate::text::tail;

/// What it says to a prompt that has no block.
const NOTHING_TO_RUN: [&str; 2] = [
    "I am the agent of the local server. ",
    "I run each fenced sh block of a prompt, and this one has none.",
];

/// Lines and bytes of a block's output that are said again in the answer.
const QUOTED_LINES: usize = 40;
const QUOTED_BYTES: usize = 4 << 10;

/// Runs each block of the prompt, and of every message that comes meanwhile; says what came of it.
pub(super) async fn answer(turn: Turn) -> Result<(), AgentError> {
    let mut blocks = shell_blocks(turn.prompt());
    if blocks.is_empty() {
        for piece in NOTHING_TO_RUN {
            turn.say(piece).await;
        }
    }
    let (mut done, mut failed, mut report) = (0_usize, 0_usize, String::new());
    while done < blocks.len() {
        let (number, count) = (done + 1, blocks.len());
        turn.say(format!("Running block {number} of {count}.")).await;
        let output = turn.run(&blocks[done]).await?;
        failed += usize::from(!output.is_success());
        report.push_str(&account(number, &output));
        done += 1;
        for message in turn.take_steers() {
            turn.say(format!("I was told: {message}\n")).await;
            blocks.extend(shell_blocks(&message));
        }
    }
    if done > 0 {
        let blocks = if done == 1 { "block" } else { "blocks" };
        turn.say(format!("I ran {done} {blocks}, {failed} of which failed.\n")).await;
        turn.say(report).await;
    }
    Ok(())
}

/// How a block ended, and the end of what it wrote.
fn account(number: usize, output: &ToolOutput) -> String {
    let how = match output.exit_code {
        Some(code) => format!("exited with {code}"),
        None => "was ended".to_owned(),
    };
    let mut account = format!("Block {number} {how}.\n");
    for text in [&output.stdout, &output.stderr] {
        let text = last_lines(text);
        if !text.is_empty() {
            account.push_str(text);
            if !text.ends_with('\n') {
                account.push('\n');
            }
        }
    }
    account
}

fn last_lines(text: &str) -> &str {
    let text = tail(text, QUOTED_BYTES);
    let lines = text.trim_end_matches('\n').rmatch_indices('\n').nth(QUOTED_LINES - 1);
    lines.map_or(text, |(at, _)| &text[at + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_an_output_is_quoted() {
        assert_eq!(last_lines(""), "");
        assert_eq!(last_lines("one\ntwo\n"), "one\ntwo\n");
        let many: String = (0..100).map(|number| format!("{number}\n")).collect();
        assert_eq!(last_lines(&many).lines().count(), QUOTED_LINES);
        assert!(last_lines(&many).starts_with("60\n") && last_lines(&many).ends_with("99\n"));
        let wide = "é".repeat(QUOTED_BYTES);
        assert!(last_lines(&wide).len() <= QUOTED_BYTES);
        assert_eq!(last_lines("\n\n"), "\n\n");
    }
}
