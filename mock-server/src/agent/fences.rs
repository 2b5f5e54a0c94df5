//! The fenced blocks of a text.

/// The contents of the blocks that are fenced as `sh` or `bash`, in order. A fence is three or more backticks or tildes
/// at the beginning of a line, after at most three spaces; one that is not closed ends with the text.
pub(super) fn shell_blocks(text: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut open: Option<(Fence<'_>, String)> = None;
    for line in text.lines() {
        match &mut open {
            None => open = Fence::of(line).map(|fence| (fence, String::new())),
            Some((fence, block)) => match Fence::of(line) {
                Some(end) if end.closes(fence) => blocks.extend(open.take().and_then(kept)),
                _ => {
                    block.push_str(line);
                    block.push('\n');
                }
            },
        }
    }
    blocks.extend(open.and_then(kept));
    blocks
}

fn kept((fence, block): (Fence<'_>, String)) -> Option<String> {
    let is_shell = matches!(fence.language, "sh" | "bash");
    (is_shell && !block.trim().is_empty()).then_some(block)
}

struct Fence<'a> {
    mark: char,
    length: usize,
    /// The first word after it.
    language: &'a str,
}

impl<'a> Fence<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let bare = line.trim_start_matches(' ');
        let mark = bare.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
        let rest = bare.trim_start_matches(mark);
        let length = bare.len() - rest.len();
        // Three backticks and one more further on are code within a line.
        let is_fence = line.len() - bare.len() <= 3 && length >= 3 && !(mark == '`' && rest.contains('`'));
        let language = rest.split_whitespace().next().unwrap_or_default();
        is_fence.then_some(Self { mark, length, language })
    }

    fn closes(&self, open: &Fence<'_>) -> bool {
        self.mark == open.mark && self.length >= open.length && self.language.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shell_blocks_are_found_and_nothing_else() {
        for (text, blocks) in [
            ("no block", vec![]),
            ("```sh\necho 1\n```", vec!["echo 1\n"]),
            (
                "a\n```bash title=x\necho 1\n\necho 2\n```\nb\n~~~sh\necho 3\n~~~\n",
                vec!["echo 1\n\necho 2\n", "echo 3\n"],
            ),
            ("```python\nprint(1)\n```\n```\necho no\n```\n```sh\n \n```", vec![]),
            ("```python\n```sh\necho no\n```", vec![]),
            ("````sh\n```\necho 1\n```\n````", vec!["```\necho 1\n```\n"]),
            ("```sh\necho open", vec!["echo open\n"]),
            ("    ```sh\n    echo indented\n    ```", vec![]),
            ("```sh echo 1``` in a line", vec![]),
            ("``` sh\r\necho 1\r\n```\r\n", vec!["echo 1\n"]),
        ] {
            assert_eq!(shell_blocks(text), blocks, "{text}");
        }
    }
}
