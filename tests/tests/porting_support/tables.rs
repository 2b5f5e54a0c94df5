//! The tables and the code spans of a Markdown text.

/// One row of a table whose last column says what is here.
#[derive(Debug)]
pub(crate) struct Row {
    /// Where it stands, counted from 1.
    pub(crate) line: usize,
    /// The heading of the first column, which names the packages that the row speaks of.
    pub(crate) heading: String,
    /// The code spans of all columns but the last.
    pub(crate) there: Vec<String>,
    /// The code spans of the last column.
    pub(crate) here: Vec<String>,
}

/// The rows of every table, and the code spans outside of tables with their lines.
///
/// # Panics
///
/// If the last column of a table does not say `here`.
pub(crate) fn read(text: &str) -> (Vec<Row>, Vec<(usize, String)>) {
    let (mut rows, mut prose, mut heading) = (Vec::new(), Vec::new(), None::<String>);
    for (number, line) in (1..).zip(text.lines()) {
        if !line.starts_with('|') {
            heading = None;
            prose.extend(spans(line).into_iter().map(|span| (number, span)));
            continue;
        }
        let cells = cells(line);
        let (Some(first), Some(last)) = (cells.first(), cells.last()) else { continue };
        let Some(heading) = &heading else {
            assert!(last.starts_with("here"), "line {number}: the last column of a table is what is here");
            heading = Some(first.clone());
            continue;
        };
        if first.starts_with("---") {
            continue;
        }
        let there = cells[..cells.len() - 1].iter().flat_map(|cell| spans(cell)).collect();
        rows.push(Row { line: number, heading: heading.clone(), there, here: spans(last) });
    }
    (rows, prose)
}

/// The cells of a row; a `|` in a code span is no border.
fn cells(line: &str) -> Vec<String> {
    let (mut cells, mut in_code) = (vec![String::new()], false);
    for letter in line.trim().trim_matches('|').chars() {
        in_code ^= letter == '`';
        match letter {
            '|' if !in_code => cells.push(String::new()),
            _ => cells.last_mut().into_iter().for_each(|cell| cell.push(letter)),
        }
    }
    cells.iter().map(|cell| cell.trim().to_owned()).collect()
}

fn spans(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}
