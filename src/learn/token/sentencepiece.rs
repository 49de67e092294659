//! Reads a model of SentencePiece (Kudo and Richardson 2018): a message in the wire format of Protocol
//! Buffers, with the pieces and their scores, and with how texts are normalized.
//!
//! What is read is only as large as the file. Fields with unknown numbers are ignored, as the format
//! requires.

/// How a model divides a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// The division whose pieces have the greatest sum of scores.
    Unigram,
    /// Pairs of neighbours are merged, the one with the greatest score first.
    Bpe,
}

/// What a piece is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// It is found in texts.
    Text,
    /// It frames texts and fills rows, and is never found in one.
    Control,
    /// It is always one token, wherever the text contains it.
    Symbol,
}

/// A piece of the vocabulary. Its id is its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its text, with `▁` for a space.
    pub text: String,
    /// The logarithm of its probability, or its negative place in the order of merges.
    pub score: f32,
    /// What the piece is for; only pieces of text are found in texts.
    pub used: Use,
}

/// What a `.model` file says, as far as it is read.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// The vocabulary by id, with at least one piece.
    pub pieces: Vec<Entry>,
    /// How a text is divided.
    pub algorithm: Algorithm,
    /// The id of the piece for unknown text.
    pub unknown: usize,
    /// Whether unknown characters become the pieces of their bytes (`<0x41>`).
    pub has_bytes: bool,
    /// How characters are replaced before anything else, in the format of the library; empty if they are not.
    pub charsmap: Vec<u8>,
    /// Whether a space is put before a text.
    pub has_prefix: bool,
    /// Whether spaces are removed at the ends, and several in a row become one.
    pub removes_spaces: bool,
}

/// The value of a field; a nested message is its bytes.
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    Float(f32),
}

/// The fields of a message, one after the other.
struct Fields<'a>(&'a [u8]);

const DAMAGED: &str = "it is damaged, or no model of SentencePiece";

impl<'a> Fields<'a> {
    /// A number of up to 64 bits: seven bits in each byte, the lowest first, until a byte without the highest
    /// bit.
    fn varint(&mut self) -> Result<u64, String> {
        let mut value = 0u64;
        // Ten bytes of seven bits each are the most that 64 bits need; a longer number is damage.
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first().ok_or(DAMAGED)?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(DAMAGED.to_owned())
    }

    /// The next bytes of the message; an error if there are fewer.
    fn take(&mut self, count: u64) -> Result<&'a [u8], String> {
        // Borrowed from the file: a damaged one may give any count, and nothing is allocated for it.
        let count = usize::try_from(count).map_err(|_| DAMAGED)?;
        let (taken, rest) = self.0.split_at_checked(count).ok_or(DAMAGED)?;
        self.0 = rest;
        Ok(taken)
    }

    /// The number of the next field and its value; `None` at the end.
    fn next(&mut self) -> Result<Option<(u64, Value<'a>)>, String> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let key = self.varint()?;
        // The lowest three bits are the type of the value, and the others the number of the field.
        let value = match key & 7 {
            0 => Value::Number(self.varint()?),
            // No field that is read has eight bytes, but one that is ignored may.
            1 => {
                self.take(8)?;
                Value::Bytes(&[])
            }
            2 => {
                let count = self.varint()?;
                Value::Bytes(self.take(count)?)
            }
            5 => {
                let bytes = self.take(4)?.try_into().map_err(|_| DAMAGED)?;
                Value::Float(f32::from_le_bytes(bytes))
            }
            // 3 and 4 are groups, which the format has given up, and the others do not exist.
            _ => return Err(DAMAGED.to_owned()),
        };
        Ok(Some((key >> 3, value)))
    }
}

fn text(bytes: &[u8]) -> Result<String, String> {
    String::from_utf8(bytes.to_vec()).map_err(|_| "a piece is not UTF-8".to_owned())
}

// The numbers of fields below are those of `sentencepiece_model.proto`.

/// A piece from its message `SentencePiece`.
fn entry(bytes: &[u8]) -> Result<Entry, String> {
    let mut entry = Entry { text: String::new(), score: 0.0, used: Use::Text };
    let mut fields = Fields(bytes);
    while let Some(field) = fields.next()? {
        match field {
            (1, Value::Bytes(bytes)) => entry.text = text(bytes)?,
            (2, Value::Float(score)) => entry.score = score,
            (3, Value::Number(3)) => entry.used = Use::Control,
            (3, Value::Number(4)) => entry.used = Use::Symbol,
            _ => {}
        }
    }
    // The best division is found by comparing sums of scores, and a NaN is neither greater nor less.
    match entry.score.is_finite() {
        true => Ok(entry),
        false => Err(format!("the piece `{}` has no finite score", entry.text)),
    }
}

impl Model {
    /// Reads the bytes of a `.model` file.
    ///
    /// # Errors
    /// It is damaged, or divides texts in a way that is not supported: a sentence without a full stop.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let mut model = Self {
            pieces: Vec::new(),
            algorithm: Algorithm::Unigram,
            // The defaults of the format, which a file need not write.
            unknown: 0,
            has_bytes: false,
            charsmap: Vec::new(),
            has_prefix: true,
            removes_spaces: true,
        };
        let mut fields = Fields(bytes);
        while let Some(field) = fields.next()? {
            match field {
                (1, Value::Bytes(bytes)) => model.pieces.push(entry(bytes)?),
                (2, Value::Bytes(bytes)) => model.training(bytes)?,
                (3, Value::Bytes(bytes)) => model.normalizing(bytes)?,
                _ => {}
            }
        }
        // An empty file is a valid message, too.
        if model.pieces.is_empty() {
            return Err(DAMAGED.to_owned());
        }
        if model.unknown >= model.pieces.len() {
            return Err(format!("the id {} for unknown text is beyond its pieces", model.unknown));
        }
        Ok(model)
    }

    /// Reads how the model was trained, the message `TrainerSpec`.
    fn training(&mut self, bytes: &[u8]) -> Result<(), String> {
        let mut fields = Fields(bytes);
        while let Some(field) = fields.next()? {
            match field {
                (3, Value::Number(1)) => self.algorithm = Algorithm::Unigram,
                (3, Value::Number(2)) => self.algorithm = Algorithm::Bpe,
                (3, Value::Number(_)) => {
                    return Err("only the algorithms `unigram` and `bpe` are supported".to_owned());
                }
                (24, Value::Number(1)) => {
                    return Err(
                        "it puts spaces after words (treat_whitespace_as_suffix), which is not supported"
                            .to_owned(),
                    );
                }
                (35, Value::Number(own)) => self.has_bytes = own != 0,
                // An id that is too large is refused when the number of pieces is known.
                (40, Value::Number(id)) => self.unknown = usize::try_from(id).unwrap_or(usize::MAX),
                _ => {}
            }
        }
        Ok(())
    }

    /// Reads how the model normalizes texts, the message `NormalizerSpec`.
    fn normalizing(&mut self, bytes: &[u8]) -> Result<(), String> {
        let mut fields = Fields(bytes);
        while let Some(field) = fields.next()? {
            match field {
                (2, Value::Bytes(map)) => self.charsmap = map.to_vec(),
                (3, Value::Number(own)) => self.has_prefix = own != 0,
                (4, Value::Number(own)) => self.removes_spaces = own != 0,
                (5, Value::Number(0)) => {
                    return Err("it leaves spaces as they are (escape_whitespaces), which is not supported"
                        .to_owned());
                }
                _ => {}
            }
        }
        Ok(())
    }
}
