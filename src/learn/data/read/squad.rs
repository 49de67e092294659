//! Reads questions about texts from the JSON format of SQuAD (Rajpurkar et al. 2016).

use serde::Deserialize;

use super::raw::{Faults, Place, Raw, Visit};
use crate::learn::data::Refused;
use crate::learn::data::file::{self, Named};
use crate::read::{limit, unmarked};

#[derive(Deserialize)]
struct Squad {
    data: Vec<Article>,
}

#[derive(Deserialize)]
struct Article {
    paragraphs: Vec<Paragraph>,
}

#[derive(Deserialize)]
struct Paragraph {
    context: String,
    qas: Vec<Asked>,
}

#[derive(Deserialize)]
struct Asked {
    id: String,
    question: String,
    #[serde(default)]
    answers: Vec<Answer>,
}

#[derive(Deserialize)]
struct Answer {
    text: String,
    /// The index of its first character in the context, counted in characters, not in bytes.
    answer_start: usize,
}

/// Visits every question of some files. Paragraphs are numbered from 0 across all files.
///
/// # Errors
/// A file cannot be read. What is wrong inside a file is reported to `faults`.
pub fn read(files: &[Named], faults: &mut Faults<'_>, visit: &mut Visit<'_>) -> Result<(), Refused> {
    let mut number = 0;
    for file in files {
        let place = Place { file, line: 0 };
        // JSON is parsed as a whole and not by lines, so the size of the file bounds the memory.
        let bytes = file::bytes(&file.path, limit::QUESTIONS)?;
        let squad: Squad = match serde_json::from_slice(unmarked(&bytes)) {
            Ok(squad) => squad,
            Err(fault) => {
                // The only place in such a file that is known: its examples are not lines.
                let place = Place { file, line: fault.line() as u64 };
                let help =
                    "it should be `{\"data\": [{\"paragraphs\": [{\"context\": ..., \"qas\": ...}]}]}`";
                let _ = faults.line(place, &format!("it is no file of SQuAD: {fault}"), Some(help));
                return Ok(());
            }
        };
        for paragraph in squad.data.into_iter().flat_map(|a| a.paragraphs) {
            for asked in paragraph.qas {
                let flow = match question(&paragraph.context, asked, number) {
                    Ok(raw) => visit(raw, place, faults),
                    Err(why) => faults.line(place, &why, None),
                };
                if flow.is_break() {
                    return Ok(());
                }
            }
            number += 1;
        }
    }
    Ok(())
}

/// A question as an example, with answers that are counted in bytes. An error is a sentence without a full
/// stop.
fn question(context: &str, asked: Asked, paragraph: usize) -> Result<Raw, String> {
    let Asked { id, question, answers } = asked;
    if answers.is_empty() {
        return Err(format!("question `{id}` has no answer, and every question needs one"));
    }
    let mut found = Vec::new();
    for answer in answers {
        // Texts are cut by bytes here, and the file counts characters.
        let start = context.char_indices().nth(answer.answer_start).map(|(at, _)| at);
        // Files that were translated or cleaned often have offsets that are off; such an answer would teach
        // the wrong words.
        let start = start.filter(|at| context.get(*at..).is_some_and(|c| c.starts_with(&answer.text)));
        let Some(start) = start.filter(|_| !answer.text.is_empty()) else {
            let at = answer.answer_start;
            return Err(format!("the answer of question `{id}` is not at character {at}"));
        };
        found.push((start, answer.text));
    }
    Ok(Raw::Question { id, question, paragraph, context: context.to_owned(), answers: found })
}
