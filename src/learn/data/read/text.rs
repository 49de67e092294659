//! Reads plain text: lines, one long text, pairs, parallel files, tagged words.

use std::ops::ControlFlow;

use super::raw::{Faults, Place, Raw, Visit, each_line};
use crate::diag::count::counted;
use crate::learn::data::Refused;
use crate::learn::data::file::{self, Named};

/// The size of a section of a long text in bytes: small compared with the text, large compared with a
/// token.
const STRETCH: usize = 1 << 12;

/// Visits every line that is not empty.
pub fn lines(files: &[Named], faults: &mut Faults<'_>, visit: &mut Visit<'_>) -> Result<(), Refused> {
    // Most files end with a line break, after which there is no example.
    each_line(files, faults, &mut |line, place, faults| match line.is_empty() {
        true => ControlFlow::Continue(()),
        false => visit(Raw::Text(line.to_owned()), place, faults),
    })
    .map(|_| ())
}

/// Visits the files in sections of whole lines, including line breaks. A section begins with a line that is
/// not empty, so that tokens of several line breaks are not split.
pub fn stretches(files: &[Named], faults: &mut Faults<'_>, visit: &mut Visit<'_>) -> Result<(), Refused> {
    for file in files {
        let mut stretch = String::new();
        let mut place = Place { file, line: 1 };
        let flow = each_line(std::slice::from_ref(file), faults, &mut |line, at, faults| {
            let flow = match stretch.len() >= STRETCH && !line.is_empty() {
                true => {
                    let whole = std::mem::take(&mut stretch);
                    // A fault is reported at the line where its section begins.
                    let begun = std::mem::replace(&mut place.line, at.line);
                    visit(Raw::Text(whole), Place { file, line: begun }, faults)
                }
                false => ControlFlow::Continue(()),
            };
            stretch.push_str(line);
            // Lines are read without their breaks, which in one long text are characters like any other.
            stretch.push('\n');
            flow
        })?;
        // What is left of one file is not joined with the next: each ends its last token.
        if flow.is_break() || (!stretch.is_empty() && visit(Raw::Text(stretch), place, faults).is_break()) {
            break;
        }
    }
    Ok(())
}

/// Visits a source, a tab and a target on each line.
pub fn pairs(files: &[Named], faults: &mut Faults<'_>, visit: &mut Visit<'_>) -> Result<(), Refused> {
    each_line(files, faults, &mut |line, place, faults| {
        let columns: Vec<&str> = line.split('\t').collect();
        match columns.as_slice() {
            [""] => ControlFlow::Continue(()),
            [source, target] => pair([source, target], [place; 2], faults, visit),
            [_] => faults.line(place, "expected a source, a tab and a target, but there is no tab", None),
            more => {
                let found = counted(more.len(), "column");
                let message = format!("expected a source, a tab and a target, but found {found}");
                let help = "`{table: {header: 0, source: 1, target: 2}}` reads selected columns";
                faults.line(place, &message, Some(help))
            }
        }
    })
    .map(|_| ())
}

/// Visits a pair, or reports one of which a side is empty. A source and a target may be in different files.
fn pair(
    [source, target]: [&str; 2],
    [of_source, place]: [Place<'_>; 2],
    faults: &mut Faults<'_>,
    visit: &mut Visit<'_>,
) -> ControlFlow<()> {
    if source.trim().is_empty() {
        return faults.line(of_source, "the source is empty", None);
    }
    if target.trim().is_empty() {
        return faults.line(place, "the target is empty", None);
    }
    let (source, target) = (source.to_owned(), target.to_owned());
    visit(Raw::Pair { source, target, language: None }, place, faults)
}

/// The number of lines of a file.
fn count(file: &Named) -> Result<u64, Refused> {
    let mut count = 0;
    file::lines(&file.path, &mut |line, _| {
        count = line;
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(count)
}

/// Visits two files line by line. The number of lines is compared first: files with different numbers of
/// lines do not belong together, even if a limit ends before the difference.
pub fn parallel(files: &[Named], faults: &mut Faults<'_>, visit: &mut Visit<'_>) -> Result<(), Refused> {
    let [first, second] = files else { return Ok(()) };
    let (sources, targets) = (count(first)?, count(second)?);
    if sources != targets {
        let message = format!(
            "the file has {}, but `{}` has {sources}",
            counted(targets, "line"),
            file::name(&first.path)
        );
        let place = Place { file: second, line: 0 };
        let _ = faults.line(place, &message, Some("corresponding lines of the files belong together"));
        return Ok(());
    }
    // The files are read one after the other, so the sources are kept in memory until their targets are read.
    let mut sources: Vec<String> = Vec::new();
    let flow = each_line(std::slice::from_ref(first), faults, &mut |line, _, _| {
        sources.push(line.to_owned());
        ControlFlow::Continue(())
    })?;
    if flow.is_break() || faults.any() {
        return Ok(());
    }
    each_line(std::slice::from_ref(second), faults, &mut |line, place, faults| {
        let source = usize::try_from(place.line - 1).ok().and_then(|i| sources.get(i));
        match source {
            // Both files end with a line break, or have a gap in the same place.
            Some(source) if source.is_empty() && line.is_empty() => ControlFlow::Continue(()),
            Some(source) => {
                let of_source = Place { file: first, ..place };
                pair([source, line], [of_source, place], faults, visit)
            }
            // This happens only if a file grows while it is read.
            None => ControlFlow::Break(()),
        }
    })
    .map(|_| ())
}

/// Visits a word, a tab and its class on each line; an empty line ends a sentence.
pub fn tagged(files: &[Named], faults: &mut Faults<'_>, visit: &mut Visit<'_>) -> Result<(), Refused> {
    for file in files {
        let (mut words, mut tags): (Vec<String>, Vec<String>) = Default::default();
        let mut begun = 1;
        let flow = each_line(std::slice::from_ref(file), faults, &mut |line, place, faults| {
            if line.trim().is_empty() {
                let sentence = (std::mem::take(&mut words), std::mem::take(&mut tags));
                // A sentence is reported at its first line.
                let at = Place { file, line: std::mem::replace(&mut begun, place.line + 1) };
                return match sentence {
                    (words, _) if words.is_empty() => ControlFlow::Continue(()),
                    (words, tags) => visit(Raw::Tagged { words, tags }, at, faults),
                };
            }
            match line.split('\t').collect::<Vec<&str>>().as_slice() {
                [word, tag] if !word.is_empty() && !tag.is_empty() => {
                    words.push((*word).to_owned());
                    tags.push((*tag).to_owned());
                    ControlFlow::Continue(())
                }
                [_, tag] => {
                    let empty = if tag.is_empty() { "the class is empty" } else { "the word is empty" };
                    faults.line(place, empty, Some("expected a word, a tab and its class"))
                }
                columns => {
                    let found = counted(columns.len(), "column");
                    let message = format!("expected a word, a tab and its class, but found {found}");
                    faults.line(place, &message, None)
                }
            }
        })?;
        let last = Place { file, line: begun };
        if flow.is_break()
            // The last sentence of a file need not be followed by an empty line.
            || (!words.is_empty() && visit(Raw::Tagged { words, tags }, last, faults).is_break())
        {
            break;
        }
    }
    Ok(())
}
