//! Chooses the regions of a Python file of ours that what is written needs.

/// The text without its markers, and without each region, from `# only: WORD ...` to `# end`, none of whose
/// words holds. `!WORD` asks for a word that does not hold.
///
/// # Errors
/// A region does not begin or does not end.
pub fn chosen(text: &str, has: &dyn Fn(&str) -> bool) -> Result<String, String> {
    let holds = |word: &str| match word.strip_prefix('!') {
        Some(word) => !has(word),
        None => has(word),
    };
    let mut regions: Vec<bool> = Vec::new();
    let mut kept: Vec<&str> = Vec::new();
    for line in text.lines() {
        let marker = line.trim_start();
        if let Some(only) = marker.strip_prefix("# only: ") {
            regions.push(only.split_whitespace().any(holds));
        } else if marker == "# end" {
            regions.pop().ok_or("a region ends that does not begin")?;
        // Regions may be nested: a line is kept where every region around it is.
        } else if regions.iter().all(|is_kept| *is_kept) {
            kept.push(line);
        }
    }
    if !regions.is_empty() {
        return Err("a region does not end".to_owned());
    }
    Ok(spaced(&kept, 2))
}

/// Lines with at most `most` empty ones in a row, and none at the end.
pub fn spaced(lines: &[&str], most: usize) -> String {
    let mut out = String::new();
    let mut empty = 0;
    for line in lines {
        if line.trim().is_empty() {
            empty += 1;
            continue;
        }
        if !out.is_empty() {
            out.push_str(&"\n".repeat(empty.min(most)));
        }
        empty = 0;
        out.push_str(line);
        out.push('\n');
    }
    out
}
