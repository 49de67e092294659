//! A page: one HTML file that needs no network, no server and no other file.
//!
//! Its content security policy forbids every request; its styles and its short script are part of the file.
//! It follows the reader's light or dark theme and has a skip link, headings in order, tables that can be
//! sorted with pointer and keyboard, and descriptions of all pictures. Everything can be read without the
//! script.

use sha2::{Digest as _, Sha256};

use super::mark::PAGE;
use super::text::{escape, escape_line};
use super::{Figure, theme};

/// The most columns of a table with the usual distances; with more, they are closer together.
const CLOSE: usize = 7;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// A page with a title and sections.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    title: String,
    lead: String,
    sections: Vec<Section>,
    refresh: Option<u64>,
}

/// A section with its own heading.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    title: String,
    body: String,
}

/// A table with sortable columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// What the table contains, in a few words.
    pub caption: String,
    /// The columns with their headers.
    pub columns: Vec<Column>,
    /// The rows, with one cell per column.
    pub rows: Vec<Vec<Cell>>,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The header of the column.
    pub title: String,
    /// Whether the cells are numbers, which are aligned to the right and sorted by value.
    pub is_number: bool,
}

impl Column {
    /// A column of words.
    pub fn words(title: &str) -> Self {
        Self { title: title.to_owned(), is_number: false }
    }

    /// A column of numbers.
    pub fn numbers(title: &str) -> Self {
        Self { title: title.to_owned(), is_number: true }
    }
}

/// A cell of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// The text that is shown.
    pub text: String,
    /// The number to sort by, if it is not the text.
    pub key: Option<f64>,
    /// A class such as `added`, `removed`, `changed`, `code` or `strong`; empty for none.
    pub class: &'static str,
}

impl Cell {
    /// A cell of words.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), key: None, class: "" }
    }

    /// A number, as it is shown and as it sorts.
    pub fn number(text: impl Into<String>, key: f64) -> Self {
        Self { text: text.into(), key: Some(key), class: "" }
    }

    /// The cell with a class.
    pub fn class(mut self, class: &'static str) -> Self {
        self.class = class;
        self
    }
}

impl Section {
    /// A section without content.
    pub fn new(title: &str) -> Self {
        Self { title: title.to_owned(), body: String::new() }
    }

    /// Adds a paragraph of plain text, which is escaped.
    pub fn text(mut self, text: &str) -> Self {
        self.body += &format!("<p>{}</p>\n", escape(text));
        self
    }

    /// Adds a list of short lines.
    pub fn list(mut self, lines: &[String]) -> Self {
        self.body += "<ul>\n";
        lines.iter().for_each(|line| self.body += &format!("<li>{}</li>\n", escape_line(line)));
        self.body += "</ul>\n";
        self
    }

    /// Adds large numbers, each with a name and a value.
    pub fn tiles(mut self, tiles: &[(String, String)]) -> Self {
        self.body += "<dl class=\"tiles\">\n";
        for (name, value) in tiles {
            self.body +=
                &format!("<div><dt>{}</dt><dd>{}</dd></div>\n", escape_line(name), escape_line(value));
        }
        self.body += "</dl>\n";
        self
    }

    /// Adds a picture with a caption below it; an empty caption is replaced by the picture's title.
    pub fn figure(mut self, figure: &Figure, caption: &str) -> Self {
        // What is wider than the page scrolls, with the keyboard only if it can have the focus.
        self.body += &format!("<figure class=\"wide\" tabindex=\"0\">{}", figure.inline());
        if !caption.is_empty() {
            self.body += &format!("<figcaption>{}</figcaption>", escape(caption));
        }
        self.body += "</figure>\n";
        self
    }

    /// Adds several pictures, side by side as far as there is room.
    pub fn figures(mut self, figures: &[Figure]) -> Self {
        self.body += "<div class=\"row\">\n";
        for figure in figures {
            self.body += &format!("<figure class=\"wide\" tabindex=\"0\">{}</figure>\n", figure.inline());
        }
        self.body += "</div>\n";
        self
    }

    /// Adds a table that readers sort by clicking its headers.
    pub fn table(mut self, table: &Table) -> Self {
        self.body += &table.html();
        self
    }

    /// Adds the text of a spec with numbered lines, to which the boxes of a picture refer. `name` is the
    /// name of the file.
    pub fn source(mut self, name: &str, text: &str) -> Self {
        self.body += &format!(
            "<h3>{}</h3>\n<pre class=\"source\" tabindex=\"0\" data-source=\"{0}\">",
            escape_line(name)
        );
        for (i, line) in text.lines().enumerate() {
            self.body += &format!("<code data-line=\"{}\">{}\n</code>", i + 1, escape(line));
        }
        self.body += "</pre>\n";
        self
    }

    /// Adds the place where a box that is selected in a picture is described.
    pub fn details(mut self, hint: &str) -> Self {
        self.body +=
            &format!("<div id=\"details\" class=\"details\" role=\"status\">{}</div>\n", escape(hint));
        self
    }
}

impl Table {
    /// A table without rows.
    pub fn new(caption: &str, columns: Vec<Column>) -> Self {
        Self { caption: caption.to_owned(), columns, rows: Vec::new() }
    }

    fn html(&self) -> String {
        // Two columns fit on a phone; with more, each row becomes a card there.
        let class = match self.columns.len() {
            0..=2 => "",
            3..=CLOSE => " class=\"cards\"",
            _ => " class=\"cards many\"",
        };
        let mut out = format!("<div class=\"wide\" tabindex=\"0\"><table{class}>\n");
        if !self.caption.is_empty() {
            out += &format!("<caption>{}</caption>\n", escape(&self.caption));
        }
        out += "<thead><tr>";
        for column in &self.columns {
            let class = if column.is_number { " class=\"number\"" } else { "" };
            // A button can be reached and pressed with the keyboard.
            out += &format!(
                "<th scope=\"col\"{class}><button type=\"button\">{}</button></th>",
                escape_line(&column.title)
            );
        }
        out += "</tr></thead>\n<tbody>\n";
        for row in &self.rows {
            out += "<tr>";
            for (i, cell) in row.iter().enumerate() {
                let is_number = self.columns.get(i).is_some_and(|c| c.is_number);
                let class = match (is_number, cell.class) {
                    (false, "") => String::new(),
                    (true, class) => format!(" class=\"number {class}\""),
                    (false, class) => format!(" class=\"{class}\""),
                };
                // The script sorts by this number: `1.2 G` would come before `3 K` as a text.
                let key = cell.key.map_or(String::new(), |key| format!(" data-key=\"{key}\""));
                let title = self.columns.get(i).map_or("", |c| c.title.as_str());
                // Where rows are cards, the style sheet shows the header before each cell.
                let title = if self.columns.len() > 2 {
                    format!(" data-title=\"{}\"", escape_line(title))
                } else {
                    String::new()
                };
                // A long path may break after its dots.
                let text = escape(&cell.text);
                let text = if i == 0 && cell.class == "code" { text.replace('.', ".<wbr>") } else { text };
                out += &format!("<td{class}{key}{title}>{text}</td>");
            }
            out += "</tr>\n";
        }
        out + "</tbody></table></div>\n"
    }
}

impl Page {
    /// A page without sections.
    pub fn new(title: &str, lead: &str) -> Self {
        Self { title: title.to_owned(), lead: lead.to_owned(), sections: Vec::new(), refresh: None }
    }

    /// The page, which a browser loads again after this number of seconds: for a file that is still being
    /// written.
    pub fn refreshed(mut self, seconds: u64) -> Self {
        self.refresh = Some(seconds);
        self
    }

    /// The same page with one more section.
    pub fn with(mut self, section: Section) -> Self {
        self.sections.push(section);
        self
    }

    /// The file. Only its own script runs: the number that the script is known by follows from everything
    /// else in the page, so that nothing in it can know the number beforehand.
    pub fn html(&self) -> String {
        let (mut above, below) = (self.policy(), self.document());
        // A hash and no random number, so that the same page has the same bytes.
        let nonce = nonce(&[&above, &below, SCRIPT]);
        above += &nonce;
        format!("{above}{below}<script nonce=\"{nonce}\">\n{SCRIPT}</script>\n</body>\n</html>\n")
    }

    /// The page up to the number of its script.
    fn policy(&self) -> String {
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; \
         style-src 'unsafe-inline'; script-src 'nonce-"
            .to_owned()
    }

    /// The page from there to the script.
    fn document(&self) -> String {
        let title = escape_line(&self.title);
        let refresh = self.refresh.map_or(String::new(), |seconds| {
            format!("<meta http-equiv=\"refresh\" content=\"{seconds}\">\n")
        });
        // The quotes that come first end the policy. The empty icon keeps browsers from asking for
        // `favicon.ico`.
        let mut out = format!(
            "'\">\n{refresh}<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             {PAGE}\n<link rel=\"icon\" href=\"data:,\">\n\
             <title>{title}</title>\n<style>\n:root{{color-scheme:light dark;{}}}\n\
             @media (prefers-color-scheme:dark){{:root{{{}}}}}\n{}\n{STYLE}</style>\n</head>\n<body>\n",
            theme::variables(false),
            theme::variables(true),
            theme::in_page(),
        );
        out += "<a class=\"skip\" href=\"#content\">Skip to the content</a>\n";
        out += &format!("<header><h1>{title}</h1>\n");
        if !self.lead.is_empty() {
            out += &format!("<p class=\"lead\">{}</p>\n", escape(&self.lead));
        }
        if self.sections.len() > 1 {
            out += "<nav aria-label=\"Sections\"><ul>";
            for (i, section) in self.sections.iter().enumerate() {
                out += &format!("<li><a href=\"#s{i}\">{}</a></li>", escape_line(&section.title));
            }
            out += "</ul></nav>\n";
        }
        out += "</header>\n<main id=\"content\">\n";
        for (i, section) in self.sections.iter().enumerate() {
            out += &format!(
                "<section id=\"s{i}\" aria-labelledby=\"h{i}\">\n<h2 id=\"h{i}\">{}</h2>\n{}</section>\n",
                escape_line(&section.title),
                section.body
            );
        }
        out += "</main>\n<footer>Made by trafoc. This file is complete: it loads nothing.</footer>\n";
        out
    }
}

/// The first half of the SHA-256 of some texts, in hexadecimal.
fn nonce(texts: &[&str]) -> String {
    let mut hash = Sha256::new();
    texts.iter().for_each(|text| hash.update(text));
    hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
