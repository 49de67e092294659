//! Follows the quotation marks of comma-separated text.
//!
//! The reader of tables accepts any of them: text after a closing one belongs to the same cell, and one that is never
//! closed ends with the file. So two stray ones would join the lines between them to one cell, and nothing would show.

use std::collections::VecDeque;

/// A place in a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spot {
    /// The line, counted from 1.
    pub line: u64,
    /// The character of the line, counted from 1.
    pub column: u64,
}

/// A quotation mark that opens a cell and is not closed at the cell's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stray {
    /// Where it opens.
    pub opened: Spot,
    /// Where it is closed, if text of the same cell follows there; `None` if it is never closed.
    pub closed: Option<Spot>,
    /// The byte at which this is known, which belongs to the same row.
    byte: u64,
}

/// Where in a cell the text is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Before its first character.
    #[default]
    Start,
    /// In a cell without quotation marks around it, in which they are characters like others.
    Plain,
    /// Between quotation marks, opened here.
    Quoted(Spot),
    /// After a quotation mark that closes, unless another one follows: where it was opened, and where it is.
    Closed(Spot, Spot),
    /// After such a mark and blanks.
    Blanks(Spot, Spot),
}

/// The state after the bytes that have been read, and what has been found in them.
#[derive(Debug)]
pub struct Marks {
    state: State,
    here: Spot,
    byte: u64,
    after_cr: bool,
    found: VecDeque<Stray>,
}

impl Marks {
    /// Before the first byte of a file.
    pub fn new() -> Self {
        Self {
            state: State::Start,
            here: Spot { line: 1, column: 1 },
            byte: 0,
            after_cr: false,
            found: VecDeque::new(),
        }
    }

    /// Reads the next bytes.
    pub fn read(&mut self, bytes: &[u8]) {
        for byte in bytes {
            // The byte order mark before the first cell is not part of it.
            let is_mark = self.byte < 3 && "\u{feff}".as_bytes().get(self.byte as usize) == Some(byte);
            if !is_mark {
                self.step(*byte);
                self.follow(*byte);
            }
            self.byte += 1;
        }
    }

    /// Reads the end of the file.
    pub fn end(&mut self) {
        if let State::Quoted(opened) = std::mem::take(&mut self.state) {
            self.found.push_back(Stray { opened, closed: None, byte: self.byte.saturating_sub(1) });
        }
    }

    /// Where the quotation marks were opened in which the last byte is, if any.
    pub fn open(&self) -> Option<Spot> {
        match self.state {
            State::Quoted(opened) => Some(opened),
            State::Start | State::Plain | State::Closed(..) | State::Blanks(..) => None,
        }
    }

    /// The first stray mark of the row that ends before this byte, after the row before it has been asked for.
    pub fn before(&mut self, byte: u64) -> Option<Stray> {
        let mut first = None;
        while let Some(stray) = self.found.pop_front_if(|stray| stray.byte < byte) {
            first = first.or(Some(stray));
        }
        first
    }

    fn step(&mut self, byte: u8) {
        self.state = match (self.state, byte) {
            (State::Quoted(opened), b'"') => State::Closed(opened, self.here),
            (State::Quoted(opened), _) => State::Quoted(opened),
            (_, b',' | b'\n' | b'\r') => State::Start,
            (State::Start, b'"') => State::Quoted(self.here),
            (State::Closed(opened, _), b'"') => State::Quoted(opened),
            // Programs that align columns write blanks there, which change no text.
            (State::Closed(opened, closed) | State::Blanks(opened, closed), b' ' | b'\t') => {
                State::Blanks(opened, closed)
            }
            (State::Closed(opened, closed) | State::Blanks(opened, closed), _) => {
                self.found.push_back(Stray { opened, closed: Some(closed), byte: self.byte });
                State::Plain
            }
            (State::Start | State::Plain, _) => State::Plain,
        };
    }

    /// Advances the line and the column past a byte.
    fn follow(&mut self, byte: u8) {
        match byte {
            // The second half of an end of a line.
            b'\n' if self.after_cr => {}
            b'\n' | b'\r' => self.here = Spot { line: self.here.line + 1, column: 1 },
            // Characters are counted by their first bytes.
            0x80..0xc0 => {}
            _ => self.here.column += 1,
        }
        self.after_cr = byte == b'\r';
    }
}
